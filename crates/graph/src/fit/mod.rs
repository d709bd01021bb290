//! Polynomials for a function: how many segments, of which degree, with coefficients of how many bits.
//!
//! Of all that are close enough to the function at every integer of the domain, the one that takes the fewest bits to send is chosen. The
//! choice needs floating point, what is chosen is integers.

mod pieces;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use pieces::{Pieces, Rounding};

use crate::elementwise::{FixedFunction, MAX_DEGREE, MAX_POLYNOMIAL_BITS, MAX_SEGMENT_BITS};

/// More segments than the fewest that do, as powers of two: they are looked at, too, since they have fewer places each.
const MORE_SEGMENTS: u32 = 2;

/// More bits of the coefficients than what the estimate says.
const MORE_SHIFT: u32 = 6;

/// A function as fixed point is to have it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    /// Where its domain begins.
    low: i64,
    /// The domain has 2^bits integers.
    bits: u32,
    /// What it is there, in units of the output.
    values: Vec<f64>,
}

/// Polynomials, and how far they are from the function.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fitted {
    pub(crate) function: FixedFunction,
    /// The largest distance at an integer of the domain, in units of the output.
    pub(crate) error: f64,
}

/// What was found for functions before: one compilation asks for the same many times.
#[derive(Debug, Default)]
pub(crate) struct Fits(Mutex<BTreeMap<String, Fitted>>);

impl Fits {
    /// What is known under a name that says all that it follows from; else what `fit` finds.
    pub(crate) fn get_or(
        &self,
        name: String,
        fit: impl FnOnce() -> Result<Fitted, String>,
    ) -> Result<Fitted, String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fitted) = known.get(&name) {
            return Ok(fitted.clone());
        }
        let fitted = fit()?;
        known.insert(name, fitted.clone());
        Ok(fitted)
    }
}

impl Target {
    /// The function `f` of real numbers on the integers `low .. low + 2^bits` of `input` units, in units of `output`.
    pub(crate) fn new(f: impl Fn(f64) -> f64, low: i64, bits: u32, [input, output]: [f64; 2]) -> Self {
        let value = |place: i64| f((low + place) as f64 * input) / output;
        Self { low, bits, values: (0..1_i64 << bits).map(value).collect() }
    }

    /// The cheapest polynomials that are nowhere farther from the function than `tolerance` units of the output, more than half a
    /// one; the closest that were found where none are.
    pub(crate) fn fit(&self, tolerance: f64) -> Fitted {
        let mut best: Option<Fitted> = None;
        let mut closest: Option<Fitted> = None;
        for degree in 0..=MAX_DEGREE {
            let mut more = 0;
            for segment_bits in 0..=self.bits.min(MAX_SEGMENT_BITS) {
                let Some(pieces) = Pieces::new(&self.values, segment_bits, degree) else { break };
                let is_last = segment_bits == self.bits.min(MAX_SEGMENT_BITS);
                let room = tolerance - 0.5 - pieces.error();
                if room <= 0.0 && !is_last {
                    continue;
                }
                if let Some(fitted) = self.round(&pieces, tolerance, room) {
                    let cheapest =
                        best.as_ref().is_none_or(|best| cost(&fitted.function) < cost(&best.function));
                    if fitted.error <= tolerance && cheapest {
                        best = Some(fitted.clone());
                    }
                    if closest.as_ref().is_none_or(|closest| fitted.error < closest.error) {
                        closest = Some(fitted);
                    }
                }
                more += 1;
                if more > MORE_SEGMENTS {
                    break;
                }
            }
        }
        // A constant is always there.
        best.or(closest).unwrap_or_else(|| self.constant())
    }

    /// The value in the middle of the domain, everywhere.
    fn constant(&self) -> Fitted {
        let polynomials = vec![vec![self.values[self.values.len() / 2].round() as i64]];
        self.measured(FixedFunction { low: self.low, bits: self.bits, polynomials, shift: 0 })
    }

    /// Integers for the polynomials: as few bits as may be within the tolerance, or, where it cannot be kept, as many as do some good.
    fn round(&self, pieces: &Pieces<'_>, tolerance: f64, room: f64) -> Option<Fitted> {
        // Where there is no room, what is lost by rounding is to be little beside what is lost anyway.
        let room = if room > 0.0 { room } else { 0.125 };
        let least = pieces.least_shift(room);
        let mut last = None;
        for shift in least..=(least + MORE_SHIFT).min(MAX_POLYNOMIAL_BITS - 1) {
            let rounding = pieces.rounding(shift, room);
            let Some(fitted) = self.with(pieces, &rounding) else { break };
            if fitted.error <= tolerance {
                return Some(self.coarser(pieces, rounding, fitted, tolerance));
            }
            last = Some(fitted);
        }
        last
    }

    /// The same with more trailing zeros, as far as the tolerance goes: those common to all segments are not sent.
    fn coarser(&self, pieces: &Pieces<'_>, rounding: Rounding, fitted: Fitted, tolerance: f64) -> Fitted {
        let (mut rounding, mut best) = (rounding, fitted);
        for power in 0..rounding.zeros.len() {
            loop {
                let mut next = rounding.clone();
                next.zeros[power] += 1;
                let better = self.with(pieces, &next).filter(|fitted| fitted.error <= tolerance);
                let Some(fitted) = better.filter(|_| next.zeros[power] <= next.shift + self.bits) else {
                    break;
                };
                (rounding, best) = (next, fitted);
            }
        }
        best
    }

    /// The polynomials with coefficients rounded in this way, if a function may have them.
    fn with(&self, pieces: &Pieces<'_>, rounding: &Rounding) -> Option<Fitted> {
        let polynomials = pieces.rounded(rounding)?;
        let function = FixedFunction { low: self.low, bits: self.bits, polynomials, shift: rounding.shift };
        function.check_sizes().is_ok().then(|| self.measured(function))
    }

    /// A function with its largest error, over the whole domain.
    fn measured(&self, function: FixedFunction) -> Fitted {
        let error = |(x, value): (i64, &f64)| (function.at(x) as f64 - value).abs();
        let error = (self.low..).zip(&self.values).map(error).fold(0.0, f64::max);
        Fitted { function, error }
    }
}

/// An estimate of the bits that the parties send for one element: a table of coefficients that is looked up, without the zeros at their
/// ends, and a product for each power.
pub(crate) fn cost(function: &FixedFunction) -> u64 {
    let width = u64::from(width(function));
    let zeros = |power: usize| {
        let all = function.polynomials.iter().fold(0, |all, polynomial| all | polynomial[power]);
        u64::from(all.trailing_zeros()).min(width)
    };
    let entry: u64 = (0..=function.degree()).map(|power| width - zeros(power)).sum();
    let products = function.degree() as u64 * 2 * u64::from(function.place_bits()) * (width + 8);
    function.polynomials.len() as u64 * entry + 60 + products
}

/// The bits, with a sign, of what the function computes before it drops some.
pub(crate) fn width(function: &FixedFunction) -> u32 {
    let [least, most] = function.range(function.low, function.last());
    let largest = most.max(-least) + 1;
    u64::BITS - largest.unsigned_abs().leading_zeros() + 1 + function.shift
}

#[cfg(test)]
mod tests;
