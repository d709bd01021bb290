//! The client: evaluator, and receiver of oblivious transfer.

use lanner_ot::{CorrelatedReceiver, arithmetic};
use lanner_primitives::Share;
use lanner_step::{EvaluationSession, ProtocolError, kind};
use lanner_wire::{Channel, DecodeError, Reader, Writer};

use super::evaluating::{ClientRequest, Garbled, Transfers, request};
use super::function::Layer;
use crate::bits_to_ring::ClientBits;

/// One-time material of an activation: garbled tables, labels of random bits, and what turns the output arithmetic.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_yao::ClientMaterial) {
///     let copy = material.clone();
/// }
/// ```
pub struct ClientMaterial {
    garbled: Garbled,
    output: ClientBits,
}

/// An activation layer on the client's side.
pub struct ClientLayer(Layer);

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
        request(session, channel, layer.circuit(), layer.instances(), layer.output_bits())
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
    /// [`ProtocolError::WrongRing`] or [`ProtocolError::Length`] if `share` does not fit; [`ProtocolError::Channel`] if the peer's messages are not the
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
