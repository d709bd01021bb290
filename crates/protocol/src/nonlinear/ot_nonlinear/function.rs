//! Functions of one value by polynomials on segments of a domain: exponentials, sigmoid, tanh, and whatever else is smooth or has a table.
//!
//! [`Polynomials`] says in integers what is computed, so that the result is a function of the value alone. OPAF's formulas (exponentials
//! of each party's own share, multiplied) and roundings of each party's own share are not: what they are off by is a function of the shares,
//! and a party that knows its own learns of the value by asking again. Here every carry is computed.
//!
//! ```text
//! u = clip(round(x / 2^shift) - low, 0, 2^bits - 1)        one comparison, unless the domain is the whole ring
//! u = h 2^t + e                                            the carry c of both parties' low t bits
//! c_0, c_1, ... of segment h                               one lookup
//! p = (... (c_d e + c_(d-1)) e + ...) e + c_0              for each degree products of p with both shares of e, and with c
//! y = round(p / 2^drop)                                    one comparison
//! ```

use std::sync::Arc;

use lanner_primitives::Ring;
use serde::{Deserialize, Serialize};

use super::driver::{Driver, Task, only};
use super::lanes::{Lanes, mask};
use super::lookup::{MAX_COLUMNS, MAX_PLACE_BITS, Table};
use super::scale::Scale;
use crate::ProtocolError;

/// A function by polynomials on equal segments of its domain, all in integers.
///
/// Of `x` it is `floor((p + 2^(shift-1)) / 2^shift)` (`p` where the shift is 0) for the sum `p` of `polynomials[h][i] e^i`, where `u`, which
/// is `x - low` but not below 0 nor above `2^bits - 1`, is `h 2^t + e` with `e < 2^t`, and there are `2^(bits-t)` segments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Polynomials {
    /// Where the domain begins.
    pub low: i64,
    /// The domain has `2^bits` integers, 1 to 16 bits.
    pub bits: u32,
    /// The coefficients of each segment, the constant first, as many for all: 1 to 4, of at most 256 segments.
    pub polynomials: Vec<Vec<i64>>,
    /// Bits that are dropped in the end.
    pub shift: u32,
}

impl Polynomials {
    /// Bits of the segments' numbers, and of the place in one.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if there are more or fewer of something than there may be, or a sum could have more than 56 bits.
    fn split(&self) -> Result<[u32; 2], ProtocolError> {
        let refuse = Err(ProtocolError::Shape { what: "the polynomials of a function" });
        let segments = self.polynomials.len();
        let coefficients = self.polynomials.first().map_or(0, Vec::len);
        let is_like = |polynomial: &Vec<i64>| polynomial.len() == coefficients;
        if !segments.is_power_of_two()
            || segments > 1 << MAX_PLACE_BITS.min(self.bits)
            || !(1..=16).contains(&self.bits)
            || !(1..=MAX_COLUMNS).contains(&coefficients)
            || !self.polynomials.iter().all(is_like)
        {
            return refuse;
        }
        let place = segments.trailing_zeros();
        let split = [place, self.bits - place];
        if self.shift > MAX_SUM_BITS || self.magnitude(split[1]) >= 1 << MAX_SUM_BITS {
            return refuse;
        }
        Ok(split)
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

/// A sum has its sign in 62 bits with room.
const MAX_SUM_BITS: u32 = 56;

/// See [`super::Layer::function`].
#[derive(Clone, Debug)]
pub(super) struct Function {
    /// How values come: rounded, less where the domain begins.
    scale: Scale,
    /// Added by the server before: half of what is dropped, less where the domain begins.
    offset: u64,
    /// Whether the domain is the whole ring.
    is_whole: bool,
    bits: u32,
    /// Bits of the place in a segment.
    rest: u32,
    table: Segments,
    /// Bits of the sums, and of what is dropped of them.
    sum: Scale,
    to: u32,
}

#[derive(Clone, Debug)]
enum Segments {
    /// One polynomial.
    One(Vec<i64>),
    /// One for each number of so many bits; trailing zeros that all entries of a column have are not looked up.
    Many { bits: u32, table: Arc<Table>, zeros: Vec<u32> },
}

impl Function {
    pub(super) fn new(
        function: &Polynomials,
        [from, to]: [u32; 2],
        shift: u32,
    ) -> Result<Self, ProtocolError> {
        let refuse = |what| Err(ProtocolError::Shape { what });
        let [place, rest] = function.split()?;
        let left = from.saturating_sub(shift);
        if from > MAX_BITS || !(1..=MAX_BITS).contains(&to) {
            return refuse("bits of a function");
        }
        let is_whole = left == function.bits && function.low == -1 << (function.bits - 1);
        let fits = left > function.bits && function.low.unsigned_abs() <= 1 << (left - 2);
        if !is_whole && !fits {
            return refuse("a domain beyond a quarter of the ring");
        }
        let ring = Ring::Pow2(from);
        let offset = ring.sub(half(shift), ring.embed(function.low << shift));
        // With their sign, as far as the results need them.
        let bits = u128::BITS - function.magnitude(rest).leading_zeros() + 1;
        let sum =
            Scale { from: bits.min(to + function.shift).max(function.shift + 2), shift: function.shift };
        let table = segments(function, place, sum.from)?;
        Ok(Self { scale: Scale { from, shift }, offset, is_whole, bits: function.bits, rest, table, sum, to })
    }

    pub(super) fn run<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values, ProtocolError> {
        let u = self.place(driver, x)?;
        let (count, e) = (u.count(), u.map(|u| u & low_mask(self.rest)));
        let carry = if self.rest > 0 { Some(driver.carry(e.clone(), self.rest)?) } else { None };
        let coefficients = self.coefficients(driver, &u, carry.as_ref(), count)?;
        let sum = self.evaluate(driver, coefficients, &e, carry.as_ref())?;
        let half = driver.public(half(self.sum.shift));
        let ring = Ring::Pow2(self.sum.from);
        self.sum.extend(driver, &sum.map(|p| ring.add(p, half)), self.to)
    }

    /// Where values lie in the domain, modulo its size.
    fn place<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values, ProtocolError> {
        let (ring, offset) = (Ring::Pow2(self.scale.from), driver.public(self.offset));
        let x = x.map(|x| ring.add(x, offset));
        let u = if self.is_whole {
            self.scale.extend(driver, &x, self.bits)?
        } else {
            self.scale.clip(driver, &x, mask(self.bits) as i64)?
        };
        Ok(u.map(|u| u & mask(self.bits)))
    }

    /// The coefficients of each value's polynomial with the zeros that are missing behind them, the constant first.
    fn coefficients<D: Driver>(
        &self,
        driver: &mut D,
        u: &D::Values,
        carry: Option<&D::Values>,
        count: usize,
    ) -> Result<Vec<(D::Values, u32)>, ProtocolError> {
        match &self.table {
            Segments::One(polynomial) => {
                let ring = Ring::Pow2(self.sum.from);
                let all = |c: &i64| {
                    let share = driver.public(ring.embed(*c));
                    (u.map(|_| share), 0)
                };
                Ok(polynomial.iter().map(all).collect())
            }
            Segments::Many { bits, table, zeros } => {
                let mut places = u.map(|u| u >> self.rest);
                if let Some(carry) = carry {
                    let carry = driver.bits_to_values(&carry.bits(count), *bits)?;
                    places = places.zip_map(&carry, |place, carry| Ring::Pow2(*bits).add(place, carry));
                }
                let entries = only(driver.turn(vec![Task::Lookup { places, table: table.clone() }])?)?;
                Ok(entries.into_iter().zip(zeros.iter().copied()).collect())
            }
        }
    }

    /// Horner's rule over the place in the segment, which is both parties' sum but for the carry.
    fn evaluate<D: Driver>(
        &self,
        driver: &mut D,
        mut coefficients: Vec<(D::Values, u32)>,
        e: &D::Values,
        carry: Option<&D::Values>,
    ) -> Result<D::Values, ProtocolError> {
        let missing = || ProtocolError::Shape { what: "the coefficients of a function" };
        let (mut sum, mut zeros) = coefficients.pop().ok_or_else(missing)?;
        while let Some((coefficient, others)) = coefficients.pop() {
            let bits = self.sum.from - zeros;
            let ring = Ring::Pow2(bits);
            let factor = self.rest.min(bits);
            let whole = Task::Multiply { numbers: e.clone(), factor, values: sum.clone(), bits };
            let product = match carry {
                Some(carry) if bits > self.rest => {
                    let wrapped = Task::Mux { choices: carry.clone(), values: sum, bits: bits - self.rest };
                    let mut done = driver.turn(vec![whole, wrapped])?;
                    let wrapped = only(done.pop().ok_or_else(missing)?)?;
                    only(only(done)?)?.zip_map(&wrapped, |p, wrapped| {
                        ring.sub(p, ring.embed((wrapped << self.rest) as i64))
                    })
                }
                Some(_) => only(only(driver.turn(vec![whole])?)?)?,
                // One integer for each segment: there is no place in one.
                None => sum.map(|_| 0),
            };
            // Both to the zeros that they have in common.
            let common = zeros.min(others);
            let ring = Ring::Pow2(self.sum.from - common);
            sum = product.zip_map(&coefficient, |p, c| {
                ring.add(
                    ring.embed((p << (zeros - common)) as i64),
                    ring.embed((c << (others - common)) as i64),
                )
            });
            zeros = common;
        }
        let ring = Ring::Pow2(self.sum.from);
        Ok(sum.map(|p| ring.embed((p << zeros) as i64)))
    }
}

/// The polynomials as a table whose entries make sums of so many bits.
fn segments(function: &Polynomials, place: u32, bits: u32) -> Result<Segments, ProtocolError> {
    if place == 0 {
        return Ok(Segments::One(function.polynomials[0].clone()));
    }
    let mut zeros = Vec::new();
    let mut columns = Vec::new();
    for power in 0..function.polynomials[0].len() {
        let column = || function.polynomials.iter().map(|polynomial| polynomial[power]);
        let common = column().fold(1_i64 << (bits - 1), |all, c| all | c).trailing_zeros();
        zeros.push(common);
        columns.push((bits - common, column().map(|c| (c >> common) as u64).collect()));
    }
    Ok(Segments::Many { bits: place, table: Arc::new(Table::new(place, columns)?), zeros })
}

/// Half of `2^bits`, rounded down: what rounding adds before so many bits are dropped.
const fn half(bits: u32) -> u64 {
    if bits == 0 { 0 } else { 1 << (bits - 1) }
}

/// The widest ring.
const MAX_BITS: u32 = 62;

/// A given number of ones, perhaps none.
const fn low_mask(bits: u32) -> u64 {
    if bits == 0 { 0 } else { mask(bits) }
}
