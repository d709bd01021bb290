//! `max(x, 0)`.

use super::FixedElementwise;

/// [`FixedOp::Relu`](crate::FixedOp::Relu).
pub struct Relu;

impl FixedElementwise for Relu {
    fn eval(&self, x: i128) -> i128 {
        x.max(0)
    }
}
