//! Vectors as the values of a plaintext polynomial at the roots of `X^N + 1` modulo `t` ("batching",
//! [SV14](https://eprint.iacr.org/2011/133)): sums and products of ciphertexts act slot by slot.

use std::sync::Arc;

use lanner_ring::{GaloisElement, Modulus, Ntt};
use zeroize::Zeroize;

use super::{Multiplier, PeriodicEncoder};
use crate::{BfvError, Parameters, Plaintext, PlaintextModulus};

/// Encodes vectors of `N` values modulo a prime `t = 1 mod 2N`.
///
/// The slots are two rows of `N/2`: slot `i < N/2` is the value at `zeta^(3^i)` and slot `N/2 + i` that at
/// `zeta^(-3^i)`. Rotating by `j` moves slot `i + j` of each row to slot `i`.
#[derive(Clone, Debug)]
pub struct SlotEncoder {
    modulus: PlaintextModulus,
    slots: Arc<Slots>,
}

/// The slots of polynomials of some degree modulo a prime.
#[derive(Debug)]
pub(super) struct Slots {
    ntt: Ntt,
    /// Where slot `i` stands in the transform's order.
    positions: Vec<u32>,
}

impl Slots {
    /// # Errors
    /// [`BfvError::PlaintextModulus`] unless `t` is a prime `= 1 mod 2n`.
    pub(super) fn new(t: u64, n: usize) -> Result<Self, BfvError> {
        let refused = |_| BfvError::PlaintextModulus { modulus: t, reason: "slots need a prime = 1 mod 2N" };
        let ntt = Modulus::new(t).and_then(|prime| Ntt::new(&prime, n)).map_err(refused)?;
        let bits = n.trailing_zeros();
        // The transform has the value at psi^(2 bitrev(j) + 1) at place j.
        let place = |exponent: usize| ((exponent / 2).reverse_bits() >> (usize::BITS - bits)) as u32;
        let powers = std::iter::successors(Some(1), |power| Some(power * GaloisElement::GENERATOR % (2 * n)));
        let row: Vec<usize> = powers.take(n / 2).collect();
        let first = row.iter().map(|exponent| place(*exponent));
        let second = row.iter().map(|exponent| place(2 * n - exponent));
        let positions = first.chain(second).collect();
        Ok(Self { ntt, positions })
    }

    /// The coefficients of the polynomial with these values, all below `t`.
    ///
    /// # Errors
    /// [`BfvError::Length`] unless there are as many as slots; [`BfvError::Range`] if one is not below `t`.
    pub(super) fn interpolate(&self, values: &[u64], t: u64) -> Result<Vec<u64>, BfvError> {
        let (expected, got) = (self.positions.len(), values.len());
        if got != expected {
            return Err(BfvError::Length { expected, got });
        }
        if let Some(index) = values.iter().position(|value| *value >= t) {
            return Err(BfvError::Range { index, modulus: t });
        }
        let mut coefficients = vec![0; expected];
        for (position, value) in self.positions.iter().zip(values) {
            coefficients[*position as usize] = *value;
        }
        self.ntt.inverse(&mut coefficients);
        Ok(coefficients)
    }
}

impl SlotEncoder {
    /// Prepares the transform.
    ///
    /// # Errors
    /// [`BfvError::PlaintextModulus`] unless `t` is a prime `= 1 mod 2N` in range.
    pub fn new(parameters: &Parameters, t: u64) -> Result<Self, BfvError> {
        let modulus = PlaintextModulus::new(parameters, t)?;
        let slots = Arc::new(Slots::new(t, parameters.degree())?);
        Ok(Self { modulus, slots })
    }

    /// An encoder of slots that repeat along each row, modulo the same prime.
    ///
    /// # Errors
    /// [`BfvError::Length`] unless the period is a power of two, at most a sixteenth of `N` and not below `N / 2048`.
    pub fn periodic(&self, period: usize) -> Result<PeriodicEncoder, BfvError> {
        PeriodicEncoder::new(&self.modulus, period)
    }

    /// The number `N` of slots.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots.positions.len()
    }

    /// The plaintext modulus.
    #[must_use]
    pub fn modulus(&self) -> &PlaintextModulus {
        &self.modulus
    }

    /// The plaintext whose slots are `values`.
    ///
    /// # Errors
    /// [`BfvError::Length`] unless there are `N`; [`BfvError::Range`] if one is not below `t`.
    pub fn encode(&self, values: &[u64]) -> Result<Plaintext, BfvError> {
        let coefficients = self.slots.interpolate(values, self.modulus.value())?;
        Plaintext::new(&self.modulus, coefficients)
    }

    /// The slots of a plaintext.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] if the plaintext has another modulus.
    pub fn decode(&self, plaintext: &Plaintext) -> Result<Vec<u64>, BfvError> {
        self.modulus.check_same(plaintext.modulus())?;
        let mut values = plaintext.coefficients().to_vec();
        self.slots.ntt.forward(&mut values);
        let slots = self.slots.positions.iter().map(|position| values[*position as usize]).collect();
        values.zeroize();
        Ok(slots)
    }

    /// A factor for products with ciphertexts, slot by slot, [prepared](Multiplier::prepare).
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn multiplier(&self, values: &[u64]) -> Result<Multiplier, BfvError> {
        Ok(self.compact_multiplier(values)?.prepare())
    }

    /// A factor for products with ciphertexts, slot by slot, that is not prepared.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn compact_multiplier(&self, values: &[u64]) -> Result<Multiplier, BfvError> {
        Ok(Multiplier::new(&self.encode(values)?))
    }
}
