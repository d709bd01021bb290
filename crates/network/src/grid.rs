//! The grid of scales: powers of the eighth root of two.
//!
//! A scale that follows from weights or samples to its last bit tells of them to their last bit, and lets whoever has guessed a model
//! confirm the guess. On the grid it tells which of eight steps to a doubling it lies on. Scales are rounded up to it: a larger unit
//! makes smaller integers, which fit wherever those of the exact scale do.

use serde::{Deserialize, Serialize};

/// Steps to a doubling.
const STEPS: i32 = 8;

/// One step.
pub const STEP: f64 = EIGHTHS[1];

/// How far a scale may be from the grid, relative to it, by the rounding of sums and products of floats.
const TOLERANCE: f64 = 1e-9;

/// The largest and, negated, the smallest exponent of a [`GridFactor`], in steps.
const MOST: i32 = 256 * STEPS;

/// `2^(j/8)`, correctly rounded, so that every machine has the same values.
const EIGHTHS: [f64; STEPS as usize] = [
    1.0,
    1.090_507_732_665_257_7,
    1.189_207_115_002_721,
    1.296_839_554_651_009_6,
    std::f64::consts::SQRT_2,
    1.542_210_825_407_940_7,
    1.681_792_830_507_429,
    1.834_008_086_409_342_4,
];

/// A factor on the grid: `2^(k/8)` for the k it holds, from -2048 to 2048. In JSON it is k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "i32", into = "i32")]
pub struct GridFactor(i32);

impl GridFactor {
    /// The factor itself, the same on every machine.
    #[must_use]
    pub fn value(self) -> f64 {
        power(self.0)
    }

    /// The smallest that is not below `x`, if there is one.
    #[must_use]
    pub fn above(x: f64) -> Option<Self> {
        Self::try_from(steps_above(x)).ok()
    }

    /// Two to the power of `exponent`, if that is on the grid.
    #[must_use]
    pub fn power_of_two(exponent: i32) -> Option<Self> {
        Self::try_from(exponent.checked_mul(STEPS)?).ok()
    }

    /// The power of two that is nearest to `x`, if there is one: less than half a doubling away.
    #[must_use]
    pub fn nearest_power_of_two(x: f64) -> Option<Self> {
        Self::power_of_two(x.log2().round() as i32)
    }

    /// The one that `x` is, up to the rounding of floats.
    #[must_use]
    pub fn exactly(x: f64) -> Option<Self> {
        let nearest = Self::try_from((x.log2() * f64::from(STEPS)).round() as i32).ok()?;
        ((x / nearest.value() - 1.0).abs() <= TOLERANCE).then_some(nearest)
    }
}

impl TryFrom<i32> for GridFactor {
    type Error = String;

    fn try_from(steps: i32) -> Result<Self, String> {
        if (-MOST..=MOST).contains(&steps) {
            return Ok(Self(steps));
        }
        Err(format!("a scale of 2^({steps}/{STEPS}) is not usable"))
    }
}

impl From<GridFactor> for i32 {
    fn from(factor: GridFactor) -> Self {
        factor.0
    }
}

/// The smallest scale of the grid through `origin` that is not below `scale`; both are positive.
#[must_use]
pub fn above(scale: f64, origin: f64) -> f64 {
    origin * power(steps_above(scale / origin))
}

/// The scales of the grid through `origin` that are not above `scale`, the largest first.
pub fn downwards(scale: f64, origin: f64) -> impl Iterator<Item = f64> {
    let steps = -steps_above(origin / scale);
    (0..).map(move |down| origin * power(steps - down))
}

/// Whether `scale` lies on the grid through `origin`.
#[must_use]
pub fn holds(scale: f64, origin: f64) -> bool {
    GridFactor::exactly(scale / origin).is_some()
}

/// The largest whole number that is not above `most`, among the grid's values rounded to whole ones; `most` is 1 or more.
#[must_use]
pub fn whole_below(most: f64) -> f64 {
    let whole = (0..=steps_above(most) + 1).rev().map(|steps| power(steps).round());
    whole.into_iter().find(|&whole| whole <= most).unwrap_or(1.0)
}

/// As [`whole_below`], the smallest that is not below `least`.
#[must_use]
pub fn whole_above(least: f64) -> f64 {
    let from = (steps_above(least) - 2).max(0);
    (from..from + 4).map(|steps| power(steps).round()).find(|&whole| whole >= least).unwrap_or(least)
}

/// The fewest steps from 1 that reach `x`, as far as there are floats.
fn steps_above(x: f64) -> i32 {
    const FARTHEST: f64 = (2048 * STEPS) as f64;
    (x.log2() * f64::from(STEPS) - TOLERANCE).ceil().clamp(-FARTHEST, FARTHEST) as i32
}

/// `2^exponent`, exactly, within the exponents of a normal `f64`.
#[must_use]
pub fn power_of_two(exponent: i32) -> f64 {
    power(exponent.clamp(-1022, 1023) * STEPS)
}

/// `2^(steps/8)`; the power of two in it is exact.
fn power(steps: i32) -> f64 {
    let exponent = steps.div_euclid(STEPS).clamp(-1022, 1023);
    EIGHTHS[steps.rem_euclid(STEPS) as usize] * f64::from_bits(((1023 + exponent) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_steps_double() {
        assert_eq!(power(0).to_bits(), 1.0_f64.to_bits());
        for steps in -100..100 {
            assert_eq!(power(steps + STEPS).to_bits(), (2.0 * power(steps)).to_bits());
            assert!((power(steps + 1) / power(steps) - STEP).abs() < 1e-15);
            assert!((f64::from(steps) / 8.0 - power(steps).log2()).abs() < 1e-14);
        }
        assert!((STEP.powi(8) - 2.0).abs() < 1e-14);
    }

    #[test]
    fn what_is_above_is_less_than_a_step_away_and_stays_where_it_is() {
        for (scale, origin) in [(1.0, 1.0), (0.003, 1.0), (0.7, 1.0 / 255.0), (1e-9, 3.0), (123.4, 0.01)] {
            let up = above(scale, origin);
            assert!(up >= scale * (1.0 - TOLERANCE) && up < scale * STEP * (1.0 + TOLERANCE));
            assert!(holds(up, origin) && !holds(up * 1.001, origin));
            assert_eq!(above(up, origin).to_bits(), up.to_bits());
            let down: Vec<f64> = downwards(scale, origin).take(3).collect();
            assert!(down[0] <= scale * (1.0 + TOLERANCE) && down[0] * STEP > scale * (1.0 - TOLERANCE));
            assert!((down[0] / down[1] - STEP).abs() < 1e-12 && holds(down[2], origin));
        }
        assert_eq!(GridFactor::above(1.0), Some(GridFactor(0)));
        assert_eq!(GridFactor::above(2.0_f64.powi(-300)), None);
        assert_eq!(GridFactor::exactly(2.0_f64.powi(5)), Some(GridFactor(40)));
        assert_eq!(GridFactor::exactly(1.01), None);
        assert!(serde_json::from_str::<GridFactor>("2049").is_err());
        assert_eq!(serde_json::to_string(&GridFactor(-3)).unwrap(), "-3");
    }

    #[test]
    fn whole_factors_are_few_and_near() {
        for n in 1..5000 {
            let n = f64::from(n);
            let (below, above) = (whole_below(n), whole_above(n));
            assert!(below <= n && n <= above, "{below} {n} {above}");
            assert!(n <= 1.1 * below && above <= 1.1 * n, "{below} {n} {above}");
            assert_eq!((whole_below(below), whole_above(above)), (below, above));
        }
        assert_eq!([16.0, 15.9].map(|most| whole_below(most) as u64), [16, 15]);
        let few: std::collections::BTreeSet<u64> =
            (1024..2049).map(|n| whole_below(f64::from(n)) as u64).collect();
        assert_eq!(few.len(), 9);
    }
}
