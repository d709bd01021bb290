//! The first half of a ciphertext, which alone holds the message.

use std::collections::BTreeMap;

use lanner_ring::{Eval, EvalPermutation, GaloisElement, Poly};
use lanner_wire::{Encode, Reader, Writer};
use zeroize::ZeroizeOnDrop;

use crate::packing::{packed_poly_len, read_poly, write_poly};
use crate::{BfvError, NoiseBound, Parameters, Plaintext};

/// The first half `c0` of a ciphertext with all limbs, in the evaluation domain.
///
/// Wire form: the limbs in the transform's order, packed as in a [`SeededCiphertext`](crate::SeededCiphertext).
#[derive(Clone)]
pub struct C0 {
    pub(crate) c0: Poly<Eval>,
    /// What the operations on this half added to the noise of the other's.
    pub(crate) noise: NoiseBound,
}

/// What automorphisms do to first halves, prepared. No key is needed for it.
pub struct Permutations {
    parameters: Parameters,
    by_exponent: BTreeMap<usize, EvalPermutation>,
}

impl Permutations {
    /// Those of `elements`, in any order and with repetitions.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] for an element of another degree.
    pub fn new(parameters: &Parameters, elements: &[GaloisElement]) -> Result<Self, BfvError> {
        if elements.iter().any(|element| element.degree() != parameters.degree()) {
            return Err(BfvError::Mismatch { what: "ring degrees" });
        }
        let prepared = |element: &GaloisElement| (element.exponent(), EvalPermutation::new(*element));
        Ok(Self { parameters: parameters.clone(), by_exponent: elements.iter().map(prepared).collect() })
    }
}

impl C0 {
    /// A plaintext as the first half of a ciphertext whose second half is zero: added to another, it adds the plaintext.
    #[must_use]
    pub fn of(message: &Plaintext) -> Self {
        let modulus = message.modulus();
        let c0 = modulus.scale(message, modulus.parameters().limbs()).into_eval();
        Self { c0, noise: NoiseBound::NONE.plus_plaintext() }
    }

    /// Adds a plaintext.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] if the message belongs to other parameters.
    pub fn add_plain(&mut self, message: &Plaintext) -> Result<(), BfvError> {
        let parameters = message.modulus().parameters();
        if !parameters.basis(parameters.limbs()).same(self.c0.basis()) {
            return Err(BfvError::Mismatch { what: "parameters" });
        }
        self.add_assign(&Self::of(message))
    }

    /// Adds the first half of another ciphertext.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] unless both live modulo the same `q`.
    pub fn add_assign(&mut self, other: &Self) -> Result<(), BfvError> {
        if !self.c0.basis().same(other.c0.basis()) {
            return Err(BfvError::Mismatch { what: "ciphertext moduli" });
        }
        self.c0.add_assign(&other.c0);
        self.noise = self.noise.plus(other.noise);
        Ok(())
    }

    /// What an automorphism makes of this half; its key is used on the other.
    ///
    /// # Errors
    /// [`BfvError::MissingKey`] if the automorphism was not prepared; [`BfvError::Mismatch`] for other parameters.
    pub fn apply(&self, element: GaloisElement, permutations: &Permutations) -> Result<Self, BfvError> {
        let exponent = element.exponent();
        if exponent == 1 {
            return Ok(self.clone());
        }
        let parameters = &permutations.parameters;
        if !parameters.basis(parameters.limbs()).same(self.c0.basis()) {
            return Err(BfvError::Mismatch { what: "the ciphertext's modulus and that of the permutations" });
        }
        let prepared = permutations.by_exponent.get(&exponent);
        let permutation = prepared.ok_or(BfvError::MissingKey { element: exponent })?;
        Ok(Self { c0: self.c0.automorphism(permutation), noise: self.noise })
    }

    /// The exact length of the wire form.
    #[must_use]
    pub fn encoded_len(parameters: &Parameters) -> usize {
        packed_poly_len(&parameters.basis(parameters.limbs()))
    }

    /// Reads a half that takes all of `bytes`.
    ///
    /// # Errors
    /// [`BfvError::Decode`] unless the bytes are exactly what [`Encode`] writes for these parameters.
    pub fn from_bytes(parameters: &Parameters, bytes: &[u8]) -> Result<Self, BfvError> {
        let mut reader = Reader::new(bytes);
        let c0 = read_poly(&parameters.basis(parameters.limbs()), &mut reader)?;
        reader.finish()?;
        Ok(Self { c0, noise: NoiseBound::NONE })
    }
}

/// Its polynomial erases itself.
impl ZeroizeOnDrop for C0 {}

impl Encode for C0 {
    fn encode(&self, writer: &mut Writer) {
        write_poly(&self.c0, writer);
    }
}
