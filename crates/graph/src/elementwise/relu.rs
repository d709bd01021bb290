//! `max(x, 0)`.

use super::{Elementwise, FixedElementwise};
use crate::network::FixedOp;

/// [`Op::Relu`](crate::Op::Relu) and [`FixedOp::Relu`].
#[derive(Debug)]
pub(crate) struct Relu;

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

    fn lower(&self, scale: f64, _activation_bits: u32) -> Vec<(&'static str, FixedOp, f64)> {
        vec![("", FixedOp::Relu, scale)]
    }
}

impl FixedElementwise for Relu {
    fn eval(&self, x: i128) -> i128 {
        x.max(0)
    }
}
