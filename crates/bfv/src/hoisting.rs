//! Rotations of one ciphertext that share its decomposition into digits ([HS18](https://eprint.iacr.org/2018/244)).

use std::sync::OnceLock;

use lanner_ring::{Eval, GaloisElement, Modulus, Poly, RnsBasis};

use crate::key_switching::{Digits, Switched};
use crate::keys::SwitchingKey;
use crate::{BfvError, Ciphertext, EvaluationKeys, NoiseBound, Parameters};

/// A ciphertext with the digits of its second half: what every rotation of it starts from.
pub struct Hoisted<'a> {
    parameters: &'a Parameters,
    ciphertext: &'a Ciphertext,
    /// The ciphertext's limbs and the special modulus.
    basis: &'a RnsBasis,
    /// Whether there will be more than one rotation.
    many: bool,
    /// Made for the first rotation that is none.
    digits: OnceLock<Digits<'a>>,
}

/// A ciphertext over the limbs and the special modulus `P`, multiplied by `P`: a rotated one, or a sum of products of such.
#[derive(Clone)]
pub struct ExtendedCiphertext {
    pub(crate) c0: Poly<Eval>,
    pub(crate) c1: Poly<Eval>,
    /// In units of `P`.
    pub(crate) noise: NoiseBound,
}

impl<'a> Hoisted<'a> {
    /// For many rotations.
    pub(crate) fn new(parameters: &'a Parameters, ciphertext: &'a Ciphertext) -> Result<Self, BfvError> {
        parameters.check_basis(ciphertext.c1.basis())?;
        let basis = parameters.key_switching(ciphertext.limbs())?;
        Ok(Self { parameters, ciphertext, basis, many: true, digits: OnceLock::new() })
    }

    /// For one rotation.
    pub(crate) fn once(parameters: &'a Parameters, ciphertext: &'a Ciphertext) -> Result<Self, BfvError> {
        Ok(Self { many: false, ..Self::new(parameters, ciphertext)? })
    }

    fn digits(&self) -> &Digits<'a> {
        let make = if self.many { Digits::lifted } else { Digits::once };
        self.digits.get_or_init(|| make(self.basis, &self.ciphertext.c1))
    }

    /// The encryption under an automorphism.
    ///
    /// # Errors
    /// [`BfvError::MissingKey`]; [`BfvError::Limbs`] if the key is for fewer limbs; [`BfvError::Mismatch`] for keys of other parameters.
    pub fn apply(&self, element: GaloisElement, keys: &EvaluationKeys) -> Result<Ciphertext, BfvError> {
        if element.exponent() == 1 {
            return Ok(self.ciphertext.clone());
        }
        let key = self.key(element, keys)?;
        let [c0, c1] = self.switched(key).divided([Some(&self.ciphertext.c0), None]);
        let noise = self.ciphertext.noise.switched_key_at(self.parameters, self.ciphertext.limbs());
        Ok(Ciphertext { c0, c1, noise })
    }

    /// The encryption rotated: slot `i` of each row is slot `i + steps`.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn rotate(&self, steps: isize, keys: &EvaluationKeys) -> Result<Ciphertext, BfvError> {
        self.apply(GaloisElement::rotation(steps, self.parameters.degree())?, keys)
    }

    /// The encryption under an automorphism, before the division by the special modulus.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn apply_extended(
        &self,
        element: GaloisElement,
        keys: &EvaluationKeys,
    ) -> Result<ExtendedCiphertext, BfvError> {
        if element.exponent() == 1 {
            return Ok(self.extended());
        }
        let key = self.key(element, keys)?;
        let [c0, c1] = self.switched(key).scaled([Some(&self.ciphertext.c0), None]);
        let noise = self.ciphertext.noise.switched_key_extended_at(self.parameters, self.ciphertext.limbs());
        Ok(ExtendedCiphertext { c0, c1, noise })
    }

    fn switched<'s>(&'s self, key: &'s SwitchingKey) -> Switched<'s> {
        Switched::new(self.digits(), key)
    }

    /// `P (c0, c1)`.
    fn extended(&self) -> ExtendedCiphertext {
        let Ciphertext { c0, c1, noise } = self.ciphertext;
        let special = self.parameters.special().map_or(1, Modulus::value);
        let scale = |part: &Poly<Eval>| {
            let mut scaled = Poly::zero(self.basis);
            // Modulo P itself it is zero.
            for (j, (modulus, values)) in self.parameters.moduli().iter().zip(part.limbs()).enumerate() {
                let limb = scaled.limb_mut(j);
                limb.copy_from_slice(values);
                modulus.mul_scalar_slice(limb, modulus.shoup(special));
            }
            scaled
        };
        ExtendedCiphertext { c0: scale(c0), c1: scale(c1), noise: *noise }
    }

    fn key<'k>(
        &self,
        element: GaloisElement,
        keys: &'k EvaluationKeys,
    ) -> Result<&'k SwitchingKey, BfvError> {
        self.parameters.check_same(keys.parameters())?;
        keys.key(element, self.ciphertext.limbs())
    }
}

impl ExtendedCiphertext {
    /// Bytes that one of all limbs takes in memory.
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`].
    pub fn kept_bytes(parameters: &Parameters) -> Result<usize, BfvError> {
        Self::kept_bytes_at(parameters, parameters.limbs())
    }

    /// Bytes that one of a number of limbs takes in memory.
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`]; [`BfvError::Limbs`] unless parameters have so many.
    pub fn kept_bytes_at(parameters: &Parameters, limbs: usize) -> Result<usize, BfvError> {
        Ok(2 * parameters.key_switching(limbs)?.len() * parameters.degree() * size_of::<u64>())
    }

    /// Makes this the encryption of the sum.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] unless both are of the same parameters and number of limbs.
    pub fn add_assign(&mut self, other: &Self) -> Result<(), BfvError> {
        if !self.c0.basis().same(other.c0.basis()) {
            return Err(BfvError::Mismatch { what: "parameters" });
        }
        self.c0.add_assign(&other.c0);
        self.c1.add_assign(&other.c1);
        self.noise = self.noise.plus(other.noise);
        Ok(())
    }

    /// The ciphertext: divided by `P` and rounded.
    #[must_use]
    pub fn reduce(self, parameters: &Parameters) -> Ciphertext {
        let Self { mut c0, mut c1, noise } = self;
        c0.divide_round_by_last();
        c1.divide_round_by_last();
        Ciphertext { c0, c1, noise: noise.rescaled(parameters) }
    }
}
