//! Encodings of vectors into plaintext polynomials.

mod coefficients;
mod slots;

pub use coefficients::CoefficientEncoder;
pub use slots::SlotEncoder;

use lanner_ring::{Eval, Poly, RnsBasis};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::{BfvError, Plaintext};

/// A plaintext polynomial lifted to centred integers and prepared for products with ciphertexts.
///
/// It usually holds weights: it is zeroized when dropped and has neither `Debug` nor `==`.
#[derive(Clone)]
pub struct Multiplier {
    /// Over the limbs, or over the limbs and the special modulus.
    pub(crate) poly: Poly<Eval>,
    pub(crate) t: u64,
}

impl Multiplier {
    /// Lifts the coefficients of `plaintext` to `(-t/2, t/2]` and transforms them over `basis`.
    pub(crate) fn new(plaintext: &Plaintext, basis: &RnsBasis) -> Result<Self, BfvError> {
        let t = plaintext.modulus().value();
        let half = t / 2;
        let center = |value: &u64| {
            let above = ((half.wrapping_sub(*value) as i64) >> 63) as u64;
            value.wrapping_sub(t & above) as i64
        };
        let mut lifted: Vec<i64> = plaintext.coefficients().iter().map(center).collect();
        let poly = Poly::from_signed(basis, &lifted)?.into_eval();
        lifted.zeroize();
        Ok(Self { poly, t })
    }

    /// # Errors
    /// [`BfvError::Mismatch`] unless `basis` is a prefix of the factor's.
    pub(crate) fn check_covers(&self, basis: &RnsBasis) -> Result<(), BfvError> {
        let own = self.poly.basis();
        let covers = basis.len() <= own.len() && own.prefix(basis.len()).same(basis);
        if covers { Ok(()) } else { Err(BfvError::Mismatch { what: "the bases of ciphertext and factor" }) }
    }
}

impl Drop for Multiplier {
    fn drop(&mut self) {
        self.poly.zeroize();
    }
}

impl ZeroizeOnDrop for Multiplier {}
