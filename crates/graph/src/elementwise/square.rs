//! `x * x`.

use super::{Elementwise, FixedElementwise, Part, Wanted};
use crate::network::FixedOp;

/// [`Op::Square`](crate::Op::Square) and [`FixedOp::Square`].
#[derive(Debug)]
pub(crate) struct Square;

impl Elementwise for Square {
    fn eval(&self, x: f32) -> f32 {
        x * x
    }

    fn multiplies(&self) -> bool {
        true
    }

    fn lower(&self, wanted: &Wanted<'_>) -> Result<Vec<Part>, String> {
        Ok(vec![Part::exact(FixedOp::Square, wanted.scale * wanted.scale)])
    }
}

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
