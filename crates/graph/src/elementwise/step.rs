//! 1 above 0, and 0 elsewhere: what comparisons are made of.

use super::Elementwise;

/// [`Op::Step`](crate::Op::Step).
#[derive(Debug)]
pub struct Step;

impl Elementwise for Step {
    fn eval(&self, x: f32) -> f32 {
        if x > 0.0 { 1.0 } else { 0.0 }
    }

    fn never_decreases(&self) -> bool {
        true
    }

    fn takes_differences(&self) -> bool {
        false
    }

    fn changes_ring(&self) -> bool {
        true
    }

    fn compares(&self) -> bool {
        true
    }

    fn has_limits(&self) -> bool {
        true
    }
}
