//! Horner's rule on shares: sums and coefficients in rings as narrow as their ranges, and wider where what they enter is.
//!
//! ```text
//! p_d = c_d;  p_i = p_(i+1) e + c_i
//! ```
//!
//! All that is known of a sum, and of the coefficients of one power, is public: the range in which it lies, and zeros at its end. It is looked
//! up, or computed, modulo twice the range; a product of one bit then takes it to the ring of the next.

use std::sync::Arc;

use lanner_primitives::Ring;
use lanner_step::{ProtocolError, Result};

use super::driver::{Driver, Task, only};
use super::known::{Known, Widened, widen};
use super::lanes::{Lanes, mask};
use super::lookup::Table;
use super::units::{self, Way};

/// Bits, more or less, that a transfer takes offline.
const TRANSFER: u32 = 1;

/// Polynomials on segments.
#[derive(Clone, Debug)]
pub(super) struct Horner {
    /// Bits of the place in a segment.
    rest: u32,
    segment_bits: u32,
    /// For each power, the constant first.
    terms: Vec<Term>,
    /// The coefficients that are not the same on all segments, if there are some, and how they are found.
    table: Option<(Arc<Table>, Way)>,
    /// What sums lie between.
    pub(super) range: [i128; 2],
}

/// The coefficients of a power, and the sum from there on.
#[derive(Clone, Debug)]
struct Term {
    /// Zeros at the end of all coefficients, which are not looked up, and the ring of what is left.
    zeros: u32,
    needed: u32,
    /// The ring that they are looked up in, where that is a narrower one.
    narrow: Option<Known>,
    /// The coefficient without the zeros, where it is the same on all segments.
    constant: Option<i64>,
    /// Zeros at the end of the sum, and the ring that it is computed in without these.
    unit: u32,
    ring: u32,
    /// Its range.
    known: Known,
    /// The ring that what it is multiplied with must be right in: its own at least. Nothing for the constant's.
    wide: u32,
}

impl Horner {
    /// Polynomials, all of as many coefficients, on segments of `2^rest` places, with sums modulo a power of two, whose bits follow from what
    /// the sums lie between.
    pub(super) fn new(polynomials: &[Vec<i64>], rest: u32, bits: impl Fn([i128; 2]) -> u32) -> Result<Self> {
        let segment_bits = polynomials.len().trailing_zeros();
        let powers = polynomials[0].len();
        let ranges = ranges(polynomials, rest);
        let bits = bits(ranges[0]);
        let column = |power: usize| polynomials.iter().map(move |polynomial| polynomial[power]);
        let all = |power: usize| column(power).fold(1_i64 << (bits - 1), |all, c| all | c);
        let mut units: Vec<u32> = (0..powers).map(|power| all(power).trailing_zeros()).collect();
        let zeros = units.clone();
        for power in (1..powers).rev() {
            units[power - 1] = units[power - 1].min(units[power]);
        }
        let mut terms: Vec<Term> = Vec::new();
        for power in 0..powers {
            let unit = units[power];
            let known = Known::between(ranges[power].map(|end| end >> unit), 0);
            let (wide, ring) = match terms.last() {
                None => (bits - unit, bits - unit),
                Some(next) => {
                    let wide = next.ring.saturating_sub(unit - next.unit).max(1);
                    // The highest power's sum is its coefficient, which has a ring of its own.
                    (wide, if power + 1 < powers { known.bits.min(wide) } else { wide })
                }
            };
            let zeros = zeros[power].min(unit + ring - 1);
            let needed = ring - (zeros - unit);
            let ends = column(power).fold([i64::MAX, i64::MIN], |[low, high], c| [low.min(c), high.max(c)]);
            let narrow = Known::between(ends.map(|end| i128::from(end >> zeros)), 0);
            let constant = (ends[0] == ends[1]).then_some(ends[0] >> zeros);
            let is_narrow = constant.is_none() && is_worth(narrow.bits, needed, segment_bits);
            let narrow = is_narrow.then_some(narrow);
            terms.push(Term { zeros, needed, narrow, constant, unit, ring, known, wide });
        }
        let of = |(power, term): (usize, &Term)| {
            let entries = column(power).map(|c| (c >> term.zeros) as u64).collect();
            (term.narrow.map_or(term.needed, |narrow| narrow.bits), entries)
        };
        let differ = terms.iter().enumerate().filter(|(_, term)| term.constant.is_none());
        let columns: Vec<(u32, Vec<u64>)> = differ.map(of).collect();
        let table = if columns.is_empty() {
            None
        } else {
            let table = Table::new(segment_bits, columns)?;
            let way = Way::of(table.shape());
            Some((Arc::new(table), way))
        };
        Ok(Self { rest, segment_bits, terms, table, range: ranges[0] })
    }

    /// The bits of the low and the high digit in which the segments' numbers are taken.
    pub(super) fn digits(&self) -> [u32; 2] {
        self.table.as_ref().map_or([self.segment_bits, 0], |(_, way)| way.digits(self.segment_bits))
    }

    /// The sums, of places in segments that both parties' are but for the carry, which is shared in words; of the digits of the segments' numbers.
    pub(super) fn run<D: Driver>(
        &self,
        driver: &mut D,
        places: &[D::Values; 2],
        e: &D::Values,
        carry: Option<&D::Values>,
    ) -> Result<D::Values> {
        let mut coefficients = self.coefficients(driver, places)?;
        let missing = || ProtocolError::Missing("the coefficients of a function");
        let mut sum = coefficients.pop().ok_or_else(missing)?;
        for (power, coefficient) in coefficients.into_iter().enumerate().rev() {
            let (term, above) = (&self.terms[power], &self.terms[power + 1]);
            let widened = Widened { numbers: sum, known: above.known, to: above.wide };
            // The highest power's is as wide as it must be.
            sum =
                if above.ring < above.wide { only(widen(driver, vec![widened])?)? } else { widened.numbers };
            let product = self.product(driver, sum, above.wide, e, carry)?;
            let ring = Ring::Pow2(term.ring);
            let [up, beside] = [above.unit - term.unit, term.zeros - term.unit];
            sum = product.zip_map(&coefficient, |p, c| {
                ring.add(p << up & mask(term.ring), c << beside & mask(term.ring))
            });
        }
        let Term { unit, ring, .. } = self.terms[0];
        Ok(sum.map(|p| (p & mask(ring)) << unit))
    }

    /// The coefficients of each value's polynomial, the constant first, without their zeros.
    fn coefficients<D: Driver>(&self, driver: &mut D, places: &[D::Values; 2]) -> Result<Vec<D::Values>> {
        let looked_up = match &self.table {
            Some((table, Way::Entries)) => {
                let places = places[0].map(|place| place & mask(self.segment_bits));
                only(driver.turn(vec![Task::Lookup { places, table: table.clone() }])?)?
            }
            Some((table, Way::Units(digits))) => units::entries(driver, places, *digits, table)?,
            None => Vec::new(),
        };
        let differ = self.terms.iter().filter(|term| term.constant.is_none());
        let whole = |term: &Term| Known::between([0; 2], term.needed - 1);
        let widened = |(term, numbers): (&Term, D::Values)| {
            let known = term.narrow.unwrap_or_else(|| whole(term));
            Widened { numbers, known, to: term.needed }
        };
        let mut found = widen(driver, differ.zip(looked_up).map(widened).collect())?.into_iter();
        let missing = || ProtocolError::Missing("the coefficients of a function");
        let of = |term: &Term| {
            let Some(constant) = term.constant else { return found.next().ok_or_else(missing) };
            let share = driver.public(constant as u64) & mask(term.needed);
            Ok(places[0].map(|_| share))
        };
        self.terms.iter().map(of).collect()
    }

    /// The products of sums and places, modulo `2^bits`.
    fn product<D: Driver>(
        &self,
        driver: &mut D,
        sum: D::Values,
        bits: u32,
        e: &D::Values,
        carry: Option<&D::Values>,
    ) -> Result<D::Values> {
        let missing = || ProtocolError::Missing("the products of a function");
        let Some(carry) = carry else {
            // One integer for each segment: there is no place in one.
            return Ok(sum.map(|_| 0));
        };
        let ring = Ring::Pow2(bits);
        let factor = self.rest.min(bits);
        let whole = Task::Multiply { numbers: e.clone(), factor, values: sum.clone(), bits };
        if bits <= self.rest {
            return only(only(driver.turn(vec![whole])?)?);
        }
        let wrapped = Task::Mux { choices: carry.clone(), values: sum, bits: bits - self.rest };
        let mut done = driver.turn(vec![whole, wrapped])?;
        let wrapped = only(done.pop().ok_or_else(missing)?)?;
        let product = only(only(done)?)?;
        Ok(product.zip_map(&wrapped, |p, wrapped| ring.sub(p, wrapped << self.rest & mask(bits))))
    }
}

/// Whether it sends less to look up a column of a table of `2^place_bits` rows in a narrow ring, and to widen what was found.
const fn is_worth(narrow: u32, needed: u32, place_bits: u32) -> bool {
    narrow < needed && (needed - narrow) << place_bits > 1 + needed - narrow + TRANSFER
}

/// What sums lie between.
pub(super) fn range(polynomials: &[Vec<i64>], rest: u32) -> [i128; 2] {
    ranges(polynomials, rest).first().copied().unwrap_or_default()
}

/// What the sum from each power on lies between, for all polynomials and all places.
fn ranges(polynomials: &[Vec<i64>], rest: u32) -> Vec<[i128; 2]> {
    let last = (1_i128 << rest) - 1;
    let mut ranges = vec![[i128::MAX, i128::MIN]; polynomials[0].len()];
    for polynomial in polynomials {
        let [mut low, mut high] = [0, 0];
        for (range, c) in ranges.iter_mut().zip(polynomial).rev() {
            let c = i128::from(*c);
            [low, high] = [c + (low * last).min(0), c + (high * last).max(0)];
            *range = [range[0].min(low), range[1].max(high)];
        }
    }
    ranges
}
