//! Functions by polynomials, with the rescale before them.

use lanner_graph::FixedOp;
use lanner_graph::elementwise::FixedFunction;
use lanner_primitives::Ring;
use lanner_protocol::nonlinear::ot_nonlinear::{Polynomials, RingFunction};
use lanner_protocol::step::Spec;

use super::{Planner, ring, unsupported};
use crate::{Mode, PlanError};

/// A function and the rescale before it, if nothing else reads what that makes.
pub(super) struct FunctionRun<'n> {
    /// The first and the last of them.
    first: usize,
    last: usize,
    function: &'n FixedFunction,
    /// Bits that are dropped first.
    pub(super) shift: u32,
}

impl<'n> Planner<'n> {
    /// What node `first` begins, if that is a function or a rescale that may go with one.
    pub(super) fn function_run(&self, first: usize) -> Option<FunctionRun<'n>> {
        let nodes = self.network.nodes();
        match &nodes[first].op {
            FixedOp::Function(function) => Some(FunctionRun { first, last: first, function, shift: 0 }),
            FixedOp::Rescale { shift } => {
                let mut users = self.network.users(first + 1);
                let last = users.next().filter(|_| users.next().is_none())?;
                let FixedOp::Function(function) = &nodes[last].op else { return None };
                Some(FunctionRun { first, last, function, shift: *shift })
            }
            _ => None,
        }
    }

    /// The step that computes a run of values with bits of guard; none if transfers do not.
    pub(super) fn function(&self, run: &FunctionRun<'_>, guard: u32) -> Option<RingFunction> {
        let network = self.network;
        let input = network.nodes()[run.first].inputs[0];
        let rings = [input, run.last + 1].map(|value| ring(network.accumulator(value)));
        let (Mode::Cheetah(_), [Ring::Pow2(from), Ring::Pow2(to)]) = (self.mode, rings) else { return None };
        let FixedFunction { low, bits, ref polynomials, shift } = *run.function;
        let function = Polynomials { low, bits, polynomials: polynomials.clone(), shift };
        let values = network.nodes()[run.last].len();
        let step = RingFunction { function, values, from: from + guard, to, shift: run.shift + guard };
        step.build(&self.sets).is_ok().then_some(step)
    }

    /// Adds the step of what node `first` begins, a function or a rescale before one; returns whether there is one.
    pub(super) fn add_function(&mut self, first: usize, input: usize) -> Result<bool, PlanError> {
        let network = self.network;
        let Some(run) = self.function_run(first) else { return Ok(false) };
        let node = &network.nodes()[run.last];
        let Some(step) = self.function(&run, self.guards.of(network.nodes()[first].inputs[0])) else {
            // A rescale alone may do.
            return if run.last == first {
                Err(unsupported(node, "only mode cheetah has a protocol for it".to_owned()))
            } else {
                Ok(false)
            };
        };
        self.inside[run.last] = true;
        self.values[run.last + 1] = Some(self.push(&node.name, vec![input], step)?);
        Ok(true)
    }
}
