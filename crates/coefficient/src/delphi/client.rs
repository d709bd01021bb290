//! The client's side of a layer that is encrypted ahead of time.

use lanner_bfv::SecretKey;
use lanner_primitives::Share;
use lanner_step::encoding::{read_share, write_share};
use lanner_step::messages::send_share;
use lanner_step::{ProtocolError, kind};
use lanner_wire::{Channel, DecodeError, Reader, Writer};
use rand_core::CryptoRng;

use crate::cheetah::{self, Scheme};

/// A layer as the client runs it.
pub struct ClientLayer {
    layer: cheetah::ClientLayer,
    inputs: usize,
    outputs: usize,
}

/// The share that was encrypted in place of the input's.
pub struct ClientRequest(Share);

/// One-time material of one run.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_coefficient::delphi::ClientMaterial) {
///     let copy = material.clone();
/// }
/// ```
pub struct ClientMaterial {
    /// The share that was encrypted in place of the input's: it masks that one.
    mask: Share,
    share: Share,
}

impl ClientMaterial {
    /// The client's share of the outputs, which is known before the input is.
    #[must_use]
    pub fn share(&self) -> &Share {
        &self.share
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        write_share(&self.mask, writer);
        write_share(&self.share, writer);
    }
}

impl ClientLayer {
    /// Lays the layer out.
    ///
    /// # Errors
    /// None: what does not fit was refused when the scheme was made.
    pub fn new(scheme: Scheme) -> Result<Self, ProtocolError> {
        Self::of(cheetah::ClientLayer::new(scheme)?)
    }

    /// The layer that runs that one ahead of time.
    pub(super) fn of(layer: cheetah::ClientLayer) -> Result<Self, ProtocolError> {
        let shape = layer.scheme().packing().shape();
        let (inputs, outputs) = (shape.inputs(), shape.outputs()?);
        Ok(Self { layer, inputs, outputs })
    }

    /// Offline: draws a share of the input, and sends its encryptions, both halves.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn request(
        &self,
        channel: &mut dyn Channel,
        key: &SecretKey,
        rng: &mut impl CryptoRng,
    ) -> Result<ClientRequest, ProtocolError> {
        let mask = Share::random(self.layer.scheme().input_ring(), self.inputs, rng);
        // C -> S: seeds of c1, c0 of the mask
        let request = self.layer.request(channel, key, rng)?;
        self.layer.send(channel, request, &mask)?;
        Ok(ClientRequest(mask))
    }

    /// Offline: receives both halves of the outputs, and opens them.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's messages are not the ones due.
    pub fn receive(
        &self,
        channel: &mut dyn Channel,
        key: &SecretKey,
        request: ClientRequest,
    ) -> Result<ClientMaterial, ProtocolError> {
        // S -> C: c1 of each output, then c0
        let phases = self.layer.receive_phases(channel, key)?;
        Ok(ClientMaterial { mask: request.0, share: self.layer.open(channel, phases)? })
    }

    /// Reads what [`ClientMaterial::encode`] wrote.
    pub(super) fn decode(&self, reader: &mut Reader<'_>) -> Result<ClientMaterial, DecodeError> {
        let scheme = self.layer.scheme();
        let mask = read_share(reader, scheme.input_ring(), self.inputs)?;
        Ok(ClientMaterial { mask, share: read_share(reader, scheme.ring(), self.outputs)? })
    }

    /// Online: this party's share of the outputs, in [`Scheme::ring`].
    ///
    /// # Errors
    /// [`ProtocolError::WrongRing`] or [`ProtocolError::Length`] if the share is not the layer's; those of the channel.
    pub fn online(
        &self,
        channel: &mut dyn Channel,
        material: ClientMaterial,
        share: &Share,
    ) -> Result<Share, ProtocolError> {
        self.layer.scheme().check_input(share)?;
        // C -> S: x_C - r
        send_share(channel, kind::LINEAR_DIFFERENCE, &share.sub(&material.mask)?)?;
        channel.flush()?;
        Ok(material.share)
    }
}
