//! Encodings of vectors into plaintext polynomials.

mod coefficients;
mod slots;

pub use coefficients::CoefficientEncoder;
pub use slots::SlotEncoder;

use lanner_ring::{Eval, Poly, RnsBasis};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::{BfvError, Parameters, Plaintext};

/// A plaintext polynomial lifted to centred integers and prepared for products with ciphertexts.
///
/// It usually holds weights: it is zeroized when dropped and has neither `Debug` nor `==`.
#[derive(Clone)]
pub struct Multiplier {
    /// Over the limbs, or over the limbs and the special modulus.
    pub(crate) poly: Poly<Eval>,
    /// A public bound on the 2-norm of its coefficients.
    pub(crate) norm: f64,
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
        Ok(Self { poly, norm: largest_norm(basis.degree(), t) })
    }

    /// The same integer in every slot, over the limbs and the special modulus: one coefficient, so that products have less
    /// noise. `bound` is public and not below its magnitude.
    ///
    /// # Errors
    /// [`BfvError::Range`] if the magnitude exceeds the bound; [`BfvError::NoSpecialModulus`].
    pub fn constant(parameters: &Parameters, value: i64, bound: u64) -> Result<Self, BfvError> {
        if value.unsigned_abs() > bound {
            return Err(BfvError::Range { index: 0, modulus: bound });
        }
        let mut poly = Poly::zero(parameters.key_switching()?);
        let magnitude = value.unsigned_abs();
        for (limb, modulus) in poly.limbs_mut().zip(parameters.extended().moduli()) {
            let residue = modulus.reduce(magnitude);
            limb.fill(if value < 0 { modulus.sub(0, residue) } else { residue });
        }
        Ok(Self { poly, norm: bound as f64 })
    }

    /// # Errors
    /// [`BfvError::Mismatch`] unless `basis` is a prefix of the factor's.
    pub(crate) fn check_covers(&self, basis: &RnsBasis) -> Result<(), BfvError> {
        let own = self.poly.basis();
        let covers = basis.len() <= own.len() && own.prefix(basis.len()).same(basis);
        if covers { Ok(()) } else { Err(BfvError::Mismatch { what: "the bases of ciphertext and factor" }) }
    }
}

/// The largest 2-norm of a plaintext modulo `t`.
pub(crate) fn largest_norm(degree: usize, t: u64) -> f64 {
    (t as f64 / 2.0) * (degree as f64).sqrt()
}

impl Drop for Multiplier {
    fn drop(&mut self) {
        self.poly.zeroize();
    }
}

impl ZeroizeOnDrop for Multiplier {}
