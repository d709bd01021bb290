//! The server: garbler, and sender of oblivious transfer.

use lanner_ot::{CorrelatedSender, arithmetic};
use lanner_primitives::{Prg, Share};
use lanner_step::{GarblingSession, ProtocolError, kind};
use lanner_wire::{Channel, DecodeError, Reader, Writer};
use zeroize::Zeroizing;

use super::function::Layer;
use super::garbling::{InputLabels, garble, receive_bits};
use crate::bits_to_ring::ServerBits;

/// One-time material of an activation: what answers the client with labels, and what decodes its message.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_yao::ServerMaterial) {
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

impl ServerLayer {
    /// Prepares a layer.
    #[must_use]
    pub fn new(layer: Layer) -> Self {
        Self(layer)
    }

    /// Offline: garbles for the server's share of the input.
    ///
    /// # Errors
    /// [`ProtocolError::WrongRing`] or [`ProtocolError::Length`] if `share` does not fit; any failure of the channel.
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
        let (labels, permute) = garble(session, channel, (circuit, instances), wires, &garbler_bits, rng)?;
        let a: Zeroizing<Vec<u64>> = Zeroizing::new(permute.iter().map(u64::from).collect());
        let products = arithmetic::send_extended(session.cot(), channel, ring, &a, &mut q, first)?;
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
