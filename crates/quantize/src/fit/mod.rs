//! Polynomials for a function: how many segments, of which degree, with coefficients of how many bits.
//!
//! Of all that are close enough to the function at every integer of the domain, the one that takes the fewest bits to send is chosen. The
//! choice needs floating point, what is chosen is integers.

mod factors;
mod pieces;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use lanner_network::elementwise::{FixedFunction, MAX_DEGREE, MAX_POLYNOMIAL_BITS, MAX_SEGMENT_BITS};
use lanner_network::rounding_constant;
use pieces::{Pieces, Rounding};

/// More segments than the fewest that do, as powers of two: they are looked at, too, since they have fewer places each.
const MORE_SEGMENTS: u32 = 2;

/// Polynomials may miss what rounding their values leaves by so much: where they are farthest off, rounding may happen not to be.
const LUCK: f64 = 0.25;

/// What rounding coefficients is tried with where less is left.
const LEAST_ROOM: f64 = 0.05;

/// By how much less polynomials are to be off at the places that are looked at, where that turns out to be too much elsewhere.
const MARGINS: [f64; 5] = [0.0, 0.02, 0.05, 0.1, 0.2];

/// Of an integer that is off by no more than this, nothing is off.
const BELOW_1: f64 = 0.99;

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
    /// How many times the tolerance it may be off by there; once, if nothing is said.
    allowed: Option<Vec<f64>>,
}

/// Polynomials, and how far they are from the function.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fitted {
    pub(crate) function: FixedFunction,
    /// The largest distance at an integer of the domain, in units of the output, or in as many as it may be off by there.
    pub(crate) error: f64,
}

/// An operator, and the bits of the numbers that the unit of its input follows from.
type Asked = (usize, [u64; 3]);

/// What was found for functions before: one compilation asks for the same many times.
#[derive(Debug, Default)]
pub(crate) struct FitCache {
    fitted: Mutex<BTreeMap<String, Result<Fitted, String>>>,
    units: Mutex<BTreeMap<Asked, Option<f64>>>,
}

impl FitCache {
    /// What is known under a name that says all that it follows from; else what `fit` finds.
    pub(crate) fn get_or(
        &self,
        name: String,
        fit: impl FnOnce() -> Result<Fitted, String>,
    ) -> Result<Fitted, String> {
        let mut known = self.fitted.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(name).or_insert_with(fit).clone()
    }

    /// The unit of an operator's input that is known to follow from what it saw, and from the unit of its output; else what `find` finds.
    pub(crate) fn unit_or(
        &self,
        operator: usize,
        [low, high]: [f64; 2],
        unit: f64,
        find: impl FnOnce() -> Option<f64>,
    ) -> Option<f64> {
        let mut known = self.units.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry((operator, [low, high, unit].map(f64::to_bits))).or_insert_with(find)
    }
}

impl Target {
    /// The function `f` of real numbers on the integers `low .. low + 2^bits` of `input` units, in units of `output`.
    pub(crate) fn new(f: impl Fn(f64) -> f64, low: i64, bits: u32, [input, output]: [f64; 2]) -> Self {
        let value = |place: i64| f((low + place) as f64 * input) / output;
        Self { low, bits, values: (0..1_i64 << bits).map(value).collect(), allowed: None }
    }

    /// The same where places, counted from the first, may be off by so many times the tolerance.
    pub(crate) fn allowing(mut self, times: impl Fn(i64) -> f64) -> Self {
        self.allowed = Some((0..1_i64 << self.bits).map(times).collect());
        self
    }

    /// The same where the value of the first place must be 0, whatever it were otherwise: what is as close as that to 0 is 0, being an integer.
    pub(crate) fn starting_at_0(mut self) -> Self {
        let mut allowed = self.allowed.take().unwrap_or_else(|| vec![1.0; self.values.len()]);
        (self.values[0], allowed[0]) = (0.0, BELOW_1);
        Self { allowed: Some(allowed), ..self }
    }

    /// How many times the tolerance a place may be off by.
    fn allowed(&self, place: usize) -> f64 {
        self.allowed.as_ref().map_or(1.0, |allowed| allowed[place])
    }

    /// The cheapest polynomials that are nowhere farther from the function than `tolerance` units of the output, more than half a
    /// one; the closest that were found where none are.
    pub(crate) fn fit(&self, tolerance: f64) -> Fitted {
        let fitted = self.fit_polynomials(tolerance);
        let scaled = self.fit_factors(tolerance);
        match scaled {
            Some(scaled)
                if fitted.error > tolerance || scaled.function.sent_bits() < fitted.function.sent_bits() =>
            {
                scaled
            }
            _ => fitted,
        }
    }

    /// The same without factors.
    fn fit_polynomials(&self, tolerance: f64) -> Fitted {
        let mut best: Option<Fitted> = None;
        let mut closest: Option<Fitted> = None;
        let most = self.bits.min(MAX_SEGMENT_BITS);
        for degree in 0..=MAX_DEGREE {
            let mut more = 0;
            for segment_bits in 0..=most {
                let Some(pieces) = Pieces::new(&self.values, segment_bits, degree) else { break };
                let size = 1 << pieces.place_bits();
                let ends = |segment: usize| [segment * size, (segment + 1) * size - 1];
                let allowed = |segment| ends(segment).map(|place| self.allowed(place));
                let room = pieces.room(|segment| {
                    let [first, last] = allowed(segment);
                    tolerance * first.min(last) - 0.5
                });
                if room <= -LUCK {
                    if segment_bits == most && best.is_none() {
                        closest = closer(closest, self.finest(&pieces));
                    }
                    continue;
                }
                let room = room.max(LEAST_ROOM);
                let promises = best
                    .as_ref()
                    .is_none_or(|best| self.least_cost(&pieces, room) < best.function.sent_bits());
                let fitted = if promises { self.round(&pieces, tolerance, room) } else { None };
                if let Some(fitted) = fitted {
                    let cheaper = |best: &Fitted| fitted.function.sent_bits() < best.function.sent_bits();
                    if best.as_ref().is_none_or(cheaper) {
                        best = Some(fitted);
                    }
                }
                more += u32::from(best.is_some());
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
        self.measured(FixedFunction { low: self.low, bits: self.bits, polynomials, shift: 0, factors: None })
    }

    /// Integers for polynomials that miss the tolerance: what rounding loses is to be little beside what is lost anyway.
    fn finest(&self, pieces: &Pieces<'_>) -> Option<Fitted> {
        const ROOM: f64 = 0.125;
        let shift = pieces.least_shift(ROOM) + 1;
        self.with(pieces, &pieces.rounding(shift, ROOM)).map(|function| self.measured(function))
    }

    /// Integers for the polynomials of as few bits as may be within the tolerance, `room` of which is left for rounding them.
    fn round(&self, pieces: &Pieces<'_>, tolerance: f64, room: f64) -> Option<Fitted> {
        MARGINS.iter().find_map(|margin| {
            let fitted = self.round_at_places(pieces, tolerance - margin, (room - margin).max(LEAST_ROOM))?;
            (fitted.error <= tolerance).then_some(fitted)
        })
    }

    /// The same at the places that are looked at.
    fn round_at_places(&self, pieces: &Pieces<'_>, tolerance: f64, room: f64) -> Option<Fitted> {
        let least = pieces.least_shift(room);
        let shifts = least..=(least + MORE_SHIFT).min(MAX_POLYNOMIAL_BITS - 1);
        let roundings = shifts.map(|shift| pieces.rounding(shift, room / (pieces.degree() + 1) as f64));
        let (mut rounding, mut best) = roundings
            .into_iter()
            .find_map(|rounding| Some((rounding.clone(), self.within(pieces, &rounding, tolerance)?)))?;
        // More trailing zeros, as far as the tolerance goes: those common to all segments are not sent.
        for power in 0..rounding.zeros.len() {
            let most = rounding.shift + self.bits;
            while rounding.zeros[power] < most {
                let mut next = rounding.clone();
                next.zeros[power] += 1;
                let Some(function) = self.within(pieces, &next, tolerance) else { break };
                (rounding, best) = (next, function);
            }
        }
        Some(self.measured(best))
    }

    /// The polynomials with coefficients rounded in this way, if a function may have them.
    fn with(&self, pieces: &Pieces<'_>, rounding: &Rounding) -> Option<FixedFunction> {
        self.usable(pieces.rounded(rounding, |_, _| true)?, rounding.shift)
    }

    /// The function of these polynomials, without powers that none of them has, if it is one.
    fn usable(&self, mut polynomials: Vec<Vec<i64>>, shift: u32) -> Option<FixedFunction> {
        while polynomials.iter().all(|polynomial| polynomial.len() > 1 && polynomial.last() == Some(&0)) {
            for polynomial in &mut polynomials {
                polynomial.pop();
            }
        }
        let function = FixedFunction { low: self.low, bits: self.bits, polynomials, shift, factors: None };
        function.check_sizes().is_ok().then_some(function)
    }

    /// As [`Self::with`], if it is no farther than the tolerance at the places that are looked at: the first segment that is ends it.
    fn within(&self, pieces: &Pieces<'_>, rounding: &Rounding, tolerance: f64) -> Option<FixedFunction> {
        let size = 1 << pieces.place_bits();
        let is_near = |segment: usize, polynomial: &[i64]| {
            pieces.places().iter().all(|within| {
                let place = segment * size + within;
                let value = value_at(polynomial, *within as i64, rounding.shift);
                (value as f64 - self.values[place]).abs() <= tolerance * self.allowed(place)
            })
        };
        self.usable(pieces.rounded(rounding, is_near)?, rounding.shift)
    }

    /// A function with its largest error, over the whole domain.
    fn measured(&self, function: FixedFunction) -> Fitted {
        let off = |(place, value): (usize, &f64)| {
            (function.at(self.low + place as i64) as f64 - value).abs() / self.allowed(place)
        };
        let error = self.values.iter().enumerate().map(off).fold(0.0, f64::max);
        Fitted { function, error }
    }

    /// What the polynomials cost at least, more or less: if rounding any one of their coefficients could take all the room, and again as
    /// much where errors happen not to meet.
    fn least_cost(&self, pieces: &Pieces<'_>, room: f64) -> u64 {
        let rounding = pieces.rounding(pieces.least_shift(room), 2.0 * room);
        self.with(pieces, &rounding).map_or(0, |function| function.sent_bits())
    }
}

/// What a polynomial of a [`FixedFunction`] gives at a place of its segment. Where it leaves the machine's integers, the function is none that
/// may be.
fn value_at(polynomial: &[i64], place: i64, shift: u32) -> i64 {
    let value = polynomial
        .iter()
        .rev()
        .fold(0_i64, |value, coefficient| value.wrapping_mul(place).wrapping_add(*coefficient));
    value.wrapping_add(rounding_constant(shift)) >> shift
}

/// The closer of two, if there are any.
fn closer(one: Option<Fitted>, other: Option<Fitted>) -> Option<Fitted> {
    [one, other].into_iter().flatten().min_by(|a, b| a.error.total_cmp(&b.error))
}

#[cfg(test)]
mod tests;
