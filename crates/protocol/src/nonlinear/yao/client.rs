//! The client: evaluator, and receiver of oblivious transfer.

use lanner_gc::{Circuit, Evaluator, OutputDecoding, TablesInMemory, batches, chunk_lengths};
use lanner_ot::{CorrelatedReceiver, CotReceiver, TransferHashes, arithmetic};
use lanner_primitives::{Bits, Block, parallel};
use lanner_share::Share;
use lanner_wire::{Channel, ChannelError, DecodeError, Reader, Writer};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::function::Layer;
use super::parts::{Part, in_turns, length, parts};
use super::revealed::Revealed;
use crate::convert::bits_to_ring::ClientBits;
use crate::step::encoding::{read_bits, read_blocks, write_bits, write_blocks};
use crate::{ProtocolError, kind};

/// The client's state of evaluation in one session.
pub struct EvaluationSession<R> {
    cot: R,
    salt: Block,
    next_batch: u64,
}

/// The transfers of a layer, asked for; the server's answer is still to be received.
pub struct ClientRequest {
    inputs: Transfers,
    /// One for each output bit that becomes arithmetic.
    outputs: Transfers,
    tweaks: Tweaks,
}

/// One-time material of an activation: garbled tables, labels of random bits, and what turns the output arithmetic.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_protocol::nonlinear::yao::ClientMaterial) {
///     let copy = material.clone();
/// }
/// ```
pub struct ClientMaterial {
    garbled: Garbled,
    output: ClientBits,
}

/// One-time material of a circuit whose outputs the client learns.
pub(super) struct Revealing {
    garbled: Garbled,
    decoding: OutputDecoding,
}

/// Random correlated transfers: choices `r_i` and blocks `t_i`, from index `first` on.
struct Transfers {
    choices: Bits,
    blocks: Zeroizing<Vec<Block>>,
    first: u64,
}

/// What a circuit's gates are hashed with: the session's salt, and the number of the first batch.
#[derive(Clone, Copy)]
struct Tweaks {
    salt: Block,
    first_batch: u64,
}

/// A circuit's instances ready to be evaluated, once.
struct Garbled {
    /// `r_i` of each input wire.
    choices: Bits,
    /// `t_i` of each input wire.
    labels: Zeroizing<Vec<Block>>,
    tables: Vec<u8>,
    tweaks: Tweaks,
}

/// An activation layer on the client's side.
pub struct ClientLayer(Layer);

impl EvaluationSession<CotReceiver> {
    /// Set-up, once a session: base transfers, and the salt of the server's garbling.
    ///
    /// # Errors
    /// [`ProtocolError::Ot`] or [`ProtocolError::Channel`] if the peer's messages are not the ones due.
    pub fn setup(channel: &mut dyn Channel, rng: &mut impl CryptoRng) -> Result<Self, ProtocolError> {
        let cot = CotReceiver::setup(channel, rng)?;
        // S -> C: salt
        let mut salt = [0; Block::BYTES];
        channel.receive_into(kind::SALT, &mut salt)?;
        Ok(Self::new(cot, Block::from_bytes(salt)))
    }
}

impl<R: CorrelatedReceiver> EvaluationSession<R> {
    /// Takes the session's source of oblivious transfers and its public salt.
    #[must_use]
    pub fn new(cot: R, salt: Block) -> Self {
        Self { cot, salt, next_batch: 0 }
    }

    /// Asks for the transfers of `instances` of `circuit`, and for `outputs` more.
    pub(super) fn request(
        &mut self,
        channel: &mut dyn Channel,
        circuit: &Circuit,
        instances: usize,
        outputs: usize,
    ) -> Result<ClientRequest, ProtocolError> {
        let inputs = self.transfers(channel, circuit.evaluator_inputs() * instances)?;
        let outputs = self.transfers(channel, outputs)?;
        let tweaks = self.take_batches(instances);
        Ok(ClientRequest { inputs, outputs, tweaks })
    }

    /// Asks for `count` transfers with random choices.
    fn transfers(&mut self, channel: &mut dyn Channel, count: usize) -> Result<Transfers, ProtocolError> {
        let mut blocks = Zeroizing::new(Vec::with_capacity(count));
        let (choices, first) = self.cot.extend_random(channel, count, &mut blocks)?;
        Ok(Transfers { choices, blocks, first })
    }

    /// The tweaks of the next circuit, which has a given number of instances.
    fn take_batches(&mut self, instances: usize) -> Tweaks {
        let tweaks = Tweaks { salt: self.salt, first_batch: self.next_batch };
        self.next_batch += batches(instances);
        tweaks
    }

    /// The hashes of the transfers.
    fn hashes(&self) -> &TransferHashes {
        self.cot.hashes()
    }
}

impl Transfers {
    /// Receives the tables whose input labels these transfers are.
    fn receive_tables(
        self,
        channel: &mut dyn Channel,
        circuit: &Circuit,
        instances: usize,
        tweaks: Tweaks,
    ) -> Result<Garbled, ProtocolError> {
        let mut tables = vec![0; circuit.table_bytes(instances)];
        let mut rest = tables.as_mut_slice();
        for length in parts(circuit, instances).flat_map(|part| chunk_lengths(circuit, part.len())) {
            let (chunk, later) = rest.split_at_mut(length);
            channel.receive_into(kind::TABLES, chunk)?;
            rest = later;
        }
        Ok(Garbled { choices: self.choices, labels: self.blocks, tables, tweaks })
    }
}

impl ClientRequest {
    /// Receives circuits whose outputs the client learns, and what decodes them.
    pub(super) fn receive_revealing(
        self,
        channel: &mut dyn Channel,
        revealed: &Revealed,
    ) -> Result<Revealing, ProtocolError> {
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
    pub(super) fn reveal(
        self,
        channel: &mut dyn Channel,
        revealed: &Revealed,
        input: &Bits,
    ) -> Result<Bits, ProtocolError> {
        let (circuit, instances) = (revealed.circuit(), revealed.instances());
        let colours = self.garbled.evaluate(channel, circuit, instances, input)?;
        Ok(self.decoding.decode(&colours)?)
    }
}

impl Garbled {
    fn encode(&self, writer: &mut Writer) {
        write_bits(&self.choices, writer);
        write_blocks(&self.labels, writer);
        writer.bytes(&self.tables);
        writer.bytes(&self.tweaks.salt.to_bytes());
        writer.u64(self.tweaks.first_batch);
    }

    /// Reads what [`Self::encode`] wrote of a given number of instances of a circuit.
    fn decode(reader: &mut Reader<'_>, circuit: &Circuit, instances: usize) -> Result<Self, DecodeError> {
        let wires = circuit.evaluator_inputs() * instances;
        let (choices, labels) = (read_bits(reader, wires)?, read_blocks(reader, wires)?);
        let tables = reader.bytes(circuit.table_bytes(instances))?.to_vec();
        let tweaks = Tweaks { salt: Block::from_bytes(reader.array()?), first_batch: reader.u64()? };
        Ok(Self { choices, labels, tables, tweaks })
    }

    /// Online: obtains the labels of `input` and evaluates; returns the colour bits of the output.
    fn evaluate(
        self,
        channel: &mut dyn Channel,
        circuit: &Circuit,
        instances: usize,
        input: &Bits,
    ) -> Result<Bits, ProtocolError> {
        let Self { choices, mut labels, tables, tweaks: Tweaks { salt, first_batch } } = self;
        // C -> S: d
        channel.send(kind::MASKED_INPUT, &input.xor(&choices)?.to_bytes())?;
        let mut colours = Vec::new();
        let mut answer = Zeroizing::new(Vec::new());
        let each = (length(circuit) * circuit.evaluator_inputs()).max(1);
        let mut rest = tables.as_slice();
        let tables_of = |part: Part| {
            let (own, later) = rest.split_at(circuit.table_bytes(part.len()));
            rest = later;
            (part, own)
        };
        for mut some in in_turns(parts(circuit, instances).map(tables_of).zip(labels.chunks_mut(each))) {
            for (_, labels) in &mut some {
                // S -> C: D xor d Delta
                answer.resize(labels.len(), Block::ZERO);
                channel.receive_into(kind::INPUT_LABELS, Block::slice_as_bytes_mut(&mut answer))?;
                labels.iter_mut().zip(answer.iter()).for_each(|(label, answer)| *label ^= *answer);
            }
            colours.extend(parallel::map(some, |((part, tables), labels)| {
                let mut evaluator = Evaluator::new(circuit, salt, part.first_batch(first_batch));
                evaluator.evaluate(part.len(), labels, &mut TablesInMemory::new(tables))
            }));
        }
        Ok(Bits::join(&colours.into_iter().collect::<Result<Vec<_>, _>>()?)?)
    }
}

impl ClientLayer {
    /// Prepares a layer.
    #[must_use]
    pub fn new(layer: Layer) -> Self {
        Self(layer)
    }

    /// Offline, first half: asks for both kinds of transfers. All layers may ask before the first receives.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn request<R: CorrelatedReceiver>(
        &self,
        channel: &mut dyn Channel,
        session: &mut EvaluationSession<R>,
    ) -> Result<ClientRequest, ProtocolError> {
        let layer = &self.0;
        session.request(channel, layer.circuit(), layer.instances(), layer.output_bits())
    }

    /// Offline, second half: receives garbled tables and shares, in the order of the requests.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's messages are not the ones due.
    pub fn receive<R: CorrelatedReceiver>(
        &self,
        channel: &mut dyn Channel,
        session: &EvaluationSession<R>,
        request: ClientRequest,
    ) -> Result<ClientMaterial, ProtocolError> {
        let (layer, hashes) = (&self.0, session.hashes());
        let ClientRequest { inputs, outputs, tweaks } = request;
        let garbled = inputs.receive_tables(channel, layer.circuit(), layer.instances(), tweaks)?;
        let Transfers { choices, mut blocks, first } = outputs;
        let ring = layer.encoding().ring;
        let products = arithmetic::receive_extended(hashes, channel, ring, &choices, &mut blocks, first)?;
        Ok(ClientMaterial { garbled, output: ClientBits::new(choices, products)? })
    }

    pub(super) fn encode(&self, material: &ClientMaterial, writer: &mut Writer) {
        material.garbled.encode(writer);
        material.output.encode(self.0.encoding().ring, writer);
    }

    /// Reads what [`Self::encode`] wrote.
    pub(super) fn decode(&self, reader: &mut Reader<'_>) -> Result<ClientMaterial, DecodeError> {
        let layer = &self.0;
        Ok(ClientMaterial {
            garbled: Garbled::decode(reader, layer.circuit(), layer.instances())?,
            output: ClientBits::decode(reader, layer.encoding().ring, layer.output_bits())?,
        })
    }

    /// Online: returns the client's share of the output.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if `share` does not fit; [`ProtocolError::Channel`] if the peer's messages are not the
    /// ones due.
    pub fn online(
        &self,
        channel: &mut dyn Channel,
        material: ClientMaterial,
        share: &Share,
    ) -> Result<Share, ProtocolError> {
        let layer = &self.0;
        let input = layer.evaluator_bits(share)?;
        let colours = material.garbled.evaluate(channel, layer.circuit(), layer.instances(), &input)?;
        // C -> S: e
        let (share, masked) = material.output.convert(layer.encoding(), &colours)?;
        channel.send(kind::MASKED_BITS, &masked.to_bytes())?;
        channel.flush()?;
        Ok(share)
    }
}

/// What decodes the outputs of circuits.
fn read_decoding(reader: &mut Reader<'_>, revealed: &Revealed) -> Result<OutputDecoding, DecodeError> {
    let outputs = revealed.output_bits();
    let bytes = reader.bytes(Bits::byte_len(outputs))?;
    OutputDecoding::from_bytes(outputs, bytes).map_err(|_| DecodeError::Invalid { what: "output decoding" })
}
