//! Smooth functions: fixed point has one operator for all.

mod domain;
mod ramp;
mod spans;

use std::ops::Deref;

use lanner_graph::elementwise::{Function, Within};
use lanner_network::elementwise::FixedFunction;
use lanner_network::{FixedOp, FunctionFit};

use super::{Lowered, Part, Spans, Wanted};
use crate::fit::Target;

/// A function on its way to polynomials.
#[derive(Clone, Copy, Debug)]
struct Smooth<'f>(&'f Function);

impl Deref for Smooth<'_> {
    type Target = Function;

    fn deref(&self) -> &Function {
        self.0
    }
}

/// The cheapest polynomials for a function of real numbers that are nowhere on the integers `low .. low + 2^bits` of `input` units farther from it
/// than `tolerance` units of the output, more than half a one; and how far they are. The closest that were found where none are that close.
#[must_use]
pub fn polynomials(
    function: impl Fn(f64) -> f64,
    low: i64,
    bits: u32,
    [input, output]: [f64; 2],
    tolerance: f64,
) -> (FixedFunction, f64) {
    let fitted = Target::new(function, low, bits, [input, output]).fit(tolerance);
    (fitted.function, fitted.error)
}

impl Lowered for Function {
    /// What a ramp's `Relu` is rounded to does for its tail, too.
    fn input_unit(&self, seen: [f64; 2], unit: f64) -> Option<f64> {
        if matches!(self, Self::Tail(_)) { None } else { Smooth(self).unit_of_input(seen, unit) }
    }

    fn of_magnitude(&self) -> Option<Function> {
        match self {
            Self::Tail(ramp) if ramp.is_even() => {
                Some(Self::Within(Within { of: Box::new(self.clone()), low: Some(0.0), high: None }))
            }
            _ => None,
        }
    }

    fn spans(&self, wanted: &Wanted<'_>) -> Result<Option<Spans>, String> {
        Smooth(self).lower_spans(wanted)
    }

    fn lower(&self, wanted: &Wanted<'_>) -> Result<Vec<Part>, String> {
        let &Wanted { scale, unit, .. } = wanted;
        let domain = Smooth(self).domain(wanted.seen, unit)?;
        let places = Smooth(self).places(&domain, scale, wanted.reach)?;
        let of = format!("{self:?} {domain:?} {places:?} {scale:e} {unit:e}");
        let fitted =
            wanted.functions.get_or(of, || Smooth(self).polynomials(&domain, places, [scale, unit]))?;
        let fit = Some(FunctionFit { error: fitted.error, open: domain.open, vanishes: wanted.vanishes });
        Ok(vec![Part { suffix: "", op: FixedOp::Function(fitted.function), scale: unit, fit }])
    }
}
