//! Operators of the graph that work on each element alone, by one rule for all: one file each, with their meaning.
//!
//! [`Op`](crate::Op) lists them among the others, with the types here as their attributes; elsewhere their names stand only where something makes one.
//! `docs/adding-an-op.md` walks through one.

mod clip;
mod leaky_relu;
mod relu;
mod smooth;
mod square;
mod step;

use std::fmt::Debug;

pub use clip::Clip;
pub use leaky_relu::LeakyRelu;
pub use relu::Relu;
pub use smooth::{Function, Ramp, Within};
pub use square::Square;
pub use step::Step;

/// An operator of the float graph. What is not overridden holds for every function.
pub trait Elementwise: Debug + Sync {
    /// The value at `x`, by ONNX's meaning.
    fn eval(&self, x: f32) -> f32;

    /// Whether every attribute is a finite number.
    fn is_finite(&self) -> bool {
        true
    }

    /// Why the attributes contradict each other, if they do.
    ///
    /// # Errors
    /// The contradiction, for people.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Whether it never decreases: a maximum of its values is its value at the maximum.
    fn never_decreases(&self) -> bool {
        false
    }

    /// Whether `f(c x) = c f(x)` for every `c >= 0`.
    fn is_homogeneous(&self) -> bool {
        false
    }

    /// As [`multiplies`](lanner_network::elementwise::FixedElementwise::multiplies), of what it is lowered to.
    fn multiplies(&self) -> bool {
        false
    }

    /// As [`takes_differences`](lanner_network::elementwise::FixedElementwise::takes_differences), of what it is lowered to.
    fn takes_differences(&self) -> bool {
        self.changes_ring()
    }

    /// The attribute that fixed point lacks, if there is one, and what to do instead.
    fn unsupported(&self) -> Option<(String, &'static str)> {
        None
    }

    /// As [`changes_ring`](lanner_network::elementwise::FixedElementwise::changes_ring), of what it is lowered to.
    fn changes_ring(&self) -> bool {
        false
    }

    /// Whether its values are 0 and 1, by the sign of its input alone: it takes sums as they are, and its output's unit is 1.
    fn compares(&self) -> bool {
        false
    }

    /// Whether it has a limit far below and another far above 0, so that inputs of any size have a value.
    fn has_limits(&self) -> bool {
        false
    }

    /// Whether it grows without limit where its input comes near 0, so that what is divided by that may be of any size.
    fn is_inverse(&self) -> bool {
        false
    }
}
