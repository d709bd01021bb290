//! `x * x`.

use super::Elementwise;

/// [`Op::Square`](crate::Op::Square).
#[derive(Debug)]
pub struct Square;

impl Elementwise for Square {
    fn eval(&self, x: f32) -> f32 {
        x * x
    }

    fn multiplies(&self) -> bool {
        true
    }
}
