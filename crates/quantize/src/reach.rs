//! What is computed from a value on the way to the next rescale, and from there to the next product.

use std::collections::BTreeMap;

use super::item::Item;
use super::structure::Structure;

/// A value on the way, with its scale and integers relative to those at the start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reached {
    pub(super) value: usize,
    /// The real value of a unit over that of a unit at the start; joined values are taken to come with a factor of 1.
    pub(super) unit: f64,
    /// How much pools on the way enlarge integers.
    pub(super) growth: f64,
}

/// The value itself and all that is computed from it up to rescales (included), linear layers and squares (both left out).
pub(super) fn to_rescales(items: &[Item], structure: &Structure, value: usize) -> Vec<Reached> {
    walk(items, structure, value, |user| !items[user].action.takes_few_bits(), |at| !structure.rescaled[at])
}

/// The values at which a rescaled value's way ends: those that a linear layer, a square, a join or nobody uses.
pub(super) fn ends(items: &[Item], structure: &Structure, value: usize) -> Vec<Reached> {
    let goes_on = |user: usize| !items[user].action.takes_few_bits() && !items[user].action.joins();
    let mut reached = walk(items, structure, value, goes_on, |_| true);
    reached.retain(|at| {
        let users = &structure.users[at.value];
        users.is_empty() || users.iter().any(|&user| !goes_on(user))
    });
    reached
}

/// All values computed from the first through users that `passes`, starting from values that one may `leave`.
fn walk(
    items: &[Item],
    structure: &Structure,
    first: usize,
    passes: impl Fn(usize) -> bool,
    leave: impl Fn(usize) -> bool,
) -> Vec<Reached> {
    let mut waiting = BTreeMap::from([(first, Reached { value: first, unit: 1.0, growth: 1.0 })]);
    let mut reached = Vec::new();
    // Items use only earlier values, so the smallest waiting value is complete.
    while let Some((value, at)) = waiting.pop_first() {
        reached.push(at);
        if !leave(value) {
            continue;
        }
        for &user in structure.users[value].iter().filter(|&&user| passes(user)) {
            let action = &items[user].action;
            let (unit, growth) = (at.unit * action.unit(), at.growth * action.growth());
            let next = waiting.entry(user + 1).or_insert(Reached { value: user + 1, unit, growth });
            next.growth = next.growth.max(growth);
        }
    }
    reached
}
