//! Vectors as the coefficients of a plaintext polynomial: products are negacyclic convolutions.

use super::Multiplier;
use crate::{BfvError, Parameters, Plaintext, PlaintextModulus};

/// Encodes vectors of at most `N` values modulo any `2^6 <= t <= 2^41`, a power of two included.
#[derive(Clone, Debug)]
pub struct CoefficientEncoder {
    modulus: PlaintextModulus,
}

impl CoefficientEncoder {
    /// Prepares the plaintext modulus.
    ///
    /// # Errors
    /// [`BfvError::PlaintextModulus`] if `t` is out of range.
    pub fn new(parameters: &Parameters, t: u64) -> Result<Self, BfvError> {
        Ok(Self { modulus: PlaintextModulus::new(parameters, t)? })
    }

    /// The plaintext modulus.
    #[must_use]
    pub fn modulus(&self) -> &PlaintextModulus {
        &self.modulus
    }

    /// The polynomial whose first coefficients are `values` and whose others are zero.
    ///
    /// # Errors
    /// [`BfvError::Length`] for more than `N` values; [`BfvError::Range`] if one is not below `t`.
    pub fn encode(&self, values: &[u64]) -> Result<Plaintext, BfvError> {
        let (expected, got) = (self.modulus.parameters().degree(), values.len());
        if got > expected {
            return Err(BfvError::Length { expected, got });
        }
        let mut coefficients = vec![0; expected];
        coefficients[..got].copy_from_slice(values);
        Plaintext::new(&self.modulus, coefficients)
    }

    /// The `N` coefficients of a plaintext.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] if the plaintext has another modulus.
    pub fn decode(&self, plaintext: &Plaintext) -> Result<Vec<u64>, BfvError> {
        self.modulus.check_same(plaintext.modulus())?;
        Ok(plaintext.coefficients().to_vec())
    }

    /// A factor for negacyclic products with ciphertexts, [prepared](Multiplier::prepare).
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn multiplier(&self, values: &[u64]) -> Result<Multiplier, BfvError> {
        Ok(Multiplier::new(&self.encode(values)?).prepare())
    }
}
