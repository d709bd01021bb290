//! Operators that work on each element alone, by one rule for all: one file each, with all that this crate asks of one.
//!
//! [`Op`](crate::Op) and [`FixedOp`] list them among the others, with the types here as their attributes; elsewhere their names
//! stand only where something makes one. `docs/adding-an-op.md` walks through one.

mod clip;
mod factors;
mod function;
mod leaky_relu;
mod ranges;
mod relu;
mod smooth;
mod square;

use std::fmt::Debug;

use crate::accumulator::Accumulator;
use crate::fit::FitCache;
use crate::integer::Integer;
use crate::network::{FixedOp, FunctionFit};

pub use clip::{Clip, FixedClip};
pub use factors::Factors;
pub use function::{FixedFunction, MAX_DEGREE, MAX_DOMAIN_BITS, MAX_POLYNOMIAL_BITS, MAX_SEGMENT_BITS};
pub use leaky_relu::{FixedLeakyRelu, LeakyRelu, MAX_SLOPE_SHIFT};
pub(crate) use relu::Relu;
pub use smooth::{Function, Ramp, Within, polynomials};
pub(crate) use square::Square;

/// An operator of the float graph. What is not overridden holds for every function.
pub(crate) trait Elementwise: Debug + Sync {
    /// The value at `x`, by ONNX's meaning.
    fn eval(&self, x: f32) -> f32;

    /// Whether every attribute is a finite number.
    fn is_finite(&self) -> bool {
        true
    }

    /// Why the attributes contradict each other, if they do.
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

    /// As [`FixedElementwise::multiplies`], of what it is lowered to.
    fn multiplies(&self) -> bool {
        false
    }

    /// As [`FixedElementwise::takes_differences`], of what it is lowered to.
    fn takes_differences(&self) -> bool {
        self.changes_ring()
    }

    /// The attribute that fixed point lacks, if there is one, and what to do instead.
    fn unsupported(&self) -> Option<(String, &'static str)> {
        None
    }

    /// As [`FixedElementwise::changes_ring`], of what it is lowered to.
    fn changes_ring(&self) -> bool {
        false
    }

    /// The unit of the input that a `unit` of the output pays for, if that says how its input is to be rounded: on inputs from `seen[0]` to
    /// `seen[1]`.
    fn input_unit(&self, _seen: [f64; 2], _unit: f64) -> Option<f64> {
        None
    }

    /// Whether it has a limit far below and another far above 0, so that inputs of any size have a value.
    fn has_limits(&self) -> bool {
        false
    }

    /// Whether it grows without limit where its input comes near 0, so that what is divided by that may be of any size.
    fn is_inverse(&self) -> bool {
        false
    }

    /// The operators whose sum computes it, if that is how it is computed.
    ///
    /// # Errors
    /// As [`Self::lower`].
    fn spans(&self, _wanted: &Wanted<'_>) -> Result<Option<Spans>, String> {
        Ok(None)
    }

    /// The operators that compute it one after the other. Asked of supported attributes only.
    ///
    /// # Errors
    /// What of the input fixed point has no operator for.
    fn lower(&self, wanted: &Wanted<'_>) -> Result<Vec<Part>, String>;

    /// What computes it of integers that are rescaled already, in modes that look functions of few bits up: none of one that goes before its rescale there,
    /// too, or has no room. The scale stays.
    fn behind_rescale(&self, _wanted: &Wanted<'_>) -> Option<Part> {
        None
    }
}

/// The integers that an operator takes, and what is wanted of those that it makes.
pub(crate) struct Wanted<'a> {
    /// Real value of a unit of the input.
    pub(crate) scale: f64,
    /// Bits of an activation.
    pub(crate) activation_bits: u32,
    /// The smallest and the largest real input on the calibration samples.
    pub(crate) seen: [f64; 2],
    /// The smallest and the largest integer that the input may be, as far as the public half tells.
    pub(crate) reach: [i64; 2],
    /// Real value of a unit of the output, of an operator that chooses it.
    pub(crate) unit: f64,
    /// Whether what the output is multiplied with is 0 where the input is.
    pub(crate) vanishes: bool,
    /// Polynomials found before.
    pub(crate) functions: &'a FitCache,
}

/// One of the operators that another is lowered to.
pub(crate) struct Part {
    /// Behind the node's name.
    pub(crate) suffix: &'static str,
    pub(crate) op: FixedOp,
    /// Real value of a unit of its output.
    pub(crate) scale: f64,
    /// How close it is, of a function by polynomials.
    pub(crate) fit: Option<FunctionFit>,
}

/// Operators whose results, of one unit, add up.
pub(crate) struct Spans {
    /// Of the input as it is.
    pub(crate) first: Part,
    /// Of coarser ones.
    pub(crate) others: Vec<Coarser>,
}

/// An operator of an input that is rounded first.
pub(crate) struct Coarser {
    /// Bits that the input loses.
    pub(crate) shift: u32,
    pub(crate) part: Part,
}

impl Part {
    /// An operator that is exact, without a name of its own.
    const fn exact(op: FixedOp, scale: f64) -> Self {
        Self { suffix: "", op, scale, fit: None }
    }
}

/// An operator of the fixed-point network. What is not overridden holds for functions that never decrease, have no slope above 1,
/// and stay within the ring if their input does.
pub(crate) trait FixedElementwise {
    /// The exact value at `x`, whatever the ring.
    fn eval(&self, x: i128) -> i128;

    /// The smallest interval that holds 0 and the values over an interval that holds 0.
    fn interval(&self, x: [i128; 2]) -> [i128; 2] {
        x.map(|end| self.eval(end))
    }

    /// The most that it enlarges a difference of at most `error` from a value of at most `magnitude`.
    fn gain(&self, _magnitude: i64, _error: i64) -> i64 {
        1
    }

    /// Why the attributes are not usable between values of these rings, which are one unless the operator may change it; if they are not.
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

    /// The same operator on values of a ring with attributes that it can have there, if its own may be others.
    fn confined(&self, _ring: Accumulator) -> Option<FixedOp> {
        None
    }

    /// Whether it is a product of secrets, whose values have many more bits than its input; else a circuit computes it.
    fn multiplies(&self) -> bool {
        false
    }
}

/// Replaces every element by the operator's value there. A product, of an element with itself, comes back into the ring beyond `limit`; returns how
/// many did.
pub(crate) fn apply<I: Integer>(
    op: &dyn FixedElementwise,
    x: &mut [I],
    limit: i128,
    ring: Accumulator,
) -> usize {
    let mut beyond = 0;
    for x in x {
        let wide = x.wide();
        let (y, is_beyond) =
            if op.multiplies() { ring.product(wide, wide, limit) } else { (op.eval(wide), false) };
        beyond += usize::from(is_beyond);
        *x = I::of(y);
    }
    beyond
}
