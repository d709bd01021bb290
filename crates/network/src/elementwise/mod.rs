//! Operators of the network that work on each element alone, by one rule for all: one file each.
//!
//! [`FixedOp`] lists them among the others, with the types here as their attributes. `docs/adding-an-op.md` walks through one.

mod clip;
mod cost;
mod factors;
mod function;
mod leaky_relu;
mod ranges;
mod relu;
mod square;

use crate::accumulator::Accumulator;

pub use clip::FixedClip;
pub use factors::Factors;
pub use function::{FixedFunction, MAX_DEGREE, MAX_DOMAIN_BITS};
pub use leaky_relu::{FixedLeakyRelu, MAX_SLOPE_SHIFT};
pub use relu::Relu;
pub use square::Square;

/// The most bits that choose a [`FixedFunction`]'s segment: 256 segments.
pub const MAX_SEGMENT_BITS: u32 = 8;

/// What the polynomials of a [`FixedFunction`] stay below, in absolute value, with all terms positive and the rounding: 2^59.
pub const MAX_POLYNOMIAL_BITS: u32 = 59;

/// An operator of the fixed-point network. What is not overridden holds for functions that never decrease, have no slope above 1,
/// and stay within the ring if their input does.
pub trait FixedElementwise {
    /// The exact value at `x`, whatever the ring.
    fn eval(&self, x: i128) -> i128;

    /// Replaces each of many values that fit 64 bits, as their values do.
    fn eval_each(&self, x: &mut [i64]) {
        for x in x {
            *x = self.eval((*x).into()) as i64;
        }
    }

    /// The smallest interval that holds 0 and the values over an interval that holds 0.
    fn interval(&self, x: [i128; 2]) -> [i128; 2] {
        x.map(|end| self.eval(end))
    }

    /// The most that it enlarges a difference of at most `error` from a value of at most `magnitude`.
    fn gain(&self, _magnitude: i64, _error: i64) -> i64 {
        1
    }

    /// Why the attributes are not usable between values of these rings, which are one unless the operator may change it; if they are not.
    ///
    /// # Errors
    /// The reason, for people.
    fn check(&self, _before: Accumulator, _after: Accumulator) -> Result<(), String> {
        Ok(())
    }

    /// Whether its values, which then are bounded whatever its input is, may live in another ring than that.
    fn changes_ring(&self) -> bool {
        false
    }

    /// Whether its protocols take differences of elements and numbers, which must have a sign in the ring.
    fn takes_differences(&self) -> bool {
        self.changes_ring()
    }

    /// Whether it is a product of secrets, whose values have many more bits than its input; else a circuit computes it.
    fn multiplies(&self) -> bool {
        false
    }
}
