//! What is multiplied with an inverse power, most often of itself, as by a normalisation: however small it is, the result is not, and so it keeps more bits.

use lanner_network::FixedOp;

use super::item::{Action, Item};

/// The most bits that it keeps beyond those of other values: what is as many times smaller than calibration's is as precise.
pub(super) const FINER_BITS: u32 = 4;

/// Whether each value is such a one: it is multiplied with an inverse power, or inverse powers are of its squares or of sums of it, or it is the input, or moved input, and
/// such a value is a sum of it and of others.
pub(super) fn normalised(items: &[Item<'_>], users: &[Vec<usize>]) -> Vec<bool> {
    let mut found = vec![false; items.len() + 1];
    let is_inverse = |item: &Item<'_>| {
        item.action.choosing().is_some_and(lanner_graph::elementwise::Elementwise::is_inverse)
    };
    for (index, item) in items.iter().enumerate().filter(|(_, item)| is_inverse(item)) {
        for value in behind(items, users, index + 1) {
            for &user in users[value].iter().filter(|&&user| items[user].action.is_product()) {
                items[user]
                    .inputs
                    .iter()
                    .filter(|&&input| input != value)
                    .for_each(|&input| found[input] = true);
            }
        }
        for value in before(items, item.inputs[0]) {
            let multiplied = value.checked_sub(1).map(|made| &items[made]);
            match multiplied.filter(|item| item.action.takes_few_bits()) {
                None => found[value] |= value == 0,
                Some(item) if item.action.is_square() || item.action.is_product() => {
                    item.inputs.iter().for_each(|&input| found[input] = true);
                }
                Some(_) => {}
            }
        }
    }
    let moved = behind_moves(items);
    let all: Vec<usize> = (0..found.len()).filter(|value| found[*value]).collect();
    for value in all.into_iter().flat_map(|value| before(items, value)).collect::<Vec<_>>() {
        found[value] |= moved[value];
    }
    found
}

/// Whether each item is an inverse power of sums that are 0 only where all is that its value is multiplied with: of squares, of magnitudes, of what a `Relu` leaves.
pub(super) fn vanishes(items: &[Item<'_>], users: &[Vec<usize>]) -> Vec<bool> {
    let is_product = |user: &&usize| items[**user].action.is_product();
    let of_item = |(index, item): (usize, &Item<'_>)| {
        if !item.action.choosing().is_some_and(lanner_graph::elementwise::Elementwise::is_inverse) {
            return false;
        }
        let zeros = zeros_of_sum(items, item.inputs[0]);
        let reached = behind(items, users, index + 1);
        let multiplied = |value: &usize| {
            let products = users[*value].iter().filter(is_product);
            products.flat_map(|&user| &items[user].inputs).filter(|input| *input != value).collect::<Vec<_>>()
        };
        let only_products = |value: &usize| {
            let user =
                |user: &usize| items[*user].action.is_product() || !items[*user].action.takes_few_bits();
            // An output is no factor.
            !users[*value].is_empty() && users[*value].iter().all(user)
        };
        reached.iter().all(only_products)
            && reached.iter().flat_map(multiplied).all(|&value| zeros.contains(&source(items, value)))
    };
    items.iter().enumerate().map(of_item).collect()
}

/// What is 0 wherever a sum, or a mean, is 0; nothing where terms may make up for one another.
fn zeros_of_sum(items: &[Item<'_>], mut value: usize) -> Vec<usize> {
    while let Some(item) = value.checked_sub(1).map(|made| &items[made]) {
        let (action, term) = (&item.action, source(items, value));
        if action.is_square() {
            return vec![source(items, item.inputs[0])];
        }
        if is_relu(item) {
            return vec![term];
        }
        if let Some(of) = magnitude_of(items, item) {
            return vec![term, source(items, of)];
        }
        let goes_on = match action {
            Action::Mean(_) | Action::Move(FixedOp::Reshape | FixedOp::Transpose { .. }) => true,
            Action::Factor(factor) => *factor > 0.0,
            _ => false,
        };
        if !goes_on {
            break;
        }
        value = item.inputs[0];
    }
    Vec::new()
}

/// What a sum is the magnitude of, if it is `2 relu(x) - x`.
fn magnitude_of(items: &[Item<'_>], sum: &Item<'_>) -> Option<usize> {
    let scaled = |input: usize, by: f64| {
        let item = &items[input.checked_sub(1)?];
        matches!(item.action, Action::Factor(factor) if factor.to_bits() == by.to_bits())
            .then(|| item.inputs[0])
    };
    let &[twice, less] = sum.inputs.as_slice() else { return None };
    let (bent, x) = (scaled(twice, 2.0)?, scaled(less, -1.0)?);
    let bent = &items[bent.checked_sub(1)?];
    let is_magnitude = matches!(sum.action, Action::Add) && is_relu(bent) && bent.inputs[0] == x;
    is_magnitude.then_some(x)
}

fn is_relu(item: &Item<'_>) -> bool {
    matches!(item.action, Action::Elementwise(op) if op.is_homogeneous() && op.eval(-1.0) == 0.0)
}

/// What a value is but for movements that leave every element.
fn source(items: &[Item<'_>], mut value: usize) -> usize {
    while let Some(item) = value.checked_sub(1).map(|made| &items[made])
        && matches!(item.action, Action::Move(FixedOp::Reshape | FixedOp::Transpose { .. }))
    {
        value = item.inputs[0];
    }
    value
}

/// A value and all that is computed from it up to what takes few bits.
fn behind(items: &[Item<'_>], users: &[Vec<usize>], value: usize) -> Vec<usize> {
    let mut reached = vec![value];
    let mut next = 0;
    while let Some(&value) = reached.get(next) {
        next += 1;
        for &user in users[value].iter().filter(|&&user| !items[user].action.takes_few_bits()) {
            if !reached.contains(&(user + 1)) {
                reached.push(user + 1);
            }
        }
    }
    reached
}

/// A value and all that it is computed from back to what takes few bits.
fn before(items: &[Item<'_>], value: usize) -> Vec<usize> {
    let mut reached = vec![value];
    let mut next = 0;
    while let Some(&value) = reached.get(next) {
        next += 1;
        let Some(item) = value.checked_sub(1).map(|made| &items[made]) else { continue };
        for &input in item.inputs.iter().filter(|_| !item.action.takes_few_bits()) {
            if !reached.contains(&input) {
                reached.push(input);
            }
        }
    }
    reached
}

/// Whether each value is the input, or computed from it alone without what takes few bits.
fn behind_moves(items: &[Item<'_>]) -> Vec<bool> {
    let mut moved = vec![true];
    for item in items {
        let goes_on = !item.action.takes_few_bits() && !item.action.joins();
        moved.push(goes_on && item.inputs.iter().all(|&input| moved[input]));
    }
    moved
}
