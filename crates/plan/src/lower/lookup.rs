//! Activations by lookups.

use lanner_network::FixedOp;
use lanner_primitives::Ring;
use lanner_step::{CotSupply, Function, Spec, transfer_sets};
use lanner_tabula::{Lookup, Maxima, Rounding, Table};
use lanner_transfers::{self as transfers, RingActivation, RingFunction};

use super::Planner;
use crate::PlanError;
use crate::fuse::Fused;
use crate::mode::Between;

impl Planner<'_> {
    /// Adds the steps that look a run of operators up, on values with bits of guard that may be anything in their ring or are below a quarter of it: none
    /// where no keys are that wide. Maxima over windows come first, by transfers, or last, by keys, if these are short and send less online.
    pub(super) fn lookup(
        &mut self,
        name: &str,
        input: usize,
        fused: &Fused,
        rings: [Ring; 2],
        whole: bool,
        (guard, rounding): (u32, Rounding),
    ) -> Result<Option<usize>, PlanError> {
        let [Ring::Pow2(from), Ring::Pow2(to)] = rings else { return Ok(None) };
        let Function { relu, slope, high, shift } = fused.function;
        let (windows, shift) = (fused.windows, shift + guard);
        // A bound beyond what values can be never binds.
        let left = from.saturating_sub(shift + if whole { 1 } else { 2 });
        let Ok(high) = high.map(u64::try_from).transpose() else { return Ok(None) };
        let high = high.filter(|high| high >> left == 0);
        let of = |values| Lookup { values, from, shift, whole, rounding, relu, high, to };
        let (before, after) = (of(windows.count().unwrap_or(0)), of(windows.inputs()));
        if slope.is_some() || before.build(&self.sets).is_err() {
            return Ok(None);
        }
        if windows.are_elements() {
            return self.push(name, vec![input], before).map(Some);
        }
        let function = Function::IDENTITY;
        let exact = transfers::Rounding::Exact;
        let transfers = RingActivation { function, windows, from, to: from, rounding: exact };
        // A difference of two that are not negative is no longer than either with its sign.
        let maxima = Maxima { windows, kept: if relu { left + 1 } else { left + 2 }, ring: to };
        let [by_keys, by_transfers] =
            [[&after as &dyn Spec, &maxima], [&transfers, &before]].map(|specs| self.online_bytes(&specs));
        let is_less = by_keys.is_some_and(|bytes| by_transfers.is_none_or(|others| bytes < others));
        if is_less && maxima.kept <= MAX_MAXIMA_BITS {
            let input = self.push(name, vec![input], after)?;
            return self.push(name, vec![input], maxima).map(Some);
        }
        let input = self.push(name, vec![input], transfers)?;
        self.push(name, vec![input], before).map(Some)
    }

    /// The table of the function at node `last` of what is rescaled, where nodes are looked up and few enough bits are kept.
    pub(super) fn table(&self, last: usize, step: &RingFunction) -> Option<Table> {
        let RingFunction { ref function, values, from, to, shift, .. } = *step;
        let table = Table { values, from, shift, function: function.clone(), to, expanded: false };
        (self.rules(last).between == Between::Lookups && table.build(&self.sets).is_ok()).then_some(table)
    }

    /// Whether a node is a rescale that goes along with the function behind it as a table: no run ends in it, since alone the function would be none.
    pub(super) fn is_table(&self, node: usize) -> bool {
        let Some(run) = self.function_run(node).filter(|run| run.shift > 0) else { return false };
        self.function(&run, 0).is_some_and(|step| self.table(run.last, &step).is_some())
    }

    /// What steps send online; none if one cannot be built.
    fn online_bytes(&self, specs: &[&dyn Spec]) -> Option<u64> {
        let bytes = |spec: &&dyn Spec| {
            // What was sent offline makes no difference.
            let mut supply = CotSupply::new(transfer_sets([0; 2]));
            Some(spec.build(&self.sets).ok()?.cost(&mut supply).ok()?.online.bytes())
        };
        specs.iter().map(bytes).sum()
    }

    /// How a run of operators is rescaled if it is looked up: exactly but where the model's owner says otherwise, and exactly where the result is made of
    /// it without another rescale in between.
    pub(super) fn lookup_rounding(&self, nodes: &[usize]) -> Rounding {
        let is_rescale = |node: &&usize| matches!(self.network.nodes()[**node].op, FixedOp::Rescale { .. });
        match nodes.iter().find(is_rescale) {
            Some(node) if !self.in_result[node + 1] => self.choices.mode.lookup_rounding(),
            _ => Rounding::Exact,
        }
    }
}

/// The most bits of the differences that maxima are taken by with keys: a window has several, and each doubles what its keys take to make.
const MAX_MAXIMA_BITS: u32 = 12;
