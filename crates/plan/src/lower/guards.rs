//! Which sums carry bits of guard below their own, and how many.
//!
//! A coefficient-encoded layer, or product of matrices, gives `2^g m` or `2^g m + 1` for far less than it takes to give `m` itself, and a rescale, which drops low
//! bits, drops `g` more for next to nothing. So does what tells the result: a circuit does not see them, and transfers drop them of scores that
//! are opened. So a layer is guarded where each way from it to a rescale or to the result goes through sums and movements alone. They add up
//! what is below `2^g`, which must stay there. Elsewhere a layer is exact, or guarded by a bit that a step of transfers drops right behind, whichever is cheaper.

use std::collections::{BTreeMap, BTreeSet};

use lanner_bfv::ParameterSet;
use lanner_coefficient::cheetah::Accuracy;
use lanner_network::{FixedNode, FixedOp};
use lanner_step::Convolution;

use super::{Chosen, Planner, Run, convolution, ring};
use crate::PlanError;
use crate::mode::{Between, Kind, Rings};

/// The guards of a network.
#[derive(Default)]
pub(super) struct Guards {
    /// For each value, the bits below its own that its sharing has.
    bits: Vec<u32>,
    /// For each value that a guarded layer or product makes, its parameter set and its price.
    sets: BTreeMap<usize, Form>,
    /// The values among them whose guard is dropped before anything else reads them.
    dropped: BTreeSet<usize>,
}

/// A parameter set, and roughly the nanoseconds of a prediction that a layer takes in it.
pub(super) type Form = (ParameterSet, usize);

impl Guards {
    /// The bits of guard of a value.
    pub(super) fn of(&self, value: usize) -> u32 {
        self.bits.get(value).copied().unwrap_or_default()
    }

    /// Whether the layer that makes a value is guarded, and the guard is dropped right behind.
    pub(super) fn drops(&self, value: usize) -> bool {
        self.dropped.contains(&value)
    }

    /// Guards the layer that makes a value, and drops the guard right behind.
    pub(super) fn drop_behind(&mut self, value: usize, form: Form) {
        self.sets.insert(value, form);
        self.dropped.insert(value);
    }

    /// The guarded layers and products, by the values that they make.
    pub(super) fn forms(&self) -> Vec<(usize, Form)> {
        self.sets.iter().map(|(value, form)| (*value, *form)).collect()
    }

    /// Has the guarded layer that makes a value take another form.
    pub(super) fn take(&mut self, value: usize, form: Form) {
        self.sets.insert(value, form);
    }

    /// The parameter set of the guarded layer or product that makes a value.
    pub(super) fn set(&self, value: usize) -> Option<ParameterSet> {
        self.sets.get(&value).map(|(set, _)| *set)
    }
}

impl Planner<'_> {
    /// The guards of a network, those of its result only if asked for.
    pub(super) fn find_guards(&self, of_result: bool) -> Result<Guards, PlanError> {
        let nodes = self.network.nodes();
        let mut guards = Guards { bits: vec![0; nodes.len() + 1], ..Guards::default() };
        if self.choices.mode.design().rings != Rings::PowersOfTwo {
            return Ok(guards);
        }
        let errors = self.errors(&self.dropped(of_result));
        for (group, most) in groups(nodes, &errors) {
            let guard = u64::BITS - most.leading_zeros();
            let sets = if guard <= MOST_BITS { self.sets_of(&group, guard)? } else { None };
            if let Some(sets) = sets {
                guards.sets.extend(sets);
                for value in group {
                    guards.bits[value] = guard;
                }
            }
        }
        let exact = if of_result { self.droppable(&guards) } else { Vec::new() };
        self.choose_forms(&mut guards, &exact)?;
        Ok(guards)
    }

    /// A layer, and the bits of its ring.
    pub(super) fn layer_of(&self, node: &FixedNode) -> Result<(Convolution, u32), PlanError> {
        Ok((convolution(node, self.network.shape(node.inputs[0]))?, node.accumulator.bits()))
    }

    /// For each value, whether all that is made of it goes through a rescale, with nothing but sums and movements before, or through what tells
    /// the result.
    fn dropped(&self, of_result: bool) -> Vec<bool> {
        let nodes = self.network.nodes();
        let mut dropped = vec![false; nodes.len() + 1];
        dropped[nodes.len()] = of_result;
        // Users come behind what they use, and the last value is the result.
        for value in (1..nodes.len()).rev() {
            let through = |user: usize| {
                if Kind::is_local(&nodes[user].op) { dropped[user + 1] } else { self.rescales(user) }
            };
            let mut users = self.network.users(value).peekable();
            dropped[value] = users.peek().is_some() && users.all(through);
        }
        dropped
    }

    /// Whether node `user` begins a run of operators with a rescale that drops bits of guard, too.
    fn rescales(&self, user: usize) -> bool {
        let node = &self.network.nodes()[user];
        if matches!(node.op, FixedOp::Conv2d(_) | FixedOp::Linear { .. } | FixedOp::Square) {
            return false;
        }
        if let Some(run) = self.function_run(user)
            && self.function(&run, 0).is_some()
        {
            return run.shift > 0;
        }
        let Run { nodes, fused } = self.run(user);
        // What is below a sum would move what a stochastic rescale adds.
        if !self.lookup_rounding(&nodes).is_exact() {
            return false;
        }
        let from = ring(self.network.accumulator(node.inputs[0]));
        nodes.last().is_some_and(|last| {
            let to = ring(self.network.nodes()[*last].accumulator);
            let by_circuit = self.rules(user).between == Between::Circuits && fused.function.slope.is_none();
            let rescaled = by_circuit || self.activation(user, &fused, [from, to], 0).is_some();
            fused.function.shift > 0 && rescaled
        })
    }

    /// What is below each value's own bits at most, in units of the lowest bit of the guard: one of a layer's, and what sums make of it.
    fn errors(&self, dropped: &[bool]) -> Vec<u64> {
        let mut errors = vec![0; dropped.len()];
        let chosen: BTreeSet<usize> = self.chosen.iter().flatten().filter_map(Chosen::layer).collect();
        for (index, FixedNode { op, inputs, .. }) in self.network.nodes().iter().enumerate() {
            let of = |input: usize| errors[inputs[input]];
            let times = |factor: i64, error: u64| match u64::try_from(factor) {
                _ if error == 0 => 0,
                Ok(factor) => error.saturating_mul(factor),
                // Nothing may be below zero.
                Err(_) => u64::MAX,
            };
            errors[index + 1] = match op {
                _ if !dropped[index + 1] || self.sparse[index].is_some() || chosen.contains(&index) => 0,
                FixedOp::Conv2d(_) | FixedOp::Linear { .. } => 1,
                FixedOp::MatrixProduct { .. } if self.matrices[index] => 1,
                FixedOp::Add { factors: [a, b] } => times(*a, of(0)).saturating_add(times(*b, of(1))),
                FixedOp::Scale { factor } => times(*factor, of(0)),
                FixedOp::SumPool(window) => {
                    of(0).saturating_mul(window.kernel.iter().map(|side| *side as u64).product())
                }
                op if Kind::is_local(op) => (0..inputs.len()).map(of).max().unwrap_or(0),
                _ => 0,
            };
        }
        errors
    }

    /// The parameter set of each layer or product that makes one of these values, with room for so many bits of guard; none if one has no such set.
    fn sets_of(&self, values: &[usize], guard: u32) -> Result<Option<Vec<(usize, Form)>>, PlanError> {
        let mut sets = Vec::new();
        for value in values {
            let node = &self.network.nodes()[value - 1];
            if matches!(node.op, FixedOp::Conv2d(_) | FixedOp::Linear { .. }) {
                let (shape, bits) = self.layer_of(node)?;
                let Some(found) = self.encrypted(node, &shape, bits, &[Accuracy::Guarded(guard)])? else {
                    return Ok(None);
                };
                sets.push((*value, (found.set, found.price)));
            } else if matches!(node.op, FixedOp::MatrixProduct { .. }) {
                let Some((set, _)) = self.encrypted_matrices(node, guard)? else { return Ok(None) };
                sets.push((*value, (set, 0)));
            }
        }
        Ok(Some(sets))
    }
}

/// Values with an error that go into one another, which all have the same guard; and the largest error of each group.
fn groups(nodes: &[FixedNode], errors: &[u64]) -> Vec<(Vec<usize>, u64)> {
    // The group of each value: the least value that is known to be in it.
    let mut of: Vec<usize> = (0..errors.len()).collect();
    for (index, node) in
        nodes.iter().enumerate().filter(|(index, node)| errors[index + 1] > 0 && Kind::is_local(&node.op))
    {
        for input in node.inputs.iter().filter(|input| errors[**input] > 0) {
            let [a, b] = [of[index + 1], of[*input]];
            of.iter_mut().filter(|group| **group == a.max(b)).for_each(|group| *group = a.min(b));
        }
    }
    let mut groups = vec![(Vec::new(), 0); errors.len()];
    for (value, error) in errors.iter().enumerate().filter(|(_, error)| **error > 0) {
        let (values, most) = &mut groups[of[value]];
        values.push(value);
        *most = *error.max(most);
    }
    groups.retain(|(values, _)| !values.is_empty());
    groups
}

/// The bits of guard of layers whose guard is dropped right behind.
pub(super) const DROPPED: u32 = 1;

/// The most bits of guard: each is compared once more where it is dropped.
const MOST_BITS: u32 = 4;
