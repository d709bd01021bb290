//! Where values are rescaled and which of them share a ring: what follows from the graph alone, before any scale is chosen.

use super::item::{Action, Item};

/// The places of rescales and the groups of values that share a ring.
#[derive(Debug)]
pub(super) struct Structure {
    /// The items that use each value, in order.
    pub(super) users: Vec<Vec<usize>>,
    /// Whether each value is rescaled; all its users then take the rescaled value.
    pub(super) rescaled: Vec<bool>,
    /// Whether each value, before its rescale, is a layer's sum or computed from one.
    pub(super) wide: Vec<bool>,
    /// The group of each value before its rescale.
    before: Vec<usize>,
    /// The group of each value behind its rescale; the same where there is none.
    behind: Vec<usize>,
    /// The number of groups, empty ones included.
    pub(super) groups: usize,
}

/// Whether squares keep all the bits of a layer's sums, or take them rescaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Squares {
    Whole,
    Rescaled,
}

impl Structure {
    pub(super) fn new(items: &[Item], squares: Squares) -> Self {
        let values = items.len() + 1;
        let mut users = vec![Vec::new(); values];
        for (index, item) in items.iter().enumerate() {
            item.inputs.iter().for_each(|&value| users[value].push(index));
        }
        users.iter_mut().for_each(Vec::dedup);
        let leads = leads_to_product(items);
        let (mut wide, mut rescaled) = (vec![false; values], vec![false; values]);
        for (index, item) in items.iter().enumerate() {
            let value = index + 1;
            wide[value] = match item.action {
                Action::Layer { .. } => true,
                Action::Square => false,
                _ => item.inputs.iter().any(|&input| wide[input] && !rescaled[input]),
            };
            let wants = |&user: &usize| match items[user].action {
                Action::Layer { .. } => true,
                Action::Square => squares == Squares::Rescaled,
                _ => false,
            };
            // Behind a run of nonlinear operators, where one circuit does it all; else as late as possible.
            let run_goes_on = matches!(users[value].as_slice(), &[user] if items[user].action.is_nonlinear());
            let run_ends = item.action.is_nonlinear() && leads[value] && !run_goes_on;
            rescaled[value] = wide[value] && (run_ends || users[value].iter().any(wants));
        }
        let (before, behind, groups) = group(items, &rescaled);
        Self { users, rescaled, wide, before, behind, groups }
    }

    /// The group of a value as its item makes it.
    pub(super) fn group_before(&self, value: usize) -> usize {
        self.before[value]
    }

    /// The group of a value as its users take it.
    pub(super) fn group_behind(&self, value: usize) -> usize {
        self.behind[value]
    }
}

/// Whether a linear layer or a square lies behind each value.
fn leads_to_product(items: &[Item]) -> Vec<bool> {
    let mut leads = vec![false; items.len() + 1];
    for (index, item) in items.iter().enumerate().rev() {
        if item.action.multiplies() || leads[index + 1] {
            item.inputs.iter().for_each(|&value| leads[value] = true);
        }
    }
    leads
}

/// Joins the inputs and the output of every item into one group; only rescales lie between groups.
fn group(items: &[Item], rescaled: &[bool]) -> (Vec<usize>, Vec<usize>, usize) {
    let values = rescaled.len();
    // Slot v is value v as made, slot values + v the same behind its rescale.
    let behind = |value: usize| if rescaled[value] { values + value } else { value };
    let mut parent: Vec<usize> = (0..2 * values).collect();
    for (index, item) in items.iter().enumerate() {
        for &input in &item.inputs {
            let (a, b) = (root(&parent, index + 1), root(&parent, behind(input)));
            parent[a.max(b)] = a.min(b);
        }
    }
    let of = |slot: usize| root(&parent, slot);
    ((0..values).map(of).collect(), (0..values).map(|value| of(behind(value))).collect(), 2 * values)
}

fn root(parent: &[usize], mut slot: usize) -> usize {
    while parent[slot] != slot {
        slot = parent[slot];
    }
    slot
}
