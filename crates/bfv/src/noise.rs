//! Bounds on the noise of a ciphertext, computed from public quantities alone.
//!
//! The noise of a ciphertext is `e` in `c0 + c1 s = (q/t) m + e mod q`. Given the messages, the plaintext factors and the
//! digits of key switching, each coefficient of `e` is a linear form in independent sub-Gaussian samples (errors of
//! encryption and of keys, and fractions rounded away, uniform in `[-1/2, 1/2]` because ciphertexts are pseudorandom).
//! A [`NoiseBound`] is a `sigma` with `P(|e_k| > x sigma) <= 2 exp(-x^2 / 2)` for every coefficient `k`. Sums add
//! their bounds (Minkowski), whatever the dependence between the terms, and products by a plaintext multiply by the
//! largest 2-norm that a plaintext can have, so the bound holds for every choice of weights and tells nothing about
//! them.
//!
//! Behind a product of two ciphertexts the bound is that of the average case. What multiplies the noise there is `x = (c0 + c1 s) / q`, of
//! fractions that the randomness of encryption makes uniform: `E |x(z)|^2` is the same at every complex root `z` of `X^N + 1`, so that the
//! second moment is within the bound for every noise that does not depend on `x`. That large deviations are as rare as those of a sub-Gaussian
//! variable, and that plaintext factors on both sides of a product, or several in a row, are not large at the same roots, is taken for
//! granted: encodings of slots are random in that respect.

use lanner_wire::{DecodeError, Reader, Writer};

use crate::Parameters;
use crate::encode::largest_norm;

/// An upper bound `sigma` on the sub-Gaussian deviation of every coefficient of a ciphertext's noise.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct NoiseBound {
    deviation: f64,
}

impl NoiseBound {
    /// No noise.
    pub const NONE: Self = Self { deviation: 0.0 };

    /// A fresh symmetric encryption: its error, and the plaintext's scale rounded to an integer.
    #[must_use]
    pub fn fresh() -> Self {
        Self { deviation: ERROR + ROUNDING }
    }

    /// A fresh encryption of zero under a public key: `e u + e0 + e1 s`.
    #[must_use]
    pub fn public_key(parameters: &Parameters) -> Self {
        Self { deviation: ERROR * (1.0 + 2.0 * parameters.degree() as f64).sqrt() }
    }

    /// A deviation of `2^bits`.
    #[must_use]
    pub fn of_bits(bits: u32) -> Self {
        Self { deviation: f64::from(bits).exp2() }
    }

    /// The smallest number of bits with [`Self::of_bits`] no smaller than this.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.deviation.max(1.0).log2().ceil() as u32
    }

    /// `sigma`.
    #[must_use]
    pub fn deviation(self) -> f64 {
        self.deviation
    }

    /// A bound on every coefficient of the noise that holds but for a probability of `2^-64`.
    #[must_use]
    pub fn infinity(self, degree: usize) -> f64 {
        self.deviation * (2.0 * (64.0 + 1.0 + (degree as f64).log2()) * std::f64::consts::LN_2).sqrt()
    }

    /// After adding or subtracting another ciphertext.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { deviation: self.deviation + other.deviation }
    }

    /// The sum of `count` ciphertexts with this bound.
    #[must_use]
    pub fn times(self, count: usize) -> Self {
        Self { deviation: self.deviation * count as f64 }
    }

    /// What rounding a first half from `q` to `2^bits` adds.
    #[must_use]
    pub fn rounding_to(parameters: &Parameters, bits: u32) -> Self {
        let unit = (parameters.log2_modulus(parameters.limbs()) - f64::from(bits)).exp2();
        Self { deviation: ROUNDING * unit }
    }

    /// After adding or subtracting a plaintext, whose scale is rounded once more.
    #[must_use]
    pub fn plus_plaintext(self) -> Self {
        Self { deviation: self.deviation + ROUNDING }
    }

    /// After a product by a plaintext modulo `t`: times `||w||_2 <= (t/2) sqrt(N)`.
    #[must_use]
    pub fn multiplied(self, parameters: &Parameters, t: u64) -> Self {
        self.multiplied_by_norm(largest_norm(parameters.degree(), t))
    }

    /// After a product by a plaintext whose coefficients have at most this 2-norm.
    #[must_use]
    pub fn multiplied_by_norm(self, norm: f64) -> Self {
        Self { deviation: self.deviation * norm }
    }

    /// After the product by another ciphertext, both modulo `t` and of a number of limbs, before the key switching that goes with it.
    #[must_use]
    pub fn product(self, other: Self, parameters: &Parameters, t: u64, limbs: usize) -> Self {
        let (t, degree) = (t as f64, parameters.degree() as f64);
        // With x = (c0 + c1 s) / q over the integers, the product of (q/t) m + e = q x mod q by another such is
        // (q/t) m m' + t (e x' + e' x) - (t/q) e e' mod q. Each coefficient of x is a fraction, plus fractions times the secret.
        let cross = rounding(parameters) * (self.deviation + other.deviation);
        let both = self.deviation * other.deviation / parameters.log2_modulus(limbs).exp2();
        Self { deviation: t * degree.sqrt() * (cross + both) + product_rounding(parameters) }
    }

    /// After switching a product that is not relinearized yet from `from` limbs down to `to`.
    #[must_use]
    pub fn switched_product(self, parameters: &Parameters, from: usize, to: usize) -> Self {
        if to >= from {
            return self;
        }
        let dropped = (parameters.log2_modulus(from) - parameters.log2_modulus(to)).exp2();
        Self { deviation: self.deviation / dropped + product_rounding(parameters) }
    }

    /// After a rotation or any other key switching, of a ciphertext of all limbs or fewer.
    #[must_use]
    pub fn switched_key(self, parameters: &Parameters) -> Self {
        self.switched_key_at(parameters, parameters.limbs())
    }

    /// After key switching at a number of limbs: each brings a digit.
    #[must_use]
    pub fn switched_key_at(self, parameters: &Parameters, limbs: usize) -> Self {
        self.switched_key_extended_at(parameters, limbs).rescaled(parameters)
    }

    /// After key switching that has not been divided by the special modulus, in units of that modulus.
    #[must_use]
    pub fn switched_key_extended(self, parameters: &Parameters) -> Self {
        self.switched_key_extended_at(parameters, parameters.limbs())
    }

    /// The same at a number of limbs.
    #[must_use]
    pub fn switched_key_extended_at(self, parameters: &Parameters, limbs: usize) -> Self {
        let special = parameters.special().map_or(1.0, |p| p.value() as f64);
        // Digit i has N coefficients of at most q_i / 2 and multiplies one error polynomial.
        let moduli = parameters.moduli().iter().take(limbs);
        let digits = moduli.map(|q| (q.value() as f64 / 2.0 / special).powi(2));
        let norm = (digits.sum::<f64>() * parameters.degree() as f64).sqrt();
        Self { deviation: self.deviation + ERROR * norm }
    }

    /// After rounding `(c0, c1)` to integers, which adds `r0 + r1 s` with fractions `r0, r1`.
    #[must_use]
    pub fn rescaled(self, parameters: &Parameters) -> Self {
        Self { deviation: self.deviation + rounding(parameters) }
    }

    /// After switching from `from` limbs down to `to`.
    #[must_use]
    pub fn switched_modulus(self, parameters: &Parameters, from: usize, to: usize) -> Self {
        let moduli = parameters.moduli();
        let down = |noise: Self, limb: usize| {
            let deviation = noise.deviation / moduli[limb].value() as f64;
            Self { deviation }.rescaled(parameters)
        };
        (to..from.min(moduli.len())).rev().fold(self, down)
    }

    /// Appends the bound.
    pub(crate) fn encode(self, writer: &mut Writer) {
        writer.u64(self.deviation.to_bits());
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if bytes are missing; [`DecodeError::Invalid`] unless it is a number that is not negative.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let deviation = f64::from_bits(reader.u64()?);
        if deviation.is_finite() && deviation.is_sign_positive() {
            Ok(Self { deviation })
        } else {
            Err(DecodeError::Invalid { what: "bound on noise" })
        }
    }

    /// `log2 q` must be at least this for decryption modulo `t` to fail with probability at most `2^-64`.
    #[must_use]
    pub fn needed_bits(self, parameters: &Parameters, t: u64) -> f64 {
        (t as f64).log2() + 1.0 + self.infinity(parameters.degree()).log2()
    }
}

/// Deviation of a sampled error: a centred binomial is sub-Gaussian with its own variance.
const ERROR: f64 = lanner_ring::sample::ERROR_STD;

/// Deviation of one uniform fraction in `[-1/2, 1/2]`: `1 / sqrt(12)`, rounded up.
const ROUNDING: f64 = 0.289;

/// Deviation of `r0 + r1 s` with fractions `r1` uniform and `|r0| <= 1/2` depending on them, and `||s||_2^2 <= N`.
pub(crate) fn rounding(parameters: &Parameters) -> f64 {
    0.5 + ROUNDING * (parameters.degree() as f64).sqrt()
}

/// Deviation of `r0 + r1 s + r2 s^2` with such fractions: the 2-norm of a secret's square is at most `N`, about.
fn product_rounding(parameters: &Parameters) -> f64 {
    rounding(parameters) + ROUNDING * parameters.degree() as f64
}
