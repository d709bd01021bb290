//! Squares of shared values: each party squares its own share, and one product gives both cross terms.

use lanner_share::{Ring, Share};

use super::moves::{Move, Moves};
use super::run::{Run, Values, mask};
use crate::ProtocolError;

/// See [`super::Layer::square`].
#[derive(Clone, Debug)]
pub(super) struct Square {
    values: usize,
    bits: u32,
}

impl Square {
    pub(super) fn new(values: usize, bits: u32) -> Result<Self, ProtocolError> {
        if !(2..=62).contains(&bits) {
            return Err(ProtocolError::Shape { what: "bits of a square" });
        }
        Ok(Self { values, bits })
    }

    /// `(a + b)^2 = a^2 + b^2 + 2 a b`: the product is needed modulo half of the ring.
    pub(super) fn moves(&self) -> Moves {
        Moves(vec![Move::Products { values: self.values, bits: self.bits - 1 }])
    }

    pub(super) fn run(&self, run: &mut Run, x: &[u64]) -> Result<Share, ProtocolError> {
        let ring = Ring::Pow2(self.bits);
        let low: Values = zeroize::Zeroizing::new(x.iter().map(|x| x & mask(self.bits - 1)).collect());
        let cross = run.product(&low, self.bits - 1)?;
        let squares = x.iter().zip(cross.iter()).map(|(x, cross)| ring.add(x.wrapping_mul(*x), cross << 1));
        Ok(Share::new(ring, squares.collect())?)
    }
}
