//! What a function is, in integers, and the bounds that it keeps.

use lanner_step::{ProtocolError, Result};
use serde::{Deserialize, Serialize};

use super::lookup::{MAX_COLUMNS, MAX_PLACE_BITS};

/// The most bits of a domain.
const MAX_DOMAIN_BITS: u32 = 20;

/// What sums stay below, with all terms positive: a sum has room for its sign, and for a bit that tells of wraps, in the widest ring.
const MAX_SUM_BITS: u32 = 59;

/// A function by polynomials on equal segments of its domain, all in integers.
///
/// Of `x` it is `floor((p + 2^(shift-1)) / 2^shift)` (`p` where the shift is 0) for the sum `p` of `polynomials[h][i] e^i`, where `u`, which
/// is `x - low` but not below 0 nor above `2^bits - 1`, is `h 2^t + e` with `e < 2^t`, and there are `2^(bits-t)` segments.
///
/// With factors all that is of the low bits of `u`, those that do not choose a factor, and the function is its product with that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Polynomials {
    /// Where the domain begins.
    pub low: i64,
    /// The domain has `2^bits` integers, 1 to 20 bits.
    pub bits: u32,
    /// The coefficients of each segment, the constant first, as many for all: 1 to 4, of at most 256 segments.
    pub polynomials: Vec<Vec<i64>>,
    /// Bits that are dropped in the end.
    pub shift: u32,
    /// What the polynomials' value is multiplied with, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factors: Option<Factors>,
}

/// Factors of a function's value, chosen by the highest bits of the place: the function is `floor((a b + 2^(shift-1)) / 2^shift)` of the
/// factor `a` and of what the polynomials give, `b`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factors {
    /// 2 to 256 of them, a power of two.
    pub values: Vec<i64>,
    /// Bits that are dropped of the product.
    pub shift: u32,
}

/// Bits of a place in the domain, from the highest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    /// Of the factors' numbers.
    pub(super) factor: u32,
    /// Of the segments' numbers.
    pub(super) segment: u32,
    /// Of the place in a segment.
    pub(super) rest: u32,
}

impl Polynomials {
    /// The bits of a place.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if there are more or fewer of something than there may be, or a sum or a product could have more than 59 bits.
    pub(super) fn split(&self) -> Result<Split> {
        let refuse = Err(ProtocolError::Parameters("the polynomials of a function"));
        let coefficients = self.polynomials.first().map_or(0, Vec::len);
        let is_like = |polynomial: &Vec<i64>| polynomial.len() == coefficients;
        let (segments, factors) = (self.polynomials.len(), self.factors.as_ref().map(|of| of.values.len()));
        if !segments.is_power_of_two()
            || !(1..=MAX_DOMAIN_BITS).contains(&self.bits)
            || !(1..=MAX_COLUMNS).contains(&coefficients)
            || !self.polynomials.iter().all(is_like)
            || factors.is_some_and(|factors| factors < 2 || !factors.is_power_of_two())
        {
            return refuse;
        }
        let [segment, factor] = [segments, factors.unwrap_or(1)].map(usize::trailing_zeros);
        if segment.max(factor) > MAX_PLACE_BITS || segment + factor > self.bits {
            return refuse;
        }
        let split = Split { factor, segment, rest: self.bits - segment - factor };
        let shift = self.factors.as_ref().map_or(0, |factors| factors.shift);
        if self.shift.max(shift) > MAX_SUM_BITS
            || self.magnitude(split.rest) >> MAX_SUM_BITS > 0
            || self
                .factors
                .as_ref()
                .is_some_and(|factors| factors.magnitude(self, split.rest) >> MAX_SUM_BITS > 0)
        {
            return refuse;
        }
        Ok(split)
    }

    /// The function at an integer, in the clear.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless it is a function.
    pub fn at(&self, x: i64) -> Result<i64> {
        let Split { factor: _, segment, rest } = self.split()?;
        let place = x.saturating_sub(self.low).clamp(0, (1 << self.bits) - 1);
        let (h, e) = (place >> rest & ((1 << segment) - 1), place & ((1 << rest) - 1));
        let refuse = || ProtocolError::Parameters("the polynomials of a function");
        let polynomial = self.polynomials.get(h as usize).ok_or_else(refuse)?;
        // Sums have at most 59 bits with all terms positive.
        let value = polynomial.iter().rev().fold(0, |value: i64, c| value * e + c);
        let cut = |value: i64, shift: u32| (value + half(shift) as i64) >> shift;
        let value = cut(value, self.shift);
        let Some(factors) = &self.factors else { return Ok(value) };
        let factor = factors.values.get((place >> (rest + segment)) as usize).ok_or_else(refuse)?;
        Ok(cut(factor * value, factors.shift))
    }

    /// The largest absolute value of a sum, rounding included.
    fn magnitude(&self, rest: u32) -> u128 {
        let of = |polynomial: &Vec<i64>| -> u128 {
            let term = |(power, c): (u32, &i64)| u128::from(c.unsigned_abs()) << (rest * power);
            (0..).zip(polynomial).map(term).sum()
        };
        let largest = self.polynomials.iter().map(of).max().unwrap_or(0);
        largest + u128::from(half(self.shift))
    }
}

impl Factors {
    /// The largest absolute value of a product with a value of the polynomials, rounding included.
    fn magnitude(&self, polynomials: &Polynomials, rest: u32) -> u128 {
        let largest = self.values.iter().map(|a| a.unsigned_abs()).max().unwrap_or(0);
        // Rounded up: a sum has fewer than 64 bits here.
        let value = (polynomials.magnitude(rest) >> polynomials.shift) + 1;
        u128::from(largest) * value + u128::from(half(self.shift))
    }
}

/// Half of `2^bits`, rounded down: what rounding adds before so many bits are dropped.
pub(super) const fn half(bits: u32) -> u64 {
    if bits == 0 { 0 } else { 1 << (bits - 1) }
}
