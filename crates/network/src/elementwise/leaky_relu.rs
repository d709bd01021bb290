//! A slope below zero, as a fraction.

use serde::{Deserialize, Serialize};

use super::{FixedElementwise, FixedFunction};
use crate::accumulator::Accumulator;

/// The largest shift of a [`FixedLeakyRelu`]'s slope.
pub const MAX_SLOPE_SHIFT: u32 = 16;

/// `x` where x >= 0, else `floor(numerator * x / 2^shift)`: the slope below zero is a fraction.
///
/// Rounding down makes a following rescale by d exactly `rescale(numerator * x, shift + d)` there, one rounding in all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedLeakyRelu {
    /// The slope's numerator, in 0..=2^shift.
    pub numerator: i64,
    /// Bits of the slope's denominator, at most [`MAX_SLOPE_SHIFT`].
    pub shift: u32,
}

impl FixedLeakyRelu {
    /// The fraction of the fewest bits whose error is below a quarter of an activation's unit over its range.
    #[must_use]
    pub fn closest(alpha: f64, activation_bits: u32) -> Self {
        let tolerance = f64::from(activation_bits + 2).exp2().recip();
        let rounded = |shift: u32| (alpha * f64::from(shift).exp2()).round();
        let close = |shift: &u32| (rounded(*shift) / f64::from(*shift).exp2() - alpha).abs() <= tolerance;
        let shift = (0..MAX_SLOPE_SHIFT).find(close).unwrap_or(MAX_SLOPE_SHIFT);
        Self { numerator: rounded(shift) as i64, shift }
    }

    /// The same slope on integers of `bits` bits with their sign, to the nearest, halves upwards, in place of down; `bits` is 1 to
    /// [`MAX_DOMAIN_BITS`].
    #[must_use]
    pub fn to_nearest(&self, bits: u32) -> FixedFunction {
        let (low, one) = (-1_i64 << (bits - 1), 1_i64 << self.shift);
        let polynomials = vec![vec![self.numerator * low, self.numerator], vec![0, one]];
        FixedFunction { low, bits, polynomials, shift: self.shift, factors: None }
    }
}

impl FixedElementwise for FixedLeakyRelu {
    fn eval(&self, x: i128) -> i128 {
        if x < 0 { (i128::from(self.numerator) * x) >> self.shift } else { x }
    }

    fn takes_differences(&self) -> bool {
        true
    }

    fn check(&self, _before: Accumulator, _after: Accumulator) -> Result<(), String> {
        let Self { numerator, shift } = *self;
        if shift > MAX_SLOPE_SHIFT || !(0..=1_i64 << shift).contains(&numerator) {
            return Err(format!("the slope {numerator} / 2^{shift} is not usable"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::MAX_DOMAIN_BITS;
    use super::{FixedElementwise, FixedLeakyRelu, MAX_SLOPE_SHIFT};

    #[test]
    fn slopes_are_close_and_short() {
        let slope = |alpha| {
            let FixedLeakyRelu { numerator, shift } = FixedLeakyRelu::closest(alpha, 8);
            (numerator, shift)
        };
        assert_eq!(slope(0.0), (0, 0));
        assert_eq!(slope(0.5), (1, 1));
        assert_eq!(slope(1.0), (1, 0));
        assert_eq!(slope(0.01), (5, 9));
        for alpha in [0.1, 0.2, 0.3, 1.0 / 3.0, 0.99] {
            let (numerator, shift) = slope(alpha);
            assert!((numerator as f64 / f64::from(shift).exp2() - alpha).abs() <= 1.0 / 1024.0);
        }
    }

    #[test]
    fn a_slope_to_the_nearest_is_the_formula_on_all_of_its_domain() {
        for (numerator, shift) in [(0, 0), (1, 0), (1, 1), (51, 9), (511, 9), (512, 9), (1, 16)] {
            let slope = FixedLeakyRelu { numerator, shift };
            for bits in [2, 5, 10] {
                let function = slope.to_nearest(bits);
                function.check_sizes().unwrap();
                for x in -1_i64 << (bits - 1)..1 << (bits - 1) {
                    // Twice the product with a half added, so that a shift of 0 has a half, too.
                    let nearest = (2 * numerator * x + (1 << shift)).div_euclid(2 << shift);
                    assert_eq!(
                        function.at(x),
                        if x < 0 { nearest } else { x },
                        "{numerator} / 2^{shift}: {x}"
                    );
                    let down = slope.eval(x.into());
                    assert!((0..=1).contains(&(i128::from(function.at(x)) - down)));
                }
            }
        }
        let widest = FixedLeakyRelu { numerator: 1 << MAX_SLOPE_SHIFT, shift: MAX_SLOPE_SHIFT };
        widest.to_nearest(MAX_DOMAIN_BITS).check_sizes().unwrap();
    }
}
