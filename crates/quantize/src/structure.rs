//! Where values are rescaled and which of them share a ring: what follows from the graph alone, before any scale is chosen.

use std::collections::BTreeSet;

use lanner_network::FixedOp;

use super::QuantizationOptions;
use super::item::{Action, Item};
use super::normalised::{normalised, vanishes};

/// The places of rescales and the groups of values that share a ring.
#[derive(Debug)]
pub(super) struct Structure {
    /// The items that use each value, in order.
    pub(super) users: Vec<Vec<usize>>,
    /// Whether each value is rescaled; all its users then take the rescaled value.
    pub(super) rescaled: Vec<bool>,
    /// Whether each value, before its rescale, is a layer's sum, a product of two values, or computed from one.
    pub(super) wide: Vec<bool>,
    /// Whether each value leaves room for differences: those do of which some are taken before a layer or a product, and the scores.
    pub(super) differences: Vec<bool>,
    /// For each item, whether it is a layer whose sums are squared whole.
    pub(super) squared: Vec<bool>,
    /// For each item, whether it is a layer that takes such squares.
    pub(super) behind_squares: Vec<bool>,
    /// The bits of what is squared whole.
    pub(super) square_bits: SquareBits,
    /// The bits that each value is rescaled by, where these follow from the graph: of means that are taken off what they are of.
    pub(super) centring: Vec<Option<u32>>,
    /// Whether each value keeps more bits where there is room.
    pub(super) normalised: Vec<bool>,
    /// Whether what each item's value is multiplied with is 0 where its input is.
    pub(super) vanishes: Vec<bool>,
    /// The group of each value before its rescale.
    before: Vec<usize>,
    /// The group of each value behind its rescale; the same where there is none.
    behind: Vec<usize>,
    /// The number of groups, empty ones included.
    pub(super) groups: usize,
}

/// The bits of what is squared whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SquareBits {
    /// Of the activations whose sums are squared.
    pub(super) activations: u32,
    /// Of the weights whose sums are squared.
    pub(super) weights: u32,
    /// The fewest of the weights that take the squares.
    pub(super) behind: u32,
}

/// Which squares take the sums of a layer whole, and the bits of what those sums are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Squares {
    /// For each item, whether it is a square whose input is not rescaled.
    pub(super) whole: Vec<bool>,
    /// The bits around them.
    pub(super) bits: SquareBits,
}

impl Structure {
    /// With rescales as the options want them, and of the values `rounded`.
    pub(super) fn new(
        items: &[Item],
        squares: &Squares,
        rounded: &BTreeSet<usize>,
        options: &QuantizationOptions,
    ) -> Self {
        let values = items.len() + 1;
        let mut users = vec![Vec::new(); values];
        for (index, item) in items.iter().enumerate() {
            item.inputs.iter().for_each(|&value| users[value].push(index));
        }
        users.iter_mut().for_each(Vec::dedup);
        let ahead = Ahead::of(items);
        let takes: Vec<bool> = (0..items.len())
            .map(|user| match items[user].action {
                _ if !options.rescales => false,
                // Comparing few bits of what others take in front of a product, too, costs less, and the maximum is one of what they take then.
                Action::Max(_) => users[items[user].inputs[0]].len() > 1 && ahead.product[user + 1],
                _ => rounds(&items[user].action) && !squares.whole[user],
            })
            .collect();
        let (wide, rescaled) = places(items, &users, &ahead, &takes, rounded);
        let mixes = mixes(items, &users, &takes, |value| wide[value] && !rescaled[value]);
        let (wide, mut rescaled) = places(items, &users, &ahead, &mixes, rounded);
        rescaled[items.len()] |= wide[items.len()] && options.output_unit.is_some();
        // Where rescales cost by the bits that they keep, these are too many.
        let is_offered = options.rescales && !options.narrow;
        let centring: Vec<Option<u32>> = (0..users.len())
            .map(|value| {
                centring(items, &users, value).filter(|_| is_offered && wide[value] && !rescaled[value])
            })
            .collect();
        for (rescaled, centring) in rescaled.iter_mut().zip(&centring) {
            *rescaled |= centring.is_some();
        }
        let (before, behind, groups) = group(items, &rescaled);
        // What calibration alone decides on keeps that room whatever follows.
        let differences = if options.fills_rings() { differences(items, &users) } else { vec![true; values] };
        let squared = squared(items, &users, &rescaled, &squares.whole);
        let behind_squares = behind_squares(items, &rescaled, &squares.whole);
        let (normalised, vanishes) = (normalised(items, &users), vanishes(items, &users));
        let square_bits = squares.bits;
        Self {
            users,
            rescaled,
            wide,
            differences,
            squared,
            behind_squares,
            square_bits,
            centring,
            normalised,
            vanishes,
            before,
            behind,
            groups,
        }
    }

    /// The group of a value as its item makes it.
    pub(super) fn group_before(&self, value: usize) -> usize {
        self.before[value]
    }

    /// The groups that this one stands for: its own, and those of values that are quantised as one with a value in it.
    pub(super) fn alike(&self, items: &[Item], group: usize) -> BTreeSet<usize> {
        let of = |index: usize| [self.before[index + 1], self.behind[index + 1]];
        let mut classes = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let places = of(index).map(|of| of == group);
            classes.extend((0..2).filter(|place| places[*place]).map(|place| (item.class, place)));
        }
        let alike = |(index, item): (usize, &Item)| {
            let places = (0..2).filter(|place| classes.contains(&(item.class, *place)));
            places.map(|place| of(index)[place]).collect::<Vec<_>>()
        };
        let mut groups: BTreeSet<usize> = items.iter().enumerate().flat_map(alike).collect();
        groups.insert(group);
        groups
    }

    /// The values whose rescale leaves fewer bits where a node is made that fits no ring: wide ones of its group that a mean is taken off, and those
    /// that are quantised as one with them.
    pub(super) fn roundable(&self, items: &[Item], node: &str) -> BTreeSet<usize> {
        let Some(index) = items.iter().position(|item| item.name == node) else { return BTreeSet::new() };
        let group = self.before[index + 1];
        let means = items.iter().zip(&self.centring[1..]).filter(|(_, centring)| centring.is_some());
        let of_group =
            |value: &usize| self.before[*value] == group && self.wide[*value] && !self.rescaled[*value];
        let found = means.map(|(mean, _)| unmoved(items, mean.inputs[0])).filter(of_group);
        alike(items, found)
    }

    /// The values whose rescale lets a sum have coarser units: wide ones of a node's group that layers and products make and that are added there,
    /// and those that are quantised as one with them.
    pub(super) fn joined(&self, items: &[Item], node: &str) -> BTreeSet<usize> {
        let Some(index) = items.iter().position(|item| item.name == node) else { return BTreeSet::new() };
        let group = self.before[index + 1];
        let added = |value: &usize| {
            let users = &self.users[*value];
            self.before[*value] == group
                && self.wide[*value]
                && !self.rescaled[*value]
                && items[*value - 1].action.takes_few_bits()
                && users.iter().any(|&user| leads_to_sum(items, &self.users, user))
        };
        alike(items, (1..=items.len()).filter(added))
    }

    /// The values whose rescale leaves a layer of a node's group fewer bits to read: means, sums and squares that were not wide, and so come to it as
    /// they are, with the bits of all that was added up or of both factors; and those that are quantised as one with them.
    pub(super) fn fine(&self, items: &[Item], node: &str) -> BTreeSet<usize> {
        let Some(index) = item_of(items, node) else { return BTreeSet::new() };
        // What is rescaled begins the group of its users.
        let begins = node.ends_with("/rescale");
        let group = if begins { self.behind[index + 1] } else { self.before[index + 1] };
        // A layer; in a group without one a mean, which has as many bits more as it is of values, or a join, whose unit may be finer.
        let reads = |at: &usize| {
            let action = &items[*at].action;
            let is_layer = matches!(action, Action::Layer { .. });
            if begins { matches!(action, Action::Mean(_)) || action.joins() } else { is_layer }
        };
        let readers = (0..items.len()).filter(|at| reads(at) && self.before[at + 1] == group);
        let read = readers.flat_map(|at| items[at].inputs.iter().map(|&input| unmoved(items, input)));
        let is_fine = |value: usize| {
            let made = value.checked_sub(1).map(|at| &items[at].action);
            made.is_some_and(|made| matches!(made, Action::Mean(_) | Action::Add) || made.is_square())
        };
        alike(items, read.filter(|&value| is_fine(value) && !self.wide[value] && !self.rescaled[value]))
    }

    /// The group of a value as its users take it.
    pub(super) fn group_behind(&self, value: usize) -> usize {
        self.behind[value]
    }
}

/// The item that a node of the network comes from: of its name, or of what is in front of a suffix.
fn item_of(items: &[Item], node: &str) -> Option<usize> {
    let is_of = |item: &Item| {
        node.strip_prefix(item.name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    (0..items.len()).filter(|&index| is_of(&items[index])).max_by_key(|&index| items[index].name.len())
}

/// The values that are quantised as one with some, those included.
fn alike(items: &[Item], found: impl Iterator<Item = usize>) -> BTreeSet<usize> {
    let classes: BTreeSet<usize> =
        found.filter_map(|value| Some(items[value.checked_sub(1)?].class)).collect();
    let alike = items.iter().enumerate().filter(|(_, item)| classes.contains(&item.class));
    alike.map(|(index, _)| index + 1).collect()
}

/// Whether what an item makes, or elements of it in another order, is a sum with something else.
fn leads_to_sum(items: &[Item], users: &[Vec<usize>], user: usize) -> bool {
    let item = &items[user];
    match item.action {
        Action::Add => true,
        Action::Move(_) => users[user + 1].iter().any(|&next| leads_to_sum(items, users, next)),
        _ => false,
    }
}

/// Whether each value is wide before its rescale, and whether it is rescaled, if the items that `takes` names take none that is wide, and those
/// `rounded` are not left so.
fn places(
    items: &[Item],
    users: &[Vec<usize>],
    ahead: &Ahead,
    takes: &[bool],
    rounded: &BTreeSet<usize>,
) -> (Vec<bool>, Vec<bool>) {
    let (mut wide, mut rescaled) = (vec![false; users.len()], vec![false; users.len()]);
    for (index, item) in items.iter().enumerate() {
        let value = index + 1;
        wide[value] = match item.action {
            Action::Layer { .. } | Action::Mul | Action::MatrixProduct { .. } => true,
            // A sum over windows is finer than what it is added to, and may be finer than a function wants it.
            _ if rounded.contains(&value) => true,
            Action::Mean(_) if ahead.sum[value] => true,
            _ if item.action.is_square() => ahead.function[value],
            _ if item.action.chooses_scale() => false,
            _ => item.inputs.iter().any(|&input| wide[input] && !rescaled[input]),
        };
        // Behind a run of nonlinear operators, where one circuit does it all; else as late as possible.
        let run_goes_on = matches!(users[value].as_slice(), &[user] if items[user].action.is_nonlinear());
        let run_ends = item.action.is_nonlinear() && ahead.product[value] && !run_goes_on;
        let is_taken = users[value].iter().any(|&user| takes[user]);
        rescaled[value] = wide[value] && (run_ends || is_taken || rounded.contains(&value));
    }
    (wide, rescaled)
}

/// The bits by which a mean is rescaled that is taken off all that it is of: but for [`CENTRING_BITS`], those that its sums are finer by. In the
/// other's integers there would be as many more.
fn centring(items: &[Item], users: &[Vec<usize>], value: usize) -> Option<u32> {
    let item = &items[value.checked_sub(1)?];
    let Action::Mean(window) = item.action else { return None };
    let of = unmoved(items, item.inputs[0]);
    let mut at = value;
    loop {
        let &[user] = users[at].as_slice() else { return None };
        let next = &items[user];
        match next.action {
            // Repeated to all elements, too.
            Action::Move(_) if next.inputs.iter().all(|&input| input == at) => at = user + 1,
            Action::Factor(factor) if factor.abs().to_bits() == 1.0_f64.to_bits() => at = user + 1,
            Action::Add if next.inputs.iter().any(|&input| unmoved(items, input) == of) => break,
            _ => return None,
        }
    }
    // Of few, these bits cost less than a rescale.
    let bits = window.area().ilog2();
    (bits >= LEAST_CENTRING).then(|| bits - CENTRING_BITS)
}

/// The value whose elements a value has in another order or shape.
fn unmoved(items: &[Item], mut value: usize) -> usize {
    while let Some(item) = value.checked_sub(1).map(|index| &items[index])
        && let (Action::Move(_), &[input]) = (&item.action, item.inputs.as_slice())
    {
        value = input;
    }
    value
}

/// How much finer a mean stays than what it is taken off: whose rounding, where it was rounded, is twice as much.
const CENTRING_BITS: u32 = 1;

/// Of 64 and more.
const LEAST_CENTRING: u32 = 6;

/// The items that take no wide value, and with them those that put wide values beside others in front of such items alone: behind the
/// join all of it would be rescaled, and before it the others would be brought to the finer scale.
fn mixes(items: &[Item], users: &[Vec<usize>], takes: &[bool], is_wide: impl Fn(usize) -> bool) -> Vec<bool> {
    let mixes = |index: usize| {
        let item = &items[index];
        let before = &users[index + 1];
        matches!(item.action, Action::Move(FixedOp::Concat { .. }))
            && !before.is_empty()
            && before.iter().all(|&user| takes[user])
            && item.inputs.iter().any(|&input| !is_wide(input))
    };
    takes.iter().enumerate().map(|(index, &takes)| takes || mixes(index)).collect()
}

/// Whether an item wants its inputs rescaled: it takes few bits, and more of them than their sign.
fn rounds(action: &Action<'_>) -> bool {
    action.takes_few_bits() && !action.compares()
}

/// What lies behind each value.
struct Ahead {
    /// Whether a linear layer, a product or what chooses its scale does.
    product: Vec<bool>,
    /// Whether a sum or what chooses its scale does, without a product on the way.
    sum: Vec<bool>,
    /// Whether what chooses its scale does, likewise.
    function: Vec<bool>,
}

impl Ahead {
    fn of(items: &[Item]) -> Self {
        let [mut product, mut sum, mut function] = [(); 3].map(|()| vec![false; items.len() + 1]);
        for (index, item) in items.iter().enumerate().rev() {
            let (action, takes) = (&item.action, item.action.takes_few_bits());
            let (chooses, behind) = (action.chooses_scale(), index + 1);
            for &value in &item.inputs {
                product[value] |= rounds(action) || !takes && product[behind];
                sum[value] |= chooses || matches!(action, Action::Add) || !takes && sum[behind];
                function[value] |= chooses || !takes && function[behind];
            }
        }
        Self { product, sum, function }
    }
}

/// Whether differences of each value are taken before it meets a layer or a product: behind a rescale, too, which may be computed with what follows.
fn differences(items: &[Item], users: &[Vec<usize>]) -> Vec<bool> {
    let mut differences = vec![false; users.len()];
    differences[items.len()] = true;
    for value in (0..items.len()).rev() {
        differences[value] = users[value].iter().any(|&user| match &items[user].action {
            Action::Max(_) => true,
            Action::Elementwise(op) if op.takes_differences() => true,
            // What follows a comparison may be computed with its rescale.
            action => !rounds(action) && differences[user + 1],
        });
    }
    differences
}

/// The layers whose sums reach a whole square without a rescale.
fn squared(items: &[Item], users: &[Vec<usize>], rescaled: &[bool], whole: &[bool]) -> Vec<bool> {
    let mut reaches = vec![false; items.len() + 1];
    for value in (0..=items.len()).rev() {
        let squares =
            |&user: &usize| whole[user] || (!items[user].action.takes_few_bits() && reaches[user + 1]);
        reaches[value] = !rescaled[value] && users[value].iter().any(squares);
    }
    let layers = items.iter().zip(&reaches[1..]);
    layers.map(|(item, reaches)| *reaches && matches!(item.action, Action::Layer { .. })).collect()
}

/// The layers that take something computed from a whole square.
fn behind_squares(items: &[Item], rescaled: &[bool], whole: &[bool]) -> Vec<bool> {
    let mut carries = vec![false; items.len() + 1];
    let mut layers = vec![false; items.len()];
    for (index, item) in items.iter().enumerate() {
        let takes = item.inputs.iter().any(|&input| carries[input] && !rescaled[input]);
        layers[index] = takes && matches!(item.action, Action::Layer { .. });
        carries[index + 1] = whole[index] || (takes && !item.action.takes_few_bits());
    }
    layers
}

/// Joins the inputs and the output of every item into one group; only rescales lie between groups, and what chooses its scale.
fn group(items: &[Item], rescaled: &[bool]) -> (Vec<usize>, Vec<usize>, usize) {
    let values = rescaled.len();
    // Slot v is value v as made, slot values + v the same behind its rescale.
    let behind = |value: usize| if rescaled[value] { values + value } else { value };
    let mut parent: Vec<usize> = (0..2 * values).collect();
    for (index, item) in items.iter().enumerate().filter(|(_, item)| !item.action.chooses_scale()) {
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
