//! `max(x, 0)`.

use super::{Elementwise, FixedElementwise, Part, Wanted};
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

    fn lower(&self, wanted: &Wanted<'_>) -> Result<Vec<Part>, String> {
        Ok(vec![Part::exact(FixedOp::Relu, wanted.scale)])
    }
}

impl FixedElementwise for Relu {
    fn eval(&self, x: i128) -> i128 {
        x.max(0)
    }
}
