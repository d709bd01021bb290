//! Factors of a function's value that the highest bits of its place choose.

use serde::{Deserialize, Serialize};

use super::{MAX_POLYNOMIAL_BITS, MAX_SEGMENT_BITS};
use crate::accumulator::rounding_constant;

/// What the polynomials of a [`FixedFunction`](super::FixedFunction) are multiplied with.
///
/// Of `2^g` factors the highest g bits of the place choose `a`; the polynomials' value at the others being `b`, the function's is
/// `floor((a b + 2^(shift-1)) / 2^shift)`, and `a b` for a shift of 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factors {
    /// 2 to 256 of them, a power of two.
    pub values: Vec<i64>,
    /// Bits that are dropped of the product.
    pub shift: u32,
}

impl Factors {
    /// Bits that choose one.
    pub(super) const fn bits(&self) -> u32 {
        self.values.len().ilog2()
    }

    /// The function's value where the polynomials have this one.
    pub(super) fn times(&self, number: i64, value: i64) -> i64 {
        (self.values[number as usize] * value + rounding_constant(self.shift)) >> self.shift
    }

    /// What products with values of up to a magnitude stay within, the rounding included.
    pub(super) fn magnitude(&self, value: i128) -> i128 {
        let largest = self.values.iter().map(|factor| factor.unsigned_abs()).max().unwrap_or(0);
        i128::from(largest) * value + i128::from(rounding_constant(self.shift))
    }

    /// Why they are none that a function of a domain of `2^bits` integers may have, if they are not.
    pub(super) fn check_sizes(&self, bits: u32) -> Result<(), String> {
        let count = self.values.len();
        if count < 2 || !count.is_power_of_two() || count.ilog2() > bits.min(MAX_SEGMENT_BITS) {
            return Err(format!("{count} factors of a domain of 2^{bits} integers are not usable"));
        }
        if self.shift >= MAX_POLYNOMIAL_BITS {
            return Err(format!("a shift of {} bits is too large", self.shift));
        }
        Ok(())
    }
}
