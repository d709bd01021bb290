//! The client's side: what it prepares, and what it announces.

use lanner_primitives::{Prg, Seed};
use lanner_ring::{Coeff, Eval, Poly, sample};
use lanner_wire::{Encode, Reader, Writer};
use rand_core::CryptoRng;
use zeroize::ZeroizeOnDrop;

use super::C0;
use crate::ciphertext::SEED_BYTES;
use crate::function_privacy::{SealedC0, SealedC1, wire_limbs};
use crate::packing::{decode_seed, read_poly, write_poly};
use crate::{BfvError, Ciphertext, NoiseBound, Parameters, Plaintext, PlaintextModulus, SecretKey};

/// The second half of an encryption to come, as a seed.
///
/// Wire form: the seed, 16 bytes.
pub struct C1 {
    seed: Seed,
}

/// All of an encryption but its message: `e - a s`. It serves one message and cannot be cloned.
#[derive(ZeroizeOnDrop)]
pub struct PreparedEncryption {
    #[zeroize(skip)]
    parameters: Parameters,
    body: Poly<Eval>,
}

/// All of a decryption but the first half: `c1 s`. It serves one ciphertext and cannot be cloned.
#[derive(ZeroizeOnDrop)]
pub struct PreparedDecryption {
    #[zeroize(skip)]
    modulus: PlaintextModulus,
    product: Poly<Coeff>,
}

impl SecretKey {
    /// Prepares an encryption, whose second half is to be announced.
    #[must_use]
    pub fn prepare_encryption(&self, rng: &mut (impl CryptoRng + ?Sized)) -> (C1, PreparedEncryption) {
        let parameters = self.parameters();
        let seed = Seed::random(rng);
        let error = sample::error(&parameters.basis(parameters.limbs()), rng);
        let body = self.mask(error.into_eval(), &seed);
        (C1 { seed }, PreparedEncryption { parameters: parameters.clone(), body })
    }

    /// Prepares a decryption by the half that the server sent.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] if the half belongs to other parameters.
    pub fn prepare_decryption(&self, half: SealedC1) -> Result<PreparedDecryption, BfvError> {
        self.parameters().check_basis(half.c1.basis())?;
        let mut product = half.c1.into_eval();
        self.multiply(&mut product);
        Ok(PreparedDecryption { modulus: half.modulus, product: product.into_coeff() })
    }
}

impl PreparedEncryption {
    /// The first half of the encryption of `message`.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] if the message belongs to other parameters.
    pub fn encrypt(self, message: &Plaintext) -> Result<C0, BfvError> {
        self.parameters.check_same(message.modulus().parameters())?;
        let mut c0 = message.modulus().scale(message, self.parameters.limbs()).into_eval();
        c0.add_assign(&self.body);
        Ok(C0 { c0, noise: NoiseBound::NONE })
    }

    /// Appends it. The bytes serve one message, as it does, and tell who has them that message.
    pub fn encode(&self, writer: &mut Writer) {
        write_poly(&self.body, writer);
    }

    /// Reads what [`Self::encode`] wrote for these parameters.
    ///
    /// # Errors
    /// [`BfvError::Decode`] if bytes are missing or a value is not below its modulus.
    pub fn decode(parameters: &Parameters, reader: &mut Reader<'_>) -> Result<Self, BfvError> {
        let body = read_poly(&parameters.basis(parameters.limbs()), reader)?;
        Ok(Self { parameters: parameters.clone(), body })
    }
}

impl PreparedDecryption {
    /// The message: `y - r` with `r` the server's mask.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] if the half belongs to another plaintext modulus or to other parameters.
    pub fn decrypt(mut self, half: &SealedC0) -> Result<Plaintext, BfvError> {
        self.modulus.check_same(&half.modulus)?;
        self.product.add_assign(&half.c0);
        Ok(self.modulus.unscale(&self.product))
    }

    /// Appends it. The bytes are as secret as the key: `c1`, which the server knows, divides `c1 s`.
    pub fn encode(&self, writer: &mut Writer) {
        write_poly(&self.product, writer);
    }

    /// Reads what [`Self::encode`] wrote for messages of this modulus.
    ///
    /// # Errors
    /// As [`half_len`](crate::function_privacy::half_len); [`BfvError::Decode`] if bytes are missing or a value is not below its modulus.
    pub fn decode(modulus: &PlaintextModulus, reader: &mut Reader<'_>) -> Result<Self, BfvError> {
        let product = read_poly(&modulus.parameters().basis(wire_limbs(modulus)?), reader)?;
        Ok(Self { modulus: modulus.clone(), product })
    }
}

impl C1 {
    /// The half that a seed expands to.
    pub(super) const fn of(seed: Seed) -> Self {
        Self { seed }
    }

    /// The ciphertext with a first half of zero: what the server evaluates ahead of time. It has the noise of a fresh
    /// encryption.
    #[must_use]
    pub fn expand(&self, parameters: &Parameters) -> Ciphertext {
        let basis = parameters.basis(parameters.limbs());
        let c1 = sample::uniform(&basis, &mut Prg::new(self.seed.clone()));
        Ciphertext { c0: Poly::zero(&basis), c1, noise: NoiseBound::fresh() }
    }

    /// The exact length of the wire form.
    pub const ENCODED_LEN: usize = SEED_BYTES;

    /// Reads a half that takes all of `bytes`.
    ///
    /// # Errors
    /// [`BfvError::Decode`] unless there are 16 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BfvError> {
        let mut reader = Reader::new(bytes);
        let seed = decode_seed(&mut reader)?;
        reader.finish()?;
        Ok(Self { seed })
    }
}

impl Encode for C1 {
    fn encode(&self, writer: &mut Writer) {
        writer.bytes(self.seed.as_bytes());
    }
}
