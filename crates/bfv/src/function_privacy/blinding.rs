//! What hides the function, made ahead of time.

use lanner_ring::{Coeff, Poly, sample};
use rand_core::CryptoRng;
use zeroize::ZeroizeOnDrop;

use super::Budget;
use crate::{BfvError, Ciphertext, NoiseBound, PlaintextModulus, PublicKey};

/// A fresh encryption of zero and fresh flooding noise, for one ciphertext. It cannot be cloned.
#[derive(ZeroizeOnDrop)]
pub struct Blinding {
    #[zeroize(skip)]
    pub(super) modulus: PlaintextModulus,
    #[zeroize(skip)]
    pub(super) budget: Budget,
    /// The bound on the noise that is hidden.
    #[zeroize(skip)]
    pub(super) noise: NoiseBound,
    pub(super) zero: Ciphertext,
    pub(super) flood: Poly<Coeff>,
}

impl Blinding {
    /// Makes the blinding of a ciphertext modulo `t` of all limbs whose noise will be within `noise`, for the owner of `key`.
    ///
    /// `noise` must follow from the public architecture: take it from the operations ([`NoiseBound`]), not from weights.
    ///
    /// # Errors
    /// [`BfvError::Budget`] if the parameters have no room to hide that much noise; [`BfvError::Mismatch`] if the key
    /// belongs to other parameters.
    pub fn prepare(
        modulus: &PlaintextModulus,
        key: &PublicKey,
        noise: NoiseBound,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<Self, BfvError> {
        Self::prepare_at(modulus, key, noise, modulus.parameters().limbs(), rng)
    }

    /// Makes the blinding of a ciphertext of a number of limbs.
    ///
    /// # Errors
    /// As [`Self::prepare`]; [`BfvError::Limbs`] unless the parameters have so many.
    pub fn prepare_at(
        modulus: &PlaintextModulus,
        key: &PublicKey,
        noise: NoiseBound,
        limbs: usize,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<Self, BfvError> {
        let parameters = modulus.parameters();
        parameters.check_same(key.parameters())?;
        let budget = Budget::at(modulus, noise, limbs)?;
        let zero = key.encrypt_zero(limbs, rng);
        let flood = sample::flood(&parameters.basis(budget.flood_limbs()), budget.flood_bits(), rng);
        Ok(Self { modulus: modulus.clone(), budget, noise, zero, flood })
    }

    /// The public plan it follows.
    #[must_use]
    pub fn budget(&self) -> Budget {
        self.budget
    }
}

/// A protection to leave out, so that tests can show that its absence is noticed. Builds for use do not have it.
#[cfg(any(test, debug_assertions))]
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// The encryption of zero is the trivial one.
    NoEncryptionOfZero,
    /// The flooding noise is zero.
    NoFlooding,
}

#[cfg(any(test, debug_assertions))]
impl Blinding {
    /// The blinding without one of its protections.
    #[doc(hidden)]
    #[must_use]
    pub fn broken(mut self, defect: Defect) -> Self {
        match defect {
            Defect::NoEncryptionOfZero => {
                let none = || Poly::zero(self.zero.c0.basis());
                (self.zero.c0, self.zero.c1) = (none(), none());
            }
            Defect::NoFlooding => self.flood = Poly::zero(self.flood.basis()),
        }
        self
    }
}
