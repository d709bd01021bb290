//! The client: a packed layer whose input is its share and the square of its share.

use lanner_bfv::Parameters;
use lanner_primitives::{Ring, Share};
use lanner_step::ProtocolError;
use zeroize::Zeroizing;

use super::{Target, squared};
use crate::exchange::{self, SlotEncoding};
use crate::gazelle::Layout;

/// Squares as the client knows them: online it sends `[c]`, then `[c^2]`, and receives its share of the target.
pub type ClientSquare = exchange::ClientLayer<WithSquares>;

/// The slots of a share, then those of its squares.
pub struct WithSquares {
    layout: Layout,
    prime: u64,
}

impl ClientSquare {
    /// The client's side of squares modulo `prime`.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if the prime does not fit the parameters.
    pub fn new(target: &Target, parameters: &Parameters, prime: u64) -> Result<Self, ProtocolError> {
        let layout = target.layout(parameters, Ring::Prime(prime));
        Self::with(WithSquares { layout, prime }, parameters, prime, target.ciphertexts(parameters))
    }
}

impl SlotEncoding for WithSquares {
    fn pack(&self, share: &Share) -> Result<Vec<Zeroizing<Vec<u64>>>, ProtocolError> {
        let mut slots = self.layout.pack(share)?;
        // Slots without an element hold zero, whose square is zero.
        slots.extend(self.layout.pack(&squared(share, self.prime)?)?);
        Ok(slots)
    }

    fn unpack(&self, outputs: &[Zeroizing<Vec<u64>>]) -> Result<Share, ProtocolError> {
        self.layout.unpack(outputs)
    }
}
