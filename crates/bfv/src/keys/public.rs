//! The public key: what the server encrypts zero under.

use lanner_primitives::{Prg, Seed};
use lanner_ring::{Coeff, Eval, Poly, sample};
use lanner_wire::{Encode, Reader, Writer};
use rand_core::CryptoRng;

use crate::ciphertext::SEED_BYTES;
use crate::packing::{decode_seed, packed_poly_len, read_poly, write_poly};
use crate::{BfvError, Ciphertext, NoiseBound, Parameters, SecretKey};

/// `(b, a)` with `b = -a s + e`, `a` expanded from a seed.
///
/// Wire form: the seed, then `b` as in a [`SeededCiphertext`](crate::SeededCiphertext).
#[derive(Clone)]
pub struct PublicKey {
    parameters: Parameters,
    seed: Seed,
    b: Poly<Eval>,
    a: Poly<Eval>,
}

/// See [`PublicKey::blind`].
pub(crate) struct Blind {
    pub(crate) first: Poly<Eval>,
    pub(crate) second: Poly<Eval>,
    pub(crate) error: Poly<Coeff>,
}

impl PublicKey {
    /// A fresh public key of `secret`.
    #[must_use]
    pub fn generate(secret: &SecretKey, rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let parameters = secret.parameters();
        let basis = parameters.basis(parameters.limbs());
        let (seed, mut b) = (Seed::random(rng), sample::error(&basis, rng).into_eval());
        let a: Poly<Eval> = sample::uniform(&basis, &mut Prg::new(seed.clone()));
        let mut product = a.clone();
        secret.multiply(&mut product);
        b.sub_assign(&product);
        Self { parameters: parameters.clone(), seed, b, a }
    }

    /// A key that was proved.
    pub(super) fn of_parts(parameters: &Parameters, seed: Seed, b: Poly<Eval>, a: Poly<Eval>) -> Self {
        Self { parameters: parameters.clone(), seed, b, a }
    }

    pub(super) const fn a(&self) -> &Poly<Eval> {
        &self.a
    }

    pub(super) const fn b(&self) -> &Poly<Eval> {
        &self.b
    }

    /// The parameters.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// A fresh encryption of zero, `(b u + e0, a u + e1)`, of some of the limbs.
    pub(crate) fn encrypt_zero(&self, limbs: usize, rng: &mut (impl CryptoRng + ?Sized)) -> Ciphertext {
        let basis = self.parameters.basis(limbs);
        let u = sample::ternary(&basis, rng).into_eval();
        let (mut c0, mut c1) = (self.b.clone(), self.a.clone());
        for part in [&mut c0, &mut c1] {
            let error = sample::error(&basis, rng).into_eval();
            part.truncate_limbs(limbs);
            part.mul_assign(&u);
            part.add_assign(&error);
        }
        Ciphertext { c0, c1, noise: NoiseBound::public_key(&self.parameters) }
    }

    /// The parts of a fresh encryption of zero that [`crate::function_privacy::PhaseSealing`] adds: `b u`, `a u`, and the error of the latter.
    ///
    /// The first half needs no error of its own where a mask hides it.
    pub(crate) fn blind(&self, rng: &mut (impl CryptoRng + ?Sized)) -> Blind {
        let basis = self.b.basis();
        let u = sample::ternary(basis, rng).into_eval();
        let (mut first, mut second) = (self.b.clone(), self.a.clone());
        first.mul_assign(&u);
        second.mul_assign(&u);
        Blind { first, second, error: sample::error(basis, rng) }
    }

    /// The exact length of the wire form.
    #[must_use]
    pub fn encoded_len(parameters: &Parameters) -> usize {
        SEED_BYTES + packed_poly_len(&parameters.basis(parameters.limbs()))
    }

    /// Reads a key.
    ///
    /// # Errors
    /// [`BfvError::Decode`] unless the bytes are exactly what [`Encode`] writes for these parameters.
    pub fn decode(parameters: &Parameters, reader: &mut Reader<'_>) -> Result<Self, BfvError> {
        let seed = decode_seed(reader)?;
        let basis = parameters.basis(parameters.limbs());
        let b = read_poly(&basis, reader)?;
        let a = sample::uniform(&basis, &mut Prg::new(seed.clone()));
        Ok(Self { parameters: parameters.clone(), seed, b, a })
    }

    /// Reads a key that takes all of `bytes`.
    ///
    /// # Errors
    /// As [`Self::decode`], and for bytes left over.
    pub fn from_bytes(parameters: &Parameters, bytes: &[u8]) -> Result<Self, BfvError> {
        let mut reader = Reader::new(bytes);
        let key = Self::decode(parameters, &mut reader)?;
        reader.finish()?;
        Ok(key)
    }
}

impl Encode for PublicKey {
    fn encode(&self, writer: &mut Writer) {
        writer.bytes(self.seed.as_bytes());
        write_poly(&self.b, writer);
    }
}
