//! Circuits on shared scores whose outputs the client learns.

use lanner_gc::library::{self, MaskedCircuit, Sharing};
use lanner_gc::{Circuit, OutputDecoding};
use lanner_ot::{CorrelatedReceiver, CorrelatedSender};
use lanner_primitives::{Bits, Prg, Share};
use lanner_step::{
    EvaluationSession, GarblingSession, Likely, Outcome, ProtocolError, Result, Samples, kind,
};
use lanner_wire::{Channel, ChannelError, DecodeError, Reader, Writer};

use super::evaluating::{ClientRequest, Garbled, request};
use super::garbling::{InputLabels, garble};

/// A circuit on shared scores, and how the client reads its outputs.
#[derive(Clone, Debug)]
pub struct Revealed {
    circuit: MaskedCircuit,
    reading: Reading,
    /// One for each of a sample's.
    places: usize,
    samples: usize,
}

/// How a circuit's output bits are read.
#[derive(Clone, Copy, Debug)]
pub enum Reading {
    /// The index of the largest score.
    Label,
    /// The indices of the largest scores in order.
    TopK(usize),
    /// For each score whether it is above zero.
    Positive,
    /// The index of the largest score, then its probability in units of `10^-digits`.
    Probability {
        /// The digits.
        digits: u32,
    },
}

impl Revealed {
    /// A circuit whose outputs are read so, of one place of one sample.
    #[must_use]
    pub const fn new(circuit: MaskedCircuit, reading: Reading) -> Self {
        Self { circuit, reading, places: 1, samples: 1 }
    }

    /// The same at each of several places of a sample.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if there is no place, or something else than a label is told of several.
    pub fn at(self, places: usize) -> Result<Self> {
        ProtocolError::refuse_if(places == 0, "scores at no place")?;
        let several = places > 1 && !matches!(self.reading, Reading::Label);
        ProtocolError::refuse_if(several, "of several places a label is told, and nothing else")?;
        Ok(Self { places, ..self })
    }

    /// The same of each of several samples.
    #[must_use]
    pub fn of_samples(self, samples: Samples) -> Self {
        Self { samples: samples.count(), ..self }
    }

    /// The arg-max of `classes` scores shared so, ties to the lowest index.
    ///
    /// # Errors
    /// [`ProtocolError::Gc`] if there are fewer than two classes or the ring has no circuit.
    pub fn label(classes: usize, from: impl Into<Sharing>) -> Result<Self> {
        Ok(Self::new(library::argmax(from, classes)?, Reading::Label))
    }

    /// The `k` largest of `classes` scores shared so, in order, ties to the lowest index.
    ///
    /// # Errors
    /// [`ProtocolError::Gc`] if there are fewer than two classes, none or more than all are asked for, or the ring has no circuit.
    pub fn top_k(classes: usize, k: usize, from: impl Into<Sharing>) -> Result<Self> {
        Ok(Self::new(library::top_k(from, classes, k)?, Reading::TopK(k)))
    }

    /// Which of `classes` scores shared so are above zero.
    ///
    /// # Errors
    /// [`ProtocolError::Gc`] if there is no score or the ring has no circuit.
    pub fn positive(classes: usize, from: impl Into<Sharing>) -> Result<Self> {
        Ok(Self::new(library::positive(from, classes)?, Reading::Positive))
    }

    /// The circuit.
    #[must_use]
    pub fn circuit(&self) -> &Circuit {
        self.circuit.circuit()
    }

    /// Number of circuits: one for each place of each sample.
    #[must_use]
    pub const fn instances(&self) -> usize {
        self.samples * self.places
    }

    /// Bits that the client learns.
    #[must_use]
    pub fn output_bits(&self) -> usize {
        self.instances() * self.circuit().outputs()
    }

    /// The garbler's input bits, for its share of the scores.
    ///
    /// # Errors
    /// [`ProtocolError::WrongRing`] or [`ProtocolError::Length`] if the share does not fit.
    pub fn garbler_bits(&self, share: &Share) -> Result<Bits> {
        Ok(self.circuit.garbler_bits(self.scores(share)?)?)
    }

    /// The evaluator's input bits, for its share of the scores.
    ///
    /// # Errors
    /// As [`Self::garbler_bits`].
    pub fn evaluator_bits(&self, share: &Share) -> Result<Bits> {
        Ok(self.circuit.evaluator_bits(self.scores(share)?)?)
    }

    /// What the outputs say of all samples; none if no scores have them.
    #[must_use]
    pub fn outcome(&self, outputs: &Bits) -> Option<Outcome> {
        let each = self.circuit().outputs();
        let of_place = |instance| self.outcome_of_place(each, |bit| outputs.get(instance * each + bit));
        let of_sample = |sample| match self.places {
            1 => of_place(sample),
            places => (sample * places..(sample + 1) * places)
                .map(|instance| match of_place(instance) {
                    Some(Outcome::Label(label)) => Some(label),
                    _ => None,
                })
                .collect::<Option<_>>()
                .map(Outcome::LabelMap),
        };
        let mut outcomes: Vec<_> = (0..self.samples).map(of_sample).collect::<Option<_>>()?;
        if self.samples == 1 { outcomes.pop() } else { Some(Outcome::Each(outcomes)) }
    }

    /// What so many output bits of one place of a sample say.
    fn outcome_of_place(&self, len: usize, output: impl Fn(usize) -> bool) -> Option<Outcome> {
        let word =
            |bits: std::ops::Range<usize>| bits.rev().fold(0, |word, bit| word << 1 | u64::from(output(bit)));
        let classes = self.circuit.values();
        let class = |bits| Some(word(bits) as usize).filter(|index| *index < classes);
        match self.reading {
            Reading::Label => class(0..len).map(Outcome::Label),
            Reading::TopK(k) => {
                let width = len / k;
                let best: Vec<usize> =
                    (0..k).map(|place| class(place * width..(place + 1) * width)).collect::<Option<_>>()?;
                let mut seen = vec![false; classes];
                let fresh = best.iter().all(|index| !std::mem::replace(&mut seen[*index], true));
                fresh.then_some(Outcome::TopK(best))
            }
            Reading::Positive => Some(Outcome::Labels((0..classes).filter(|class| output(*class)).collect())),
            Reading::Probability { digits } => {
                let index_bits = classes.next_power_of_two().trailing_zeros() as usize;
                let (label, parts) = (word(0..index_bits) as usize, word(index_bits..len));
                Likely::told(label, parts, classes, digits).map(Outcome::Probability)
            }
        }
    }

    fn scores<'s>(&self, share: &'s Share) -> Result<&'s [u64]> {
        let values = self.instances() * self.circuit.values();
        ProtocolError::check_share("input share of scores", share, self.circuit.ring(), values)?;
        Ok(share.values())
    }
}

/// One-time material of a circuit whose outputs the client learns.
pub(super) struct Revealing {
    garbled: Garbled,
    decoding: OutputDecoding,
}

impl ClientRequest {
    /// Receives circuits whose outputs the client learns, and what decodes them.
    pub(super) fn receive_revealing(
        self,
        channel: &mut dyn Channel,
        revealed: &Revealed,
    ) -> Result<Revealing> {
        let (circuit, instances) = (revealed.circuit(), revealed.instances());
        let garbled = self.inputs.receive_tables(channel, circuit, instances, self.tweaks)?;
        let bytes = channel.receive(kind::DECODING, Bits::byte_len(revealed.output_bits()))?;
        let decoding = read_decoding(&mut Reader::new(&bytes), revealed).map_err(ChannelError::from)?;
        Ok(Revealing { garbled, decoding })
    }
}

impl Revealing {
    pub(super) fn encode(&self, writer: &mut Writer) {
        self.garbled.encode(writer);
        writer.bytes(&self.decoding.to_bytes());
    }

    /// Reads what [`Self::encode`] wrote.
    pub(super) fn decode(reader: &mut Reader<'_>, revealed: &Revealed) -> Result<Self, DecodeError> {
        let garbled = Garbled::decode(reader, revealed.circuit(), revealed.instances())?;
        Ok(Self { garbled, decoding: read_decoding(reader, revealed)? })
    }

    /// Online: obtains the labels of `input` and evaluates; returns the outputs.
    pub(super) fn reveal(self, channel: &mut dyn Channel, revealed: &Revealed, input: &Bits) -> Result<Bits> {
        let (circuit, instances) = (revealed.circuit(), revealed.instances());
        let colours = self.garbled.evaluate(channel, circuit, instances, input)?;
        Ok(self.decoding.decode(&colours)?)
    }
}

/// What decodes the outputs of circuits.
fn read_decoding(reader: &mut Reader<'_>, revealed: &Revealed) -> Result<OutputDecoding, DecodeError> {
    let outputs = revealed.output_bits();
    let bytes = reader.bytes(Bits::byte_len(outputs))?;
    OutputDecoding::from_bytes(outputs, bytes).map_err(|_| DecodeError::Invalid { what: "output decoding" })
}

/// Offline: garbles circuits whose outputs the client learns, and sends what decodes them; returns the `D_i`.
pub(super) fn garble_revealing<S: CorrelatedSender>(
    session: &mut GarblingSession<S>,
    channel: &mut dyn Channel,
    revealed: &Revealed,
    garbler_bits: &Bits,
    rng: &mut Prg,
) -> Result<InputLabels> {
    let (circuit, instances) = (revealed.circuit(), revealed.instances());
    let (wires, _) = session.transfers(channel, circuit.evaluator_inputs() * instances)?;
    let (labels, permute) = garble(session, channel, (circuit, instances), wires, garbler_bits, rng)?;
    channel.send(kind::DECODING, &OutputDecoding::new(permute).to_bytes())?;
    Ok(labels)
}

/// The client's one-time material: the garbled circuit, labels of random bits, and what decodes the outputs.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_yao::ClientRevealedMaterial) {
///     let copy = material.clone();
/// }
/// ```
pub struct ClientRevealedMaterial(pub(super) Revealing);

/// The server's one-time material: what answers the client with labels.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_yao::ServerRevealedMaterial) {
///     let copy = material.clone();
/// }
/// ```
pub struct ServerRevealedMaterial(pub(super) InputLabels);

/// The client's side: evaluator.
pub struct ClientRevealed(Revealed);

/// The server's side: garbler.
pub struct ServerRevealed(Revealed);

impl ClientRevealed {
    /// Prepares a circuit.
    #[must_use]
    pub fn new(revealed: Revealed) -> Self {
        Self(revealed)
    }

    /// Offline, first half: asks for the transfers.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn request<R: CorrelatedReceiver>(
        &self,
        channel: &mut dyn Channel,
        session: &mut EvaluationSession<R>,
    ) -> Result<ClientRequest> {
        request(session, channel, self.0.circuit(), self.0.instances(), 0)
    }

    /// Offline, second half: receives the circuit and what decodes it.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's messages are not the ones due.
    pub fn receive(
        &self,
        channel: &mut dyn Channel,
        request: ClientRequest,
    ) -> Result<ClientRevealedMaterial> {
        request.receive_revealing(channel, &self.0).map(ClientRevealedMaterial)
    }

    pub(super) fn decode(&self, reader: &mut Reader<'_>) -> Result<ClientRevealedMaterial, DecodeError> {
        Revealing::decode(reader, &self.0).map(ClientRevealedMaterial)
    }

    /// Online: what the client learns.
    ///
    /// # Errors
    /// [`ProtocolError::WrongRing`] or [`ProtocolError::Length`] if `share` does not fit; [`ProtocolError::Channel`] if the peer's message is not the one due, an index is
    /// not of a class, one comes twice, or a probability is above one.
    pub fn online(
        &self,
        channel: &mut dyn Channel,
        material: ClientRevealedMaterial,
        share: &Share,
    ) -> Result<Outcome> {
        let input = self.0.evaluator_bits(share)?;
        let outputs = material.0.reveal(channel, &self.0, &input)?;
        self.0.outcome(&outputs).ok_or(ChannelError::Malformed { what: "garbled tables" }.into())
    }
}

impl ServerRevealed {
    /// Prepares a circuit.
    #[must_use]
    pub fn new(revealed: Revealed) -> Self {
        Self(revealed)
    }

    /// Offline: garbles for the server's share of the scores and sends what decodes the outputs.
    ///
    /// # Errors
    /// [`ProtocolError::WrongRing`] or [`ProtocolError::Length`] if `share` does not fit; any failure of the channel.
    pub fn offline<S: CorrelatedSender>(
        &self,
        channel: &mut dyn Channel,
        session: &mut GarblingSession<S>,
        share: &Share,
        rng: &mut Prg,
    ) -> Result<ServerRevealedMaterial> {
        let garbler_bits = self.0.garbler_bits(share)?;
        garble_revealing(session, channel, &self.0, &garbler_bits, rng).map(ServerRevealedMaterial)
    }

    pub(super) fn decode(&self, reader: &mut Reader<'_>) -> Result<ServerRevealedMaterial, DecodeError> {
        let circuit = self.0.circuit();
        let wires = circuit.evaluator_inputs() * self.0.instances();
        InputLabels::decode(reader, circuit, wires).map(ServerRevealedMaterial)
    }

    /// Online: answers the client's input; the client learns the outputs.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's message is not the one due.
    pub fn online(&self, channel: &mut dyn Channel, material: ServerRevealedMaterial) -> Result<()> {
        material.0.answer(channel)
    }
}
