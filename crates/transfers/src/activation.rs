//! Maximum over windows, then ReLU, rescaling and an upper bound; or the step function, of elements.

use lanner_primitives::Ring;
use lanner_step::{Function, ProtocolError, Result, Windows};
use serde::{Deserialize, Serialize};

use super::driver::Driver;
use super::lanes::{Lanes, mask};
use super::scale::Scale;

/// How values lose `d` bits. Each party drops the low bits of its own share, modulo `2^(l-d)`; what is missing is the carry of those.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rounding {
    /// `floor((x + 2^(d-1)) / 2^d)`: the carry is computed, on the way to the sign.
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
    ) -> Result<Self> {
        let refuse = |what| Err(ProtocolError::Parameters(what));
        let Function { relu, slope, high, shift } = function;
        if slope.is_some() {
            return refuse("a slope over a power of two");
        }
        if high.is_some_and(|high| high < 0 || !relu) {
            return refuse("an upper bound that is negative or without ReLU");
        }
        let left = from.saturating_sub(shift);
        let least = if is_step(function, windows.area()) { 2 } else { 3 };
        let widths = left >= least && from <= MAX_BITS && (2..=MAX_BITS).contains(&to);
        if !widths || high.is_some_and(|high| high as u64 > mask(left - 1)) {
            return refuse("bits of a nonlinear layer");
        }
        let (elements, area) = (windows.place_by_place()?, windows.area());
        Ok(Self { function, elements, count: windows.count()?, area, from, to, rounding })
    }

    /// Elements that all windows read, whose places are kept.
    pub(super) fn reads(&self) -> usize {
        self.elements.len()
    }

    pub(super) fn run<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values> {
        if is_step(self.function, self.area) {
            let x = x.gather(&self.elements);
            let reached = at_least_one(driver, &x, self.from)?;
            return driver.bits_to_values(&reached.bits(x.count()), self.to);
        }
        let (mut values, scale) = self.round(driver, x.gather(&self.elements));
        let mut rows = self.area;
        while rows > 1 {
            values = self.maximum(driver, &values, scale.from, rows / 2)?;
            rows = rows.div_ceil(2);
        }
        let rectified = match self.function {
            Function { relu: false, .. } => return scale.extend(driver, &values, self.to),
            Function { high: None, .. } => scale.positive_part(driver, &values)?,
            Function { high: Some(high), .. } => scale.clip(driver, &values, high)?,
        };
        driver.extend_positive(rectified, scale.left(), self.to)
    }

    /// What makes dropping bits round, and what is left to be dropped of the values then.
    fn round<D: Driver>(&self, driver: &D, x: D::Values) -> (D::Values, Scale) {
        let (from, shift) = (self.from, self.function.shift);
        match (shift, self.rounding) {
            (0, _) => (x, Scale { from, shift }),
            (_, Rounding::Exact) => {
                let (ring, half) = (Ring::Pow2(from), driver.public(1 << (shift - 1)));
                (x.map(|x| ring.add(x, half)), Scale { from, shift })
            }
            (_, Rounding::Faithful) => {
                let (ring, one) = (Ring::Pow2(from - shift), driver.public(1));
                (x.map(|x| ring.add(x >> shift, one)), Scale { from: from - shift, shift: 0 })
            }
        }
    }

    /// The larger of each of the first `pairs` pairs of rows, and the row that is left over. Rounding would not change which is larger.
    fn maximum<D: Driver>(
        &self,
        driver: &mut D,
        values: &D::Values,
        bits: u32,
        pairs: usize,
    ) -> Result<D::Values> {
        let (half, ring) = (pairs * self.count, Ring::Pow2(bits));
        let [a, b] = [values.range(0..half), values.range(half..2 * half)];
        let left = values.range(2 * half..values.count());
        let difference = a.zip_map(&b, |a, b| ring.sub(a, b));
        let above = Scale { from: bits, shift: 0 }.positive_part(driver, &difference)?;
        Ok(D::Values::concat(&[&b.zip_map(&above, |b, above| ring.add(b, above)), &left]))
    }
}

/// Whether a function of windows is `[x >= 1]` of each element, which is one comparison.
fn is_step(function: Function, area: usize) -> bool {
    function == Function::STEP && area == 1
}

/// `[x >= 1]` of values over `Z_2^from`, in words: the sign of `x - 1`. Of the ring's lowest value that wraps, and 1 comes out, however it is shared.
///
/// # Errors
/// As [`Driver::turn`].
pub(super) fn at_least_one<D: Driver>(driver: &mut D, x: &D::Values, from: u32) -> Result<D::Values> {
    let (ring, one) = (Ring::Pow2(from), driver.public(1));
    Scale { from, shift: 0 }.not_negative(driver, &x.map(|x| ring.sub(x, one)))
}

/// The widest ring: sums of two elements fit 64 bits with room.
const MAX_BITS: u32 = 62;
