//! A label and its probability, as the client learns them.

use lanner_primitives::Ring;

use super::{ProtocolError, Result};

/// What the client learns of a softmax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Likely {
    /// The index of the largest score, ties to the lowest.
    pub label: usize,
    /// Its probability in units of `10^-digits`, within one unit of the exact softmax.
    pub parts: u64,
    /// The digits.
    pub digits: u32,
}

impl Likely {
    /// What was told of `classes` classes; none if no scores have it.
    #[must_use]
    pub fn told(label: usize, parts: u64, classes: usize, digits: u32) -> Option<Self> {
        (label < classes && parts <= 10_u64.pow(digits)).then_some(Self { label, parts, digits })
    }

    /// The probability, in 0..=1.
    #[must_use]
    pub fn probability(self) -> f64 {
        self.parts as f64 / 10_f64.powi(self.digits as i32)
    }
}

/// The ring of the index and the digits, which are read with a sign.
///
/// # Errors
/// [`ProtocolError::Parameters`] unless there are 2 to `2^16` classes and 1 to 9 digits.
pub fn softmax_ring(classes: usize, digits: u32) -> Result<Ring> {
    ProtocolError::refuse_if(
        !(2..=1 << 16).contains(&classes) || !(1..=9).contains(&digits),
        "classes or digits of a softmax",
    )?;
    let index_bits = usize::BITS - (classes - 1).leading_zeros();
    Ok(Ring::Pow2(1 + index_bits.max(u64::BITS - 10_u64.pow(digits).leading_zeros())))
}

/// The most decimal digits of a probability.
pub const MAX_DIGITS: u32 = 6;
