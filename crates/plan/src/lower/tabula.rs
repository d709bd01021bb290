//! The activations of mode tabula.

use lanner_primitives::Ring;
use lanner_protocol::nonlinear::ot_nonlinear::{RingActivation, Rounding};
use lanner_protocol::nonlinear::tabula::Lookup;
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
        guard: u32,
    ) -> Result<Option<usize>, PlanError> {
        let (Mode::Tabula, [Ring::Pow2(from), Ring::Pow2(to)]) = (self.mode, rings) else { return Ok(None) };
        let Function { relu, slope, high, shift } = fused.function;
        let shift = shift + guard;
        let values = fused.windows.count().unwrap_or(0);
        // A bound beyond what values can be never binds.
        let left = from.saturating_sub(shift + 2);
        let Ok(high) = high.map(u64::try_from).transpose() else { return Ok(None) };
        let high = high.filter(|high| high >> left == 0);
        let lookup = Lookup { values, from, shift, relu, high, to };
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
                RingActivation { function, windows, from, to: from, rounding: Rounding::Exact },
            )?
        };
        self.push(name, vec![input], lookup).map(Some)
    }
}
