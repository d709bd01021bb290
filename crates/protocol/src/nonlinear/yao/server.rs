//! The server: garbler, and sender of oblivious transfer.

use lanner_gc::{Circuit, GcError, OutputDecoding, batches};
use lanner_ot::{CorrelatedSender, CotSender, arithmetic, random_delta};
use lanner_primitives::{Bits, Block, Prg};
use lanner_share::Share;
use lanner_wire::{Channel, ChannelError, DecodeError, Kind, Reader, Writer};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::function::Layer;
use super::garbling::{Garbling, InputLabels};
use super::revealed::Revealed;
use crate::convert::bits_to_ring::ServerBits;
use crate::{ProtocolError, kind};

/// The server's state of garbling in one session: delta is the correlation of the oblivious transfers.
pub struct GarblingSession<S> {
    cot: S,
    salt: Block,
    next_batch: u64,
}

/// One-time material of an activation: what answers the client with labels, and what decodes its message.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_protocol::nonlinear::yao::ServerMaterial) {
///     let copy = material.clone();
/// }
/// ```
pub struct ServerMaterial {
    labels: InputLabels,
    /// The permute bits and their products.
    output: ServerBits,
}

/// An activation layer on the server's side.
pub struct ServerLayer(Layer);

impl GarblingSession<CotSender> {
    /// Set-up, once a session: base transfers with a fresh delta, and a fresh salt.
    ///
    /// # Errors
    /// [`ProtocolError::Ot`] if the peer's messages are not the ones due.
    pub fn setup(channel: &mut dyn Channel, rng: &mut impl CryptoRng) -> Result<Self, ProtocolError> {
        let cot = CotSender::setup(channel, random_delta(rng), rng)?;
        let salt = Block::public(rng);
        // S -> C: salt
        channel.send(kind::SALT, &salt.to_bytes())?;
        channel.flush()?;
        Ok(Self::new(cot, salt))
    }
}

impl<S: CorrelatedSender> GarblingSession<S> {
    /// Takes the session's source of oblivious transfers and its public salt, both fresh.
    #[must_use]
    pub fn new(cot: S, salt: Block) -> Self {
        Self { cot, salt, next_batch: 0 }
    }

    /// Takes `count` transfers that the client asks for: `q_i`, and the index of the first.
    fn transfers(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
    ) -> Result<(Zeroizing<Vec<Block>>, u64), ProtocolError> {
        let mut q = Zeroizing::new(Vec::with_capacity(count));
        let first = self.cot.extend_random(channel, count, &mut q)?;
        Ok((q, first))
    }

    /// Offline: garbles circuits whose outputs the client learns, and sends what decodes them; returns the `D_i`.
    pub(super) fn garble_revealing(
        &mut self,
        channel: &mut dyn Channel,
        revealed: &Revealed,
        garbler_bits: &Bits,
        rng: &mut Prg,
    ) -> Result<InputLabels, ProtocolError> {
        let (circuit, instances) = (revealed.circuit(), revealed.instances());
        let (wires, _) = self.transfers(channel, circuit.evaluator_inputs() * instances)?;
        let (labels, permute) = self.garble(channel, circuit, instances, wires, garbler_bits, rng)?;
        channel.send(kind::DECODING, &OutputDecoding::new(permute).to_bytes())?;
        Ok(labels)
    }

    /// Garbles and sends the tables; returns the `D_i` and the permute bits.
    fn garble(
        &mut self,
        channel: &mut dyn Channel,
        circuit: &Circuit,
        instances: usize,
        mut wires: Zeroizing<Vec<Block>>,
        garbler_bits: &Bits,
        rng: &mut Prg,
    ) -> Result<(InputLabels, Bits), ProtocolError> {
        let labels = InputLabels::random(circuit, wires.len(), self.cot.delta(), rng);
        let next_batch = self.next_batch.checked_add(batches(instances)).ok_or(GcError::BatchesExhausted)?;
        let garbling = Garbling {
            circuit,
            salt: self.salt,
            first_batch: self.next_batch,
            labels: &labels,
            garbler_bits,
        };
        // S -> C: tables
        let mut send = |chunk: &[u8]| Ok::<_, ProtocolError>(channel.send(kind::TABLES, chunk)?);
        // Before anything is sent: no batch is garbled twice, whatever fails.
        self.next_batch = next_batch;
        let permute = garbling.garble_all(instances, &mut wires, &mut send)?;
        Ok((labels, permute))
    }
}

impl ServerLayer {
    /// Prepares a layer.
    #[must_use]
    pub fn new(layer: Layer) -> Self {
        Self(layer)
    }

    /// Offline: garbles for the server's share of the input.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if `share` does not fit; any failure of the channel.
    pub fn offline<S: CorrelatedSender>(
        &self,
        channel: &mut dyn Channel,
        session: &mut GarblingSession<S>,
        share: &Share,
        rng: &mut Prg,
    ) -> Result<ServerMaterial, ProtocolError> {
        let (layer, ring) = (&self.0, self.0.encoding().ring);
        let (circuit, instances) = (layer.circuit(), layer.instances());
        let garbler_bits = layer.garbler_bits(share)?;
        let (wires, _) = session.transfers(channel, circuit.evaluator_inputs() * instances)?;
        // Taken before anything is sent, so that the client never has to read in order to go on asking.
        let (mut q, first) = session.transfers(channel, layer.output_bits())?;
        let (labels, permute) = session.garble(channel, circuit, instances, wires, &garbler_bits, rng)?;
        let a: Zeroizing<Vec<u64>> = Zeroizing::new(permute.iter().map(u64::from).collect());
        let products = arithmetic::send_extended(&session.cot, channel, ring, &a, &mut q, first)?;
        Ok(ServerMaterial { labels, output: ServerBits::new(permute, products)? })
    }

    pub(super) fn encode(&self, material: &ServerMaterial, writer: &mut Writer) {
        material.labels.encode(writer);
        material.output.encode(self.0.encoding().ring, writer);
    }

    /// Reads what [`Self::encode`] wrote.
    pub(super) fn decode(&self, reader: &mut Reader<'_>) -> Result<ServerMaterial, DecodeError> {
        let (layer, circuit) = (&self.0, self.0.circuit());
        Ok(ServerMaterial {
            labels: InputLabels::decode(reader, circuit, circuit.evaluator_inputs() * layer.instances())?,
            output: ServerBits::decode(reader, layer.encoding().ring, layer.output_bits())?,
        })
    }

    /// Online: returns the server's share of the output.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's messages are not the ones due.
    pub fn online(
        &self,
        channel: &mut dyn Channel,
        material: ServerMaterial,
    ) -> Result<Share, ProtocolError> {
        material.labels.answer(channel)?;
        // C -> S: e
        let masked = receive_bits(channel, kind::MASKED_BITS, self.0.output_bits())?;
        material.output.convert(self.0.encoding(), &masked)
    }
}

pub(super) fn receive_bits(
    channel: &mut dyn Channel,
    kind: Kind,
    bits: usize,
) -> Result<Bits, ProtocolError> {
    let bytes = channel.receive(kind, Bits::byte_len(bits))?;
    Bits::from_bytes(bits, &bytes).map_err(|_| ChannelError::Malformed { what: "bits" }.into())
}
