//! Functions of one value by polynomials on segments of a domain: exponentials, sigmoid, tanh, and whatever else is smooth or has a table.
//!
//! [`Polynomials`] says in integers what is computed, so that the result is a function of the value alone. OPAF's formulas (exponentials
//! of each party's own share, multiplied) and roundings of each party's own share are not: what they are off by is a function of the shares,
//! and a party that knows its own learns of the value by asking again. Here every carry is computed.
//!
//! ```text
//! u = clip(round(x / 2^shift) - low, 0, 2^bits - 1)        one comparison, unless the domain is the whole ring
//! u = g 2^(m+t) + h 2^t + e                                the carries of both parties' low t bits, and of the low m + t
//! c_0, c_1, ... of segment h                               one lookup
//! p = (... (c_d e + c_(d-1)) e + ...) e + c_0              for each degree products of p with both shares of e, and with the carry
//! b = round(p / 2^drop)                                    one comparison
//! y = round(a[g] b / 2^drop')                              a lookup of each party's share of b times every factor, and one comparison
//! ```

use std::sync::Arc;

use lanner_primitives::Ring;

use super::driver::{Driver, Task, only};
use super::horner::Horner;
use super::known::{Known, carries};
use super::lanes::{Lanes, mask};
use super::lookup::Table;
use super::polynomials::{Factors, Polynomials, Split, half};
use super::scale::Scale;
use crate::ProtocolError;

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
    split: Split,
    polynomials: Horner,
    sum: Rounded,
    product: Option<Product>,
}

/// Numbers that lose bits at their end, rounded, and what they then are shared modulo.
#[derive(Clone, Copy, Debug)]
struct Rounded {
    /// With the half that rounding adds.
    known: Known,
    shift: u32,
    to: u32,
}

/// The products with factors.
#[derive(Clone, Debug)]
struct Product {
    factors: Arc<Table>,
    rounded: Rounded,
}

impl Rounded {
    /// Of numbers between two, results modulo `2^to`.
    fn new(range: [i128; 2], shift: u32, to: u32) -> Self {
        let range = range.map(|end| end + i128::from(half(shift)));
        Self { known: Known::between(range, shift), shift, to }
    }

    /// Bits of the numbers that matter.
    fn bits(&self) -> u32 {
        self.known.bits.min(self.to + self.shift)
    }

    fn run<D: Driver>(&self, driver: &mut D, numbers: &D::Values) -> Result<D::Values, ProtocolError> {
        let (bits, half) = (self.bits(), driver.public(half(self.shift)));
        let numbers = numbers.map(|x| Ring::Pow2(bits).add(x & mask(bits), half & mask(bits)));
        self.known.reduced(bits).drop(driver, &numbers, self.shift, self.to)
    }
}

impl Product {
    /// With factors modulo as many bits as results modulo `2^to` need.
    fn new(factors: &Factors, b: [i128; 2], to: u32) -> Result<Self, ProtocolError> {
        let ends = || factors.values.iter().flat_map(|a| b.map(|b| i128::from(*a) * b));
        let range = [ends().min().unwrap_or(0), ends().max().unwrap_or(0)];
        let rounded = Rounded::new(range, factors.shift, to);
        let entries = factors.values.iter().map(|a| *a as u64).collect();
        let place_bits = factors.values.len().trailing_zeros();
        let factors = Arc::new(Table::new(place_bits, vec![(rounded.bits(), entries)])?);
        Ok(Self { factors, rounded })
    }
}

impl Function {
    pub(super) fn new(
        function: &Polynomials,
        [from, to]: [u32; 2],
        shift: u32,
    ) -> Result<Self, ProtocolError> {
        let refuse = |what| Err(ProtocolError::Shape { what });
        let split = function.split()?;
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
        let product = match &function.factors {
            None => None,
            Some(factors) => {
                let round = |p: i128| (p + i128::from(half(function.shift))) >> function.shift;
                let range = super::horner::range(&function.polynomials, split.rest).map(round);
                Some(Product::new(factors, range, to)?)
            }
        };
        let to = product.as_ref().map_or(to, |product| product.rounded.bits());
        let rounded = |range| Rounded::new(range, function.shift, to);
        let polynomials = Horner::new(&function.polynomials, split.rest, |range| rounded(range).bits())?;
        let sum = rounded(polynomials.range);
        let bits = function.bits;
        Ok(Self { scale: Scale { from, shift }, offset, is_whole, bits, split, polynomials, sum, product })
    }

    pub(super) fn run<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values, ProtocolError> {
        let u = self.place(driver, x)?;
        let Split { factor, segment, rest } = self.split;
        let e = u.map(|u| u & low_mask(rest));
        let [carry, through] = carries(driver, &u, [rest, if factor > 0 { segment } else { 0 }])?;
        // The numbers of segments and factors are both parties' sums, and the carries as values.
        let numbers = [(rest, segment, &carry), (rest + segment, factor, &through)];
        let needed = || numbers.iter().filter(|(_, bits, carry)| *bits > 0 && carry.is_some());
        let mut tasks = Vec::new();
        for (_, bits, carry) in needed() {
            let carry = carry.iter().map(|carry| carry.bits(u.count()));
            tasks.extend(carry.map(|carry| (carry, *bits)));
        }
        let mut values = driver.all_bits_to_values(tasks)?.into_iter();
        let [places, chosen] = numbers.map(|(from, bits, carry)| {
            let place = u.map(|u| u >> from & low_mask(bits));
            match carry.as_ref().filter(|_| bits > 0).and_then(|_| values.next()) {
                Some(carry) => place.zip_map(&carry, |place, carry| Ring::Pow2(bits).add(place, carry)),
                None => place,
            }
        });
        let sum = self.polynomials.run(driver, &places, &e, carry.as_ref())?;
        let rounded = self.sum.run(driver, &sum)?;
        let Some(Product { factors, rounded: last }) = &self.product else { return Ok(rounded) };
        let task = Task::Scaled { places: chosen, table: factors.clone(), values: rounded };
        let product = only(only(driver.turn(vec![task])?)?)?;
        last.run(driver, &product)
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
}

/// The widest ring.
const MAX_BITS: u32 = 62;

/// A given number of ones, perhaps none.
const fn low_mask(bits: u32) -> u64 {
    if bits == 0 { 0 } else { mask(bits) }
}
