//! The client's side of a packed layer.

use lanner_bfv::{BfvError, Parameters, SecretKey};
use lanner_ring::Modulus;
use lanner_share::{Ring, Share};
use lanner_wire::Channel;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::layout::Layout;
use super::packing::Packing;
use crate::ProtocolError;
use crate::linear::transfer::{ClientMaterial, ClientPending, ClientRequest, ClientTransfer};

/// A layer as the client knows it: its layout, its ring, and whether it also sends the squares of its share.
pub struct ClientLayer {
    layout: Layout,
    transfer: ClientTransfer,
    squares: Option<Modulus>,
}

impl ClientLayer {
    /// Prepares a layer modulo `prime`.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if the prime does not fit the parameters.
    pub fn new(packing: &Packing, parameters: &Parameters, prime: u64) -> Result<Self, ProtocolError> {
        let layout = Layout::new(packing, Ring::Prime(prime));
        let transfer = ClientTransfer::new(parameters, prime, packing.ciphertexts())?;
        Ok(Self { layout, transfer, squares: None })
    }

    /// A layer of so many input and output ciphertexts whose input is the share, then the squares of the share.
    pub(crate) fn squaring(
        layout: Layout,
        parameters: &Parameters,
        prime: u64,
        ciphertexts: [usize; 2],
    ) -> Result<Self, ProtocolError> {
        let transfer = ClientTransfer::new(parameters, prime, ciphertexts)?;
        Ok(Self { layout, transfer, squares: Some(Modulus::new(prime).map_err(BfvError::from)?) })
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

    /// Online: sends the encrypted share, receives the client's share of the layer's output.
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
        let mut slots = self.layout.pack(share)?;
        if let Some(modulus) = &self.squares {
            let square = |slots: &Zeroizing<Vec<u64>>| slots.iter().map(|x| modulus.mul(*x, *x)).collect();
            let squares: Vec<_> = slots.iter().map(|slots| Zeroizing::new(square(slots))).collect();
            slots.extend(squares);
        }
        self.transfer.send(channel, material, &slots)
    }

    /// The second half of [`Self::online`].
    ///
    /// # Errors
    /// As there.
    pub fn finish(&self, channel: &mut dyn Channel, pending: ClientPending) -> Result<Share, ProtocolError> {
        self.layout.unpack(&self.transfer.finish(channel, pending)?)
    }
}
