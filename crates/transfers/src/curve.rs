//! What a function is of a place in its domain: polynomials on segments, and factors of their values.

use std::sync::Arc;

use lanner_primitives::Ring;
use lanner_step::Result;

use super::driver::{Driver, Task, only};
use super::horner::Horner;
use super::known::{Known, carries};
use super::lanes::{Lanes, mask};
use super::lookup::Table;
use super::polynomials::{Factors, Split, half};

/// A function of places `u = g 2^(m+t) + h 2^t + e`: `b` is what polynomial h gives of e, cut; the result is b, or `a[g] b`, cut.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    split: Split,
    polynomials: Horner,
    sum: Shortened,
    product: Option<Product>,
}

/// How numbers lose bits at their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// To the nearest, halves upwards.
    Nearest,
    /// To the next below.
    Down,
}

impl Cut {
    /// What is added before so many bits are dropped.
    const fn added(self, bits: u32) -> u64 {
        match self {
            Self::Nearest => half(bits),
            Self::Down => 0,
        }
    }
}

/// Numbers that lose bits at their end, and what they then are shared modulo.
#[derive(Clone, Copy, Debug)]
struct Shortened {
    /// With what rounding adds.
    known: Known,
    cut: Cut,
    shift: u32,
    to: u32,
}

/// The products with factors.
#[derive(Clone, Debug)]
struct Product {
    factors: Arc<Table>,
    shortened: Shortened,
}

impl Shortened {
    /// Of numbers between two, results modulo `2^to`.
    fn new(range: [i128; 2], (shift, cut): (u32, Cut), to: u32) -> Self {
        let range = range.map(|end| end + i128::from(cut.added(shift)));
        Self { known: Known::between(range, shift), cut, shift, to }
    }

    /// Bits of the numbers that matter.
    fn bits(&self) -> u32 {
        self.known.bits.min(self.to + self.shift)
    }

    fn run<D: Driver>(&self, driver: &mut D, numbers: &D::Values) -> Result<D::Values> {
        let (bits, added) = (self.bits(), driver.public(self.cut.added(self.shift)));
        let numbers = numbers.map(|x| Ring::Pow2(bits).add(x & mask(bits), added & mask(bits)));
        self.known.reduced(bits).drop(driver, &numbers, self.shift, self.to)
    }
}

impl Product {
    /// With factors modulo as many bits as results modulo `2^to` need.
    fn new(factors: &Factors, b: [i128; 2], cut: Cut, to: u32) -> Result<Self> {
        let ends = || factors.values.iter().flat_map(|a| b.map(|b| i128::from(*a) * b));
        let range = [ends().min().unwrap_or(0), ends().max().unwrap_or(0)];
        let shortened = Shortened::new(range, (factors.shift, cut), to);
        let entries = factors.values.iter().map(|a| *a as u64).collect();
        let place_bits = factors.values.len().trailing_zeros();
        let factors = Arc::new(Table::new(place_bits, vec![(shortened.bits(), entries)])?);
        Ok(Self { factors, shortened })
    }
}

impl Curve {
    /// Of polynomials whose sums lose `shift` bits, and factors whose products lose theirs; results modulo `2^to`.
    pub(super) fn new(
        split: Split,
        polynomials: &[Vec<i64>],
        (shift, cut): (u32, Cut),
        factors: Option<&Factors>,
        to: u32,
    ) -> Result<Self> {
        let product = match factors {
            None => None,
            Some(factors) => {
                let shortened = |p: i128| (p + i128::from(cut.added(shift))) >> shift;
                let range = super::horner::range(polynomials, split.rest).map(shortened);
                Some(Product::new(factors, range, cut, to)?)
            }
        };
        let to = product.as_ref().map_or(to, |product| product.shortened.bits());
        let shortened = |range| Shortened::new(range, (shift, cut), to);
        let polynomials = Horner::new(polynomials, split.rest, |range| shortened(range).bits())?;
        let sum = shortened(polynomials.range);
        Ok(Self { split, polynomials, sum, product })
    }

    /// The results, of places that are shared modulo the domain's size.
    pub(super) fn run<D: Driver>(&self, driver: &mut D, u: &D::Values) -> Result<D::Values> {
        let Split { factor, segment, rest } = self.split;
        let e = u.map(|u| u & low_mask(rest));
        let [low, high] = self.polynomials.digits();
        let widths = [low, high, factor];
        // Of what nobody reads above it, no run needs a carry.
        let reads = |from: usize| widths[from..].iter().any(|bits| *bits > 0);
        let runs = [rest, if reads(1) { low } else { 0 }, if reads(2) { high } else { 0 }];
        let carries = carries(driver, u, &runs)?;
        // The digits of segments' numbers, and factors', are both parties' sums, and the carries as values.
        let starts = [rest, rest + low, rest + segment];
        let digits = || starts.into_iter().zip(widths).zip(&carries);
        let needed = digits().filter_map(|((_, bits), carry)| Some((carry.as_ref()?.bits(u.count()), bits)));
        let mut values =
            driver.all_bits_to_values(needed.filter(|(_, bits)| *bits > 0).collect())?.into_iter();
        let [low, high, chosen] = std::array::from_fn(|place| {
            let (from, bits) = (starts[place], widths[place]);
            let digit = u.map(|u| u >> from & low_mask(bits));
            match carries[place].as_ref().filter(|_| bits > 0).and_then(|_| values.next()) {
                Some(carry) => digit.zip_map(&carry, |digit, carry| Ring::Pow2(bits).add(digit, carry)),
                None => digit,
            }
        });
        let sum = self.polynomials.run(driver, &[low, high], &e, carries[0].as_ref())?;
        let shortened = self.sum.run(driver, &sum)?;
        let Some(Product { factors, shortened: last }) = &self.product else { return Ok(shortened) };
        let task = Task::Scaled { places: chosen, table: factors.clone(), values: shortened };
        let product = only(only(driver.turn(vec![task])?)?)?;
        last.run(driver, &product)
    }
}

/// A given number of ones, perhaps none.
const fn low_mask(bits: u32) -> u64 {
    if bits == 0 { 0 } else { mask(bits) }
}
