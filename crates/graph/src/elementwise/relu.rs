//! `max(x, 0)`.

use super::Elementwise;

/// [`Op::Relu`](crate::Op::Relu).
#[derive(Debug)]
pub struct Relu;

impl Elementwise for Relu {
    fn eval(&self, x: f32) -> f32 {
        x.max(0.0)
    }

    fn never_decreases(&self) -> bool {
        true
    }

    fn is_homogeneous(&self) -> bool {
        true
    }
}
