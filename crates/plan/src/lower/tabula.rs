//! The activations of mode tabula.

use lanner_graph::FixedOp;
use lanner_primitives::Ring;
use lanner_protocol::nonlinear::ot_nonlinear::{self, RingActivation};
use lanner_protocol::nonlinear::tabula::{Lookup, Rounding};
use lanner_protocol::nonlinear::yao::Function;
use lanner_protocol::step::Spec;

use super::Planner;
use crate::fuse::Fused;
use crate::{Mode, PlanError};

impl Planner<'_> {
    /// Adds the steps that look a run of operators up, on values with bits of guard: none in other modes, and where no keys are that wide. Maxima over
    /// windows come first, by transfers.
    pub(super) fn lookup(
        &mut self,
        name: &str,
        input: usize,
        fused: &Fused,
        rings: [Ring; 2],
        (guard, rounding): (u32, Rounding),
    ) -> Result<Option<usize>, PlanError> {
        let (Mode::Tabula(_), [Ring::Pow2(from), Ring::Pow2(to)]) = (self.mode, rings) else {
            return Ok(None);
        };
        let Function { relu, slope, high, shift } = fused.function;
        let shift = shift + guard;
        let values = fused.windows.count().unwrap_or(0);
        // A bound beyond what values can be never binds.
        let left = from.saturating_sub(shift + 2);
        let Ok(high) = high.map(u64::try_from).transpose() else { return Ok(None) };
        let high = high.filter(|high| high >> left == 0);
        let lookup = Lookup { values, from, shift, rounding, relu, high, to };
        if slope.is_some() || lookup.build(&self.sets).is_err() {
            return Ok(None);
        }
        let input = if fused.windows.are_elements() {
            input
        } else {
            let function = Function { relu: false, slope: None, high: None, shift: 0 };
            let windows = fused.windows;
            self.push(
                name,
                vec![input],
                RingActivation { function, windows, from, to: from, rounding: ot_nonlinear::Rounding::Exact },
            )?
        };
        self.push(name, vec![input], lookup).map(Some)
    }

    /// How a run of operators is rescaled if it is looked up: exactly but where the model's owner says otherwise, and exactly where the result is made of
    /// it without another rescale in between.
    pub(super) fn lookup_rounding(&self, nodes: &[usize]) -> Rounding {
        let is_rescale = |node: &&usize| matches!(self.network.nodes()[**node].op, FixedOp::Rescale { .. });
        match (self.mode, nodes.iter().find(is_rescale)) {
            (Mode::Tabula(rounding), Some(node)) if !self.in_result[node + 1] => rounding,
            _ => Rounding::Exact,
        }
    }
}
