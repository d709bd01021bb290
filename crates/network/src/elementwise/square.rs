//! `x * x`.

use super::FixedElementwise;

/// [`FixedOp::Square`](crate::FixedOp::Square).
pub struct Square;

impl FixedElementwise for Square {
    fn eval(&self, x: i128) -> i128 {
        x.saturating_mul(x)
    }

    fn interval(&self, [low, high]: [i128; 2]) -> [i128; 2] {
        [0, low.saturating_mul(low).max(high.saturating_mul(high))]
    }

    /// `|y^2 - x^2| = |y - x| |y + x|`.
    fn gain(&self, magnitude: i64, error: i64) -> i64 {
        2 * magnitude + error
    }

    fn multiplies(&self) -> bool {
        true
    }
}
