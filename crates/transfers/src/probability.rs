//! The index of the largest score and its softmax probability to some digits: what a circuit of the same name computes, by transfers.
//!
//! ```text
//! x_t, t = the largest score and its index                          a tournament
//! d_k = min(floor(x_t / 2^s) - floor(x_k / 2^s), D)                 carries of low bits, and a comparison
//! z_k = floor(c d_k / 2^r) = h 2^j + f                              a wider ring, and a carry
//! T_k = floor(M(f) / 2^h)                                           polynomials' coefficients and 2^-h are looked up
//! p = floor(10^l 2^F / S + 1/2) for S = sum T_k                     comparisons with multiples of S
//! ```
//!
//! Every floor is exact, so that t and p are functions of the scores alone, the same as the circuit's.

use lanner_gc::library::Exponential;
use lanner_primitives::Ring;
use lanner_step::{ProtocolError, Result, softmax_ring};

use super::curve::{Curve, Cut};
use super::division::{Division, sum};
use super::driver::Driver;
use super::known::Known;
use super::lanes::{Lanes, mask};
use super::lookup::MAX_PLACE_BITS;
use super::polynomials::{Factors, Split};
use super::scale::Scale;
use super::tournament::largest;

/// See [`super::Layer::softmax`].
#[derive(Clone, Debug)]
pub(super) struct Softmax {
    /// Bits of the scores, and how many do not count.
    bits: u32,
    dropped: u32,
    /// The largest difference that is told from others: none if there are no larger ones.
    largest: Option<u64>,
    /// What terms are of distances, where they are not all alike, and the largest of them.
    terms: Option<Terms>,
    one: u64,
    division: Division,
    /// Bits of the results.
    to: u32,
}

/// T of distances.
#[derive(Clone, Debug)]
struct Terms {
    /// Halvings for each unit of a distance, in units of `2^-(j + cut)`.
    factor: u64,
    cut: u32,
    /// The products.
    known: Known,
    /// Bits of z.
    bits: u32,
    curve: Curve,
}

impl Softmax {
    /// Of scores of `bits` bits.
    pub(super) fn new(
        classes: usize,
        bits: u32,
        dropped: u32,
        exponential: &Exponential,
        digits: u32,
    ) -> Result<Self> {
        let refuse = |what| Err(ProtocolError::Parameters(what));
        let left = bits.saturating_sub(dropped);
        if left < 3 || bits > 62 {
            return refuse("bits of a softmax");
        }
        softmax_ring(classes, digits)?;
        if exponential.fraction() > 40 {
            return refuse("digits of a softmax");
        }
        // A difference of scores below a quarter of their ring.
        let widest = mask(left - 1);
        let clamped = mask(exponential.width());
        let largest = (clamped < widest).then_some(clamped);
        let one = 1_u64 << exponential.fraction();
        let parts = 10_u64.pow(digits);
        let Some(dividend) =
            parts.checked_shl(exponential.fraction()).filter(|d| d >> exponential.fraction() == parts)
        else {
            return refuse("digits of a softmax");
        };
        let division = Division::new(dividend, [one, one * classes as u64])?;
        let terms = Terms::new(exponential, clamped.min(widest), division.bits)?;
        let to = softmax_ring(classes, digits)?.bits();
        Ok(Self { bits, dropped, largest, terms, one, division, to })
    }

    /// Bits of the ring of the results.
    pub(super) const fn to(&self) -> u32 {
        self.to
    }

    /// The index and the digits.
    pub(super) fn run<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values> {
        let [largest, index] = largest(driver, x, [self.bits, self.to])?;
        let distances = self.distances(driver, x, &largest)?;
        let ring = Ring::Pow2(self.division.bits);
        let one = driver.public(self.one);
        let terms = match &self.terms {
            Some(terms) => terms.run(driver, &distances, self.left())?,
            None => distances.map(|_| one),
        };
        let sum = sum(&terms, ring);
        let parts = self.division.run(driver, &sum, self.to)?;
        Ok(D::Values::concat(&[&index, &parts]))
    }

    /// Bits of scores that count.
    const fn left(&self) -> u32 {
        self.bits - self.dropped
    }

    /// How far scores are below the largest, or the largest distance if that is less: never below zero, whatever the scores.
    fn distances<D: Driver>(&self, driver: &mut D, x: &D::Values, largest: &D::Values) -> Result<D::Values> {
        let (count, left) = (x.count(), self.left());
        let mut all = D::Values::concat(&[x, largest]);
        if self.dropped > 0 {
            all = Scale { from: self.bits, shift: self.dropped }.extend(driver, &all, left)?;
        }
        let (ring, top) = (Ring::Pow2(left), all.gather(&vec![count; count]));
        let distances = top.zip_map(&all.range(0..count), |top, x| ring.sub(top, x));
        let scale = Scale { from: left, shift: 0 };
        match self.largest {
            Some(largest) => scale.clip(driver, &distances, largest as i64),
            None => scale.positive_part(driver, &distances),
        }
    }
}

impl Terms {
    /// Of distances up to `largest`, modulo `2^to`; none if all terms are alike.
    fn new(exponential: &Exponential, largest: u64, to: u32) -> Result<Option<Self>> {
        let refuse = |what| Err(ProtocolError::Parameters(what));
        let ((factor, cut), mantissa) = (exponential.rate(), exponential.mantissa());
        let products = i128::from(factor) * i128::from(largest);
        let z = (products >> cut) as u128;
        if z == 0 {
            return Ok(None);
        }
        let known = Known::between([0, products], cut);
        let bits = (u128::BITS - z.leading_zeros()).max(mantissa.halving());
        let split = Split {
            factor: bits - mantissa.halving(),
            segment: mantissa.segments.len().ilog2(),
            rest: mantissa.rest,
        };
        if known.bits > 62 || split.factor.max(split.segment) > MAX_PLACE_BITS {
            return refuse("exponents of a softmax");
        }
        let signed = |of: &Vec<u64>| of.iter().zip([1, -1, 1]).map(|(c, sign)| sign * *c as i64).collect();
        let polynomials: Vec<Vec<i64>> = mantissa.segments.iter().map(signed).collect();
        // Beyond as many halvings as there are bits nothing is left.
        let most = mantissa.fraction.min((1 << split.factor) - 1);
        let halvings = (0..1 << split.factor).map(|h| if h <= most { 1 << (most - h) } else { 0 }).collect();
        let factors = (split.factor > 0).then_some(Factors { values: halvings, shift: most });
        if mantissa.fraction + mantissa.drop.max(most) > MOST_SUM_BITS {
            return refuse("sums of a softmax");
        }
        let curve = Curve::new(split, &polynomials, (mantissa.drop, Cut::Down), factors.as_ref(), to)?;
        Ok(Some(Self { factor, cut, known, bits, curve }))
    }

    /// The terms of distances that are shared modulo `2^from`.
    fn run<D: Driver>(&self, driver: &mut D, distances: &D::Values, from: u32) -> Result<D::Values> {
        let &Self { factor, cut, known, bits, ref curve } = self;
        let ring = Ring::Pow2(known.bits);
        let wide = driver.extend_positive(distances.clone(), from, known.bits)?;
        let products = wide.map(|d| ring.embed(d.wrapping_mul(factor) as i64));
        let z = known.drop(driver, &products, cut, bits)?;
        curve.run(driver, &z)
    }
}

/// What sums and products stay below, with a bit for the sign and one that tells of wraps.
const MOST_SUM_BITS: u32 = 58;
