//! The client's side of a frequency-domain layer.

use lanner_bfv::Parameters;
use lanner_primitives::Share;
use lanner_step::{ProtocolError, Result};
use zeroize::Zeroizing;

use super::packing::Packing;
use super::spectrum::Spectrum;
use crate::exchange::{self, SlotEncoding};

/// A frequency-domain layer as the client knows it: it encrypts the transform of its share, and transforms what it decrypts.
pub type ClientLayer = exchange::ClientLayer<Spectrum>;

impl ClientLayer {
    /// Prepares a layer.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if the prime does not fit the parameters; [`ProtocolError::Length`] if the packing is of another degree.
    pub fn new(packing: &Packing, parameters: &Parameters) -> Result<Self> {
        ProtocolError::check_length("slots of a packing", parameters.degree(), packing.slots())?;
        Self::with(Spectrum::new(packing)?, parameters, packing.prime(), packing.ciphertexts())
    }
}

impl SlotEncoding for Spectrum {
    fn pack(&self, share: &Share) -> Result<Vec<Zeroizing<Vec<u64>>>> {
        Self::pack(self, share)
    }

    fn unpack(&self, outputs: &[Zeroizing<Vec<u64>>]) -> Result<Share> {
        Self::unpack(self, outputs)
    }
}
