//! Ciphertexts: as the server computes with them, and as the client uploads them.

use lanner_primitives::{Prg, Seed};
use lanner_ring::{Eval, Poly, sample};
use lanner_wire::{Encode, Reader, Writer};
use zeroize::ZeroizeOnDrop;

use crate::packing::{decode_seed, packed_poly_len, read_poly, write_poly};
use crate::{BfvError, NoiseBound, Parameters};

/// A ciphertext `(c0, c1)` with `c0 + c1 s = round(q m / t) + e mod q`, in the evaluation domain.
///
/// `q` is the product of the first [`Self::limbs`] moduli. It has no encoder: what a server has computed leaves it
/// through [`seal`](crate::function_privacy::seal) only.
#[derive(Clone)]
pub struct Ciphertext {
    pub(crate) c0: Poly<Eval>,
    pub(crate) c1: Poly<Eval>,
    pub(crate) noise: NoiseBound,
}

impl Ciphertext {
    /// The number of limbs left.
    #[must_use]
    pub fn limbs(&self) -> usize {
        self.c0.basis().len()
    }

    /// The bound on its noise, from the operations that made it.
    #[must_use]
    pub fn noise(&self) -> NoiseBound {
        self.noise
    }

    /// # Errors
    /// [`BfvError::Mismatch`] unless both live modulo the same `q`.
    pub(crate) fn check_same(&self, other: &Self) -> Result<(), BfvError> {
        let same = self.c0.basis().same(other.c0.basis());
        if same { Ok(()) } else { Err(BfvError::Mismatch { what: "ciphertext moduli" }) }
    }
}

/// A fresh symmetric encryption: `c0`, and the seed from which `c1` is expanded.
///
/// Wire form: the seed (16 bytes), then the limbs of `c0` in the transform's order, 50 bits a value (the bits of the
/// modulus), each limb padded to a byte.
#[derive(Clone)]
pub struct SeededCiphertext {
    pub(crate) seed: Seed,
    pub(crate) c0: Poly<Eval>,
}

impl SeededCiphertext {
    /// The ciphertext, with its second half expanded.
    #[must_use]
    pub fn expand(&self) -> Ciphertext {
        let c1 = sample::uniform(self.c0.basis(), &mut Prg::new(self.seed.clone()));
        Ciphertext { c0: self.c0.clone(), c1, noise: NoiseBound::fresh() }
    }

    /// The exact length of the wire form of one with all limbs.
    #[must_use]
    pub fn encoded_len(parameters: &Parameters) -> usize {
        SEED_BYTES + packed_poly_len(&parameters.basis(parameters.limbs()))
    }

    /// The same of one with a number of limbs.
    ///
    /// # Errors
    /// [`BfvError::Limbs`] unless the parameters have so many.
    pub fn encoded_len_at(parameters: &Parameters, limbs: usize) -> Result<usize, BfvError> {
        parameters.check_limbs(limbs)?;
        Ok(SEED_BYTES + packed_poly_len(&parameters.basis(limbs)))
    }

    /// Reads a ciphertext with all limbs.
    ///
    /// # Errors
    /// [`BfvError::Decode`] unless the bytes are exactly what [`Encode`] writes for these parameters.
    pub fn decode(parameters: &Parameters, reader: &mut Reader<'_>) -> Result<Self, BfvError> {
        Self::decode_at(parameters, parameters.limbs(), reader)
    }

    fn decode_at(parameters: &Parameters, limbs: usize, reader: &mut Reader<'_>) -> Result<Self, BfvError> {
        let seed = decode_seed(reader)?;
        let c0 = read_poly(&parameters.basis(limbs), reader)?;
        Ok(Self { seed, c0 })
    }

    /// Reads a ciphertext with all limbs that takes all of `bytes`.
    ///
    /// # Errors
    /// As [`Self::decode`], and for bytes left over.
    pub fn from_bytes(parameters: &Parameters, bytes: &[u8]) -> Result<Self, BfvError> {
        Self::from_bytes_at(parameters, parameters.limbs(), bytes)
    }

    /// The same of one with a number of limbs.
    ///
    /// # Errors
    /// As [`Self::from_bytes`]; [`BfvError::Limbs`] unless the parameters have so many.
    pub fn from_bytes_at(parameters: &Parameters, limbs: usize, bytes: &[u8]) -> Result<Self, BfvError> {
        parameters.check_limbs(limbs)?;
        let mut reader = Reader::new(bytes);
        let ciphertext = Self::decode_at(parameters, limbs, &mut reader)?;
        reader.finish()?;
        Ok(ciphertext)
    }
}

/// Its polynomials erase themselves.
impl ZeroizeOnDrop for Ciphertext {}

impl Encode for SeededCiphertext {
    fn encode(&self, writer: &mut Writer) {
        writer.bytes(self.seed.as_bytes());
        write_poly(&self.c0, writer);
    }
}

/// Bytes of a seed.
pub(crate) const SEED_BYTES: usize = 16;
