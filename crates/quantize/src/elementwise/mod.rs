//! What operators that work on each element alone are lowered to: one file each.

mod clip;
mod leaky_relu;
mod relu;
mod smooth;
mod square;
mod step;

use lanner_graph::Op;
use lanner_graph::elementwise::{Elementwise, Function, Relu, Square, Step};
use lanner_network::{FixedOp, FunctionFit};

use crate::fit::FitCache;

pub use smooth::polynomials;

/// An operator of the float graph that fixed point has. What is not overridden holds for every function.
pub(crate) trait Lowered: Elementwise {
    /// The unit of the input that a `unit` of the output pays for, if that says how its input is to be rounded: on inputs from `seen[0]` to
    /// `seen[1]`.
    fn input_unit(&self, _seen: [f64; 2], _unit: f64) -> Option<f64> {
        None
    }

    /// Whether it is `max(x, 0)`.
    fn is_positive_part(&self) -> bool {
        false
    }

    /// The function that its input's absolute value has the same of, where it is the same on both sides of 0.
    fn of_magnitude(&self) -> Option<Function> {
        None
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

/// What an operator is lowered by, if it works on each element alone.
pub(crate) fn lowered(op: &Op) -> Option<&dyn Lowered> {
    match op {
        Op::Relu => Some(&Relu),
        Op::LeakyRelu(op) => Some(op),
        Op::Clip(op) => Some(op),
        Op::Function(op) => Some(op),
        Op::Ramp(op) => Some(op),
        Op::Square => Some(&Square),
        Op::Step => Some(&Step),
        _ => None,
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
