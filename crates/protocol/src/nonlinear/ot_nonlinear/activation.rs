//! Maximum over windows, ReLU, rescaling and an upper bound, in the small ring that rescaling leaves.

use lanner_primitives::Ring;
use serde::{Deserialize, Serialize};

use super::driver::Driver;
use super::lanes::{Lanes, mask};
use crate::ProtocolError;
use crate::nonlinear::windows::Windows;
use crate::nonlinear::yao::Function;

/// How values lose `d` bits. Each party drops the low bits of its own share, modulo `2^(l-d)`; what is missing is the carry of those.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rounding {
    /// `floor((x + 2^(d-1)) / 2^d)`: the carry is computed, by a comparison of `d` bits.
    Exact,
    /// `floor(x / 2^d)` or one more: one is added in the carry's place. Never off by more than one from [`Self::Exact`].
    Faithful,
}

/// See [`super::Layer::activation`].
#[derive(Clone, Debug)]
pub(super) struct Activation {
    function: Function,
    /// The first elements of all windows, then their second ones and so on: neighbours in a window are compared in one go.
    elements: Vec<usize>,
    /// Number of windows.
    count: usize,
    /// Elements of each window.
    area: usize,
    from: u32,
    to: u32,
    rounding: Rounding,
}

impl Activation {
    pub(super) fn new(
        function: Function,
        windows: &Windows,
        from: u32,
        to: u32,
        rounding: Rounding,
    ) -> Result<Self, ProtocolError> {
        let refuse = |what| Err(ProtocolError::Shape { what });
        if function.slope.is_some() {
            return refuse("a slope over a power of two");
        }
        if function.high.is_some_and(|high| high < 0 || !function.relu) {
            return refuse("an upper bound that is negative or without ReLU");
        }
        let left = from.saturating_sub(function.shift);
        let widths = left >= 3 && from <= MAX_BITS && (2..=MAX_BITS).contains(&to);
        if !widths || function.high.is_some_and(|high| high as u64 > mask(left - 2)) {
            return refuse("bits of a nonlinear layer");
        }
        let (elements, area) = (windows.place_by_place()?, windows.area());
        Ok(Self { function, elements, count: windows.count()?, area, from, to, rounding })
    }

    /// Bits that are left behind the shift.
    const fn bits(&self) -> u32 {
        self.from - self.function.shift
    }

    pub(super) fn run<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values, ProtocolError> {
        let mut values = self.truncate(driver, x.gather(&self.elements))?;
        let mut rows = self.area;
        while rows > 1 {
            values = self.maximum(driver, &values, rows / 2)?;
            rows = rows.div_ceil(2);
        }
        if self.function.relu {
            values = self.rectify(driver, &values)?;
        }
        self.extend(driver, &values)
    }

    fn truncate<D: Driver>(&self, driver: &mut D, x: D::Values) -> Result<D::Values, ProtocolError> {
        let (shift, ring) = (self.function.shift, Ring::Pow2(self.bits()));
        if shift == 0 {
            return Ok(x);
        }
        if self.rounding == Rounding::Faithful {
            let one = driver.public(1);
            return Ok(x.map(|x| ring.add(x >> shift, one)));
        }
        let half = driver.public(1 << (shift - 1));
        let x = x.map(|x| Ring::Pow2(self.from).add(x, half));
        let carry = driver.carry_value(&x.map(|x| x & mask(shift)), shift, self.bits())?;
        Ok(x.zip_map(&carry, |x, carry| ring.add(x >> shift, carry)))
    }

    /// The larger of each of the first `pairs` pairs of rows, and the row that is left over.
    fn maximum<D: Driver>(
        &self,
        driver: &mut D,
        values: &D::Values,
        pairs: usize,
    ) -> Result<D::Values, ProtocolError> {
        let (half, ring) = (pairs * self.count, Ring::Pow2(self.bits()));
        let [a, b] = [values.range(0..half), values.range(half..2 * half)];
        let left = values.range(2 * half..values.count());
        let difference = a.zip_map(&b, |a, b| ring.sub(a, b));
        let above = driver.positive_part(&difference, self.bits())?;
        Ok(D::Values::concat(&[&b.zip_map(&above, |b, above| ring.add(b, above)), &left]))
    }

    /// `max(y, 0)`, less `max(y - high, 0)` where there is a bound: both from one comparison of twice as many values. Nothing is taken off
    /// where y is negative: `y - high` may be too small for the ring there. So the output is never negative, whatever y is.
    fn rectify<D: Driver>(&self, driver: &mut D, y: &D::Values) -> Result<D::Values, ProtocolError> {
        let (count, bits) = (self.count, self.bits());
        let ring = Ring::Pow2(bits);
        let Some(high) = self.function.high else { return driver.positive_part(y, bits) };
        let high = driver.public(ring.embed(high));
        let both = D::Values::concat(&[y, &y.map(|y| ring.sub(y, high))]);
        let chosen = driver.not_negative(&both, bits)?.bits(2 * count);
        let [positive, above] = [chosen.range(0..count), chosen.range(count..2 * count)];
        let above = driver.and(&positive.words(), &above.words())?.bits(count);
        let rectified = driver.mux(&D::Values::concat(&[&positive, &above]).words(), &both, bits)?;
        let above = rectified.range(count..2 * count);
        Ok(rectified.range(0..count).zip_map(&above, |kept, above| ring.sub(kept, above)))
    }

    /// To the ring of the output. What may be negative is moved up by half of the small ring for it, which takes every value there is: the
    /// output is the same for all shares, also of values beyond what numbers of this ring should be.
    fn extend<D: Driver>(&self, driver: &mut D, y: &D::Values) -> Result<D::Values, ProtocolError> {
        let (small, to, relu) = (Ring::Pow2(self.bits()), Ring::Pow2(self.to), self.function.relu);
        let half = driver.public(if relu { 0 } else { 1 << (self.bits() - 1) });
        let extended = driver.extend(&y.map(|y| small.add(y, half)), self.bits(), self.to, relu)?;
        Ok(extended.map(|y| to.sub(y, to.embed(half as i64))))
    }
}

/// The widest ring: sums of two elements fit 64 bits with room.
const MAX_BITS: u32 = 62;
