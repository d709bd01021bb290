//! The secret key: symmetric encryption, decryption, noise measurement, and its form at rest.

use lanner_primitives::{Prg, Seed};
use lanner_ring::{Buffer, Coeff, Eval, Poly, sample};
use lanner_wire::{DecodeError, Reader, Writer, packed_len};
use rand_core::CryptoRng;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::function_privacy::SealedCiphertext;
use crate::{BfvError, Ciphertext, Parameters, Plaintext, PlaintextModulus, SeededCiphertext};

/// A ternary secret `s`, held by the client only.
///
/// Form at rest: each coefficient plus one in two bits, in order.
#[derive(ZeroizeOnDrop)]
pub struct SecretKey {
    #[zeroize(skip)]
    parameters: Parameters,
    /// `s` over the limbs and the special modulus.
    pub(crate) s: Poly<Eval>,
}

impl SecretKey {
    /// A fresh key.
    #[must_use]
    pub fn generate(parameters: &Parameters, rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let s = sample::ternary(parameters.extended(), rng).into_eval();
        Self { parameters: parameters.clone(), s }
    }

    /// The same key once more, for material that decrypts when the keys are not at hand.
    #[must_use]
    pub fn copied(&self) -> Self {
        Self { parameters: self.parameters.clone(), s: self.s.clone() }
    }

    /// The parameters.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Encrypts: `c0 = -a s + e + round(q m / t)` with `c1 = a` expanded from a fresh seed.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] if the message belongs to other parameters.
    pub fn encrypt(
        &self,
        message: &Plaintext,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<SeededCiphertext, BfvError> {
        self.encrypt_at(message, self.parameters.limbs(), rng)
    }

    /// Encrypts to a ciphertext of a number of limbs.
    ///
    /// # Errors
    /// As [`Self::encrypt`]; [`BfvError::Limbs`] unless the parameters have so many.
    pub fn encrypt_at(
        &self,
        message: &Plaintext,
        limbs: usize,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<SeededCiphertext, BfvError> {
        self.parameters.check_same(message.modulus().parameters())?;
        self.parameters.check_limbs(limbs)?;
        let seed = Seed::random(rng);
        let mut masked = message.modulus().scale(message, limbs);
        masked.add_assign(&sample::error(masked.basis(), rng));
        Ok(SeededCiphertext { c0: self.mask(masked.into_eval(), &seed), seed })
    }

    /// The exact length of the form at rest.
    #[must_use]
    pub fn encoded_len(parameters: &Parameters) -> usize {
        packed_len(parameters.degree(), COEFFICIENT_BITS)
    }

    /// Appends the key. Who has the bytes reads all that is encrypted under it.
    pub fn encode(&self, writer: &mut Writer) {
        let (modulus, ntt) = (&self.parameters.moduli()[0], &self.s.basis().ntts()[0]);
        let mut coefficients = Buffer::from(self.s.limb(0));
        ntt.inverse(&mut coefficients);
        for value in coefficients.iter_mut() {
            *value = modulus.add(*value, 1);
        }
        writer.packed(&coefficients, COEFFICIENT_BITS);
    }

    /// Reads what [`Self::encode`] wrote for these parameters.
    ///
    /// # Errors
    /// [`BfvError::Decode`] if bytes are missing or a coefficient is none of a key's.
    pub fn decode(parameters: &Parameters, reader: &mut Reader<'_>) -> Result<Self, BfvError> {
        let values = Zeroizing::new(reader.packed(parameters.degree(), COEFFICIENT_BITS)?);
        if values.iter().any(|value| *value > 2) {
            return Err(DecodeError::Invalid { what: "secret key: a coefficient is not ternary" }.into());
        }
        let mut s = Poly::<Coeff>::zero(parameters.extended());
        for (modulus, limb) in parameters.extended().moduli().iter().zip(s.limbs_mut()) {
            for (word, value) in limb.iter_mut().zip(&*values) {
                *word = modulus.sub(*value, 1);
            }
        }
        Ok(Self { parameters: parameters.clone(), s: s.into_eval() })
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

    /// `body - a s` over the basis of `body`, with `a` expanded from `seed`.
    pub(crate) fn mask(&self, mut body: Poly<Eval>, seed: &Seed) -> Poly<Eval> {
        let mut a: Poly<Eval> = sample::uniform(body.basis(), &mut Prg::new(seed.clone()));
        self.multiply(&mut a);
        body.sub_assign(&a);
        body
    }

    /// Decrypts.
    ///
    /// The result is the message if the noise is below `q / 2t`; a larger noise is not noticed.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] if the ciphertext or the plaintext modulus belongs to other parameters.
    pub fn decrypt(
        &self,
        ciphertext: &Ciphertext,
        modulus: &PlaintextModulus,
    ) -> Result<Plaintext, BfvError> {
        Ok(modulus.unscale(&self.phase(ciphertext, modulus)?))
    }

    /// Decrypts what the server sent: `y - r` with `r` the server's mask.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] if the ciphertext belongs to other parameters.
    pub fn decrypt_sealed(&self, ciphertext: &SealedCiphertext) -> Result<Plaintext, BfvError> {
        Ok(ciphertext.modulus.unscale(&self.sealed_phase(ciphertext)?))
    }

    /// `log2` of the largest coefficient of the noise, given that it decrypts.
    ///
    /// For tests and measurements by the owner of the key.
    ///
    /// # Errors
    /// As [`Self::decrypt`].
    pub fn noise_bits(&self, ciphertext: &Ciphertext, modulus: &PlaintextModulus) -> Result<f64, BfvError> {
        let mut noise = self.phase(ciphertext, modulus)?;
        noise.sub_assign(&modulus.scale(&modulus.unscale(&noise), ciphertext.limbs()));
        Ok(noise.log2_norm())
    }

    /// `c0 + c1 s mod q`.
    pub(crate) fn phase(
        &self,
        ciphertext: &Ciphertext,
        modulus: &PlaintextModulus,
    ) -> Result<Poly<Coeff>, BfvError> {
        self.parameters.check_same(modulus.parameters())?;
        self.parameters.check_basis(ciphertext.c0.basis())?;
        let mut phase = ciphertext.c1.clone();
        self.multiply(&mut phase);
        phase.add_assign(&ciphertext.c0);
        Ok(phase.into_coeff())
    }

    /// `c0 + c1 s mod q` of a sealed ciphertext.
    pub(crate) fn sealed_phase(&self, ciphertext: &SealedCiphertext) -> Result<Poly<Coeff>, BfvError> {
        self.parameters.check_basis(ciphertext.c0.basis())?;
        let mut product = ciphertext.c1.clone().into_eval();
        self.multiply(&mut product);
        let mut phase = product.into_coeff();
        phase.add_assign(&ciphertext.c0);
        Ok(phase)
    }

    /// `poly *= s`, over a prefix of the moduli.
    pub(crate) fn multiply(&self, poly: &mut Poly<Eval>) {
        let moduli = self.s.basis().moduli();
        for ((modulus, limb), s) in moduli.iter().zip(poly.limbs_mut()).zip(self.s.limbs()) {
            modulus.mul_assign_slice(limb, s);
        }
    }
}

/// Bits of a coefficient at rest.
const COEFFICIENT_BITS: u32 = 2;
