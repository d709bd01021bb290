//! The client: sends its share and the square of its share.

use lanner_bfv::{Parameters, SecretKey};
use lanner_share::{Ring, Share};
use lanner_wire::Channel;
use rand_core::CryptoRng;

use super::{Target, squared};
use crate::ProtocolError;
use crate::linear::gazelle::{ClientMaterial, ClientRequest, Layout};
use crate::linear::transfer::ClientTransfer;

/// Squares as the client knows them.
pub struct ClientSquare {
    layout: Layout,
    transfer: ClientTransfer,
    prime: u64,
}

impl ClientSquare {
    /// Prepares squares modulo `prime`.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if the prime does not fit the parameters.
    pub fn new(target: &Target, parameters: &Parameters, prime: u64) -> Result<Self, ProtocolError> {
        let transfer = ClientTransfer::new(parameters, prime, target.ciphertexts(parameters))?;
        Ok(Self { layout: target.layout(parameters, Ring::Prime(prime)), transfer, prime })
    }

    /// Offline, first half: announces the second halves of the encryptions to come.
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

    /// Online: sends the share and its square, receives the client's share of the target.
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
        // C -> S: [c], then [c^2]
        let mut slots = self.layout.pack(share)?;
        slots.extend(self.layout.pack(&squared(share, self.prime)?)?);
        let pending = self.transfer.send(channel, material, &slots)?;
        // S -> C: [W x^2 - r]
        self.layout.unpack(&self.transfer.finish(channel, pending)?)
    }
}
