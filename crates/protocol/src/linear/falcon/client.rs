//! The client's side of a frequency-domain layer.

use lanner_bfv::{Parameters, SecretKey};
use lanner_share::Share;
use lanner_wire::Channel;
use rand_core::CryptoRng;

use super::packing::Packing;
use super::spectrum::Spectrum;
use crate::ProtocolError;
use crate::linear::transfer::{ClientMaterial, ClientPending, ClientRequest, ClientTransfer};

/// A layer as the client knows it.
pub struct ClientLayer {
    spectrum: Spectrum,
    transfer: ClientTransfer,
}

impl ClientLayer {
    /// Prepares a layer.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if the prime does not fit the parameters; [`ProtocolError::Shape`] if the packing is of another degree.
    pub fn new(packing: &Packing, parameters: &Parameters) -> Result<Self, ProtocolError> {
        if packing.slots() != parameters.degree() {
            return Err(ProtocolError::Shape { what: "slots of a packing" });
        }
        let transfer = ClientTransfer::new(parameters, packing.prime(), packing.ciphertexts())?;
        Ok(Self { spectrum: Spectrum::new(packing)?, transfer })
    }

    /// Offline, first half: announces the second halves of the encryptions to come. All layers may do so before the
    /// first receives.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn request(
        &self,
        channel: &mut dyn Channel,
        key: &SecretKey,
        rng: &mut impl CryptoRng,
    ) -> Result<ClientRequest, ProtocolError> {
        self.transfer.request(channel, key, rng)
    }

    /// Offline, second half: receives the second halves of the outputs, in the order of the requests.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's message is not the one due.
    pub fn receive(
        &self,
        channel: &mut dyn Channel,
        key: &SecretKey,
        request: ClientRequest,
    ) -> Result<ClientMaterial, ProtocolError> {
        self.transfer.receive(channel, key, request)
    }

    /// Online: sends the encrypted transform of the share, receives the client's share of the layer's output.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's message is not the one due; [`ProtocolError::Shape`] if `share` does
    /// not fit.
    pub fn online(
        &self,
        channel: &mut dyn Channel,
        material: ClientMaterial,
        share: &Share,
    ) -> Result<Share, ProtocolError> {
        let pending = self.send(channel, material, share)?;
        self.finish(channel, pending)
    }

    /// The first half of [`Self::online`].
    ///
    /// # Errors
    /// As there.
    pub fn send(
        &self,
        channel: &mut dyn Channel,
        material: ClientMaterial,
        share: &Share,
    ) -> Result<ClientPending, ProtocolError> {
        self.transfer.send(channel, material, &self.spectrum.pack(share)?)
    }

    /// The second half of [`Self::online`].
    ///
    /// # Errors
    /// As there.
    pub fn finish(&self, channel: &mut dyn Channel, pending: ClientPending) -> Result<Share, ProtocolError> {
        self.spectrum.unpack(&self.transfer.finish(channel, pending)?)
    }
}
