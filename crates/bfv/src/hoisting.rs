//! Rotations of one ciphertext that share its decomposition into digits ([HS18](https://eprint.iacr.org/2018/244)).

use std::sync::OnceLock;

use lanner_ring::{Buffer, Eval, GaloisElement, Modulus, Poly, RnsBasis};

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

    /// Makes the digits, which else the first rotation would.
    pub(crate) fn decompose(&self) {
        self.digits();
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
        let rotated = self.rotated(element, keys)?;
        let [mut c0, mut c1] = [Poly::zero(self.basis), Poly::zero(self.basis)];
        let mut room = Vec::new();
        for j in 0..self.basis.len() {
            rotated.limb(j, &mut room, [c0.limb_mut(j), c1.limb_mut(j)]);
        }
        Ok(ExtendedCiphertext { c0, c1, noise: rotated.noise() })
    }

    /// The same, to compute limb by limb.
    pub(crate) fn rotated<'s>(
        &'s self,
        element: GaloisElement,
        keys: &'s EvaluationKeys,
    ) -> Result<Rotated<'s>, BfvError> {
        let key = if element.exponent() == 1 { None } else { Some(self.key(element, keys)?) };
        let Self { parameters, ciphertext, basis, .. } = self;
        Ok(Rotated { parameters, ciphertext, basis, switched: key.map(|key| self.switched(key)) })
    }

    fn switched<'s>(&'s self, key: &'s SwitchingKey) -> Switched<'s> {
        Switched::new(self.digits(), key)
    }

    /// The limbs and the special modulus of what comes before the division by that.
    pub(crate) fn basis(&self) -> &'a RnsBasis {
        self.basis
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

/// The encryption under an automorphism, before the division by the special modulus.
pub(crate) struct Rotated<'a> {
    parameters: &'a Parameters,
    ciphertext: &'a Ciphertext,
    /// The ciphertext's limbs and the special modulus.
    basis: &'a RnsBasis,
    /// Nothing under the identity.
    switched: Option<Switched<'a>>,
}

impl Rotated<'_> {
    /// Both halves modulo modulus `j`, with room to lift digits to.
    pub(crate) fn limb(&self, j: usize, room: &mut Vec<Buffer>, out: [&mut [u64]; 2]) {
        let Ciphertext { c0, c1, .. } = self.ciphertext;
        if let Some(switched) = &self.switched {
            return switched.scaled(j, [Some(c0), None], room, out);
        }
        let special = self.parameters.special().map_or(1, Modulus::value);
        for (half, out) in [c0, c1].into_iter().zip(out) {
            if j + 1 == self.basis.len() {
                // A multiple of P is zero modulo P.
                out.fill(0);
            } else {
                let modulus = &self.basis.moduli()[j];
                out.copy_from_slice(half.limb(j));
                modulus.mul_scalar_slice(out, modulus.shoup(special));
            }
        }
    }

    /// Its noise, in units of `P`.
    pub(crate) fn noise(&self) -> NoiseBound {
        let Self { parameters, ciphertext, .. } = self;
        match self.switched {
            Some(_) => ciphertext.noise.switched_key_extended_at(parameters, ciphertext.limbs()),
            None => ciphertext.noise,
        }
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

    /// Both halves at one limb.
    pub(crate) fn limb_mut(&mut self, limb: usize) -> [&mut [u64]; 2] {
        [self.c0.limb_mut(limb), self.c1.limb_mut(limb)]
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
