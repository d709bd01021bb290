//! The client's side of a packed layer.

use lanner_bfv::Parameters;
use lanner_primitives::{Ring, Share};
use lanner_step::ProtocolError;
use zeroize::Zeroizing;

use super::layout::Layout;
use super::packing::Packing;
use crate::exchange::{self, SlotEncoding};

/// A packed layer as the client knows it.
pub type ClientLayer = exchange::ClientLayer<Layout>;

impl ClientLayer {
    /// Prepares a layer modulo `prime`.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if the prime does not fit the parameters.
    pub fn new(packing: &Packing, parameters: &Parameters, prime: u64) -> Result<Self, ProtocolError> {
        Self::with(Layout::new(packing, Ring::Prime(prime)), parameters, prime, packing.ciphertexts())
    }
}

impl SlotEncoding for Layout {
    fn pack(&self, share: &Share) -> Result<Vec<Zeroizing<Vec<u64>>>, ProtocolError> {
        Self::pack(self, share)
    }

    fn unpack(&self, outputs: &[Zeroizing<Vec<u64>>]) -> Result<Share, ProtocolError> {
        Self::unpack(self, outputs)
    }
}
