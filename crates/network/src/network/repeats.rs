//! The parts of a network that repeat: written once, with how far on each iteration is.
//!
//! In memory every node is there. In a file a part that repeats is its first iteration and, for each of its nodes, what is added to its numbers
//! from one iteration to the next: to the values that it reads, to the numbers in its name, to the places where a slice begins.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash};

use serde::{Deserialize, Serialize};

use super::{Calibrated, FixedNode, FixedOp, LinearWeights};
use crate::CompileError;
use crate::repeats::{self, Listed, Repeat, numbers_of, with_numbers, without_numbers};

/// The most nodes that a network may have, each that repeats counted once.
pub(crate) const MAX_NODES: usize = 1 << 14;
/// The most nodes of a network, every iteration counted.
pub(crate) const MAX_VISITS: usize = 1 << 17;
/// Bytes of all nodes, every iteration counted, very roughly: a small file must not become what no machine holds.
const MAX_BYTES: usize = 1 << 27;

/// A part that repeats, as files have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    /// Where its first node is among those written.
    first: usize,
    /// Iterations.
    times: usize,
    /// For each node of an iteration, what is added to its numbers for the next.
    advances: Vec<Vec<i64>>,
}

/// What counts the nodes of a network, those that repeat once, and all.
pub(super) fn counts(nodes: usize, repeats: &[Repeat]) -> [usize; 2] {
    [nodes.saturating_sub(repeats.iter().map(Repeat::spared).sum()), nodes]
}

/// The nodes of a network with what has to be the same in all iterations.
struct Measured<'n> {
    nodes: &'n [FixedNode],
    weights: &'n BTreeMap<usize, LinearWeights>,
    /// Of each value, the input's first.
    seen: &'n [Calibrated],
}

impl Listed for Measured<'_> {
    fn count(&self) -> usize {
        self.nodes.len()
    }

    fn hash(&self, entry: usize, hasher: &mut DefaultHasher) {
        let FixedNode { name, op, shape, accumulator, .. } = &self.nodes[entry];
        (without_numbers(name), op.name(), shape, accumulator).hash(hasher);
    }

    fn is_alike(&self, one: usize, other: usize) -> bool {
        let [a, b] = [one, other].map(|entry| &self.nodes[entry]);
        let [x, y] = [one, other].map(|entry| &self.seen[entry + 1]);
        let is_same_op = match (&a.op, &b.op) {
            (FixedOp::Slice { steps, .. }, FixedOp::Slice { steps: other, .. }) => steps == other,
            (op, other) => op == other,
        };
        is_same_op
            && (a.inputs.len(), &a.shape, a.accumulator) == (b.inputs.len(), &b.shape, b.accumulator)
            && without_numbers(&a.name) == without_numbers(&b.name)
            && Calibrated { low: 0, high: 0, ..*x } == Calibrated { low: 0, high: 0, ..*y }
            && self.weights.get(&one) == self.weights.get(&other)
    }

    fn numbers(&self, entry: usize) -> Vec<i64> {
        numbers(&self.nodes[entry])
    }
}

/// What repeats in a network; nothing where no part takes what its iteration before made.
pub(super) fn find(
    nodes: &[FixedNode],
    weights: &BTreeMap<usize, LinearWeights>,
    seen: &[Calibrated],
) -> Vec<Repeat> {
    let list = Measured { nodes, weights, seen };
    let found = repeats::find(&list);
    let carries = |repeat: &Repeat| repeats::carries(&list, |entry| nodes[entry].inputs.len(), repeat);
    if found.iter().any(carries) { found } else { Vec::new() }
}

/// Gives every value of a part that repeats the range that it has over all iterations.
pub(super) fn join_ranges(repeats: &[Repeat], seen: &mut [Calibrated]) {
    for &Repeat { first, length, times } in repeats {
        for entry in first..first + length {
            let all = || (0..times).map(move |iteration| entry + 1 + iteration * length);
            let low = all().map(|value| seen[value].low).min().unwrap_or_default();
            let high = all().map(|value| seen[value].high).max().unwrap_or_default();
            all().for_each(|value| seen[value] = Calibrated { low, high, ..seen[value] });
        }
    }
}

/// Whether an entry is of an iteration behind the first, and where its counterpart in the first is.
pub(super) fn counterpart(repeats: &[Repeat], entry: usize) -> Option<usize> {
    let of = |repeat: &Repeat| {
        let [iteration, place] = repeat.place(entry)?;
        (iteration > 0).then_some(repeat.first + place)
    };
    let before = repeats.partition_point(|repeat| repeat.first <= entry);
    repeats[..before].last().and_then(of)
}

/// The nodes as they are written: those of first iterations, and what repeats.
pub(super) fn write(nodes: Vec<FixedNode>, repeats: &[Repeat]) -> (Vec<FixedNode>, Vec<Written>) {
    let mut spared = 0;
    let written = |&Repeat { first, length, times }: &Repeat| {
        let advance = |entry: usize| {
            let [one, next] = [entry, entry + length].map(|entry| numbers(&nodes[entry]));
            one.into_iter().zip(next).map(|(one, next)| next - one).collect()
        };
        let advances = (first..first + length).map(advance).collect();
        let written = Written { first: first - spared, times, advances };
        spared += length * (times - 1);
        written
    };
    let written = repeats.iter().map(written).collect();
    let is_written = |(entry, node)| counterpart(repeats, entry).is_none().then_some(node);
    (nodes.into_iter().enumerate().filter_map(is_written).collect(), written)
}

/// The nodes that were written, each iteration with its own. The counts are bounded before anything is made.
///
/// # Errors
/// [`CompileError::TooManyNodes`] for too many; [`CompileError::Network`] for parts that lie beyond the nodes or overlap, and for numbers that no node has.
pub(super) fn read(
    nodes: Vec<FixedNode>,
    written: &[Written],
) -> Result<(Vec<FixedNode>, Vec<Repeat>), CompileError> {
    let wrong = |index: usize, reason: &str| CompileError::Network {
        place: format!("repeat {index}"),
        reason: reason.to_owned(),
    };
    let (mut visits, mut bytes, mut end) = (nodes.len(), 0_usize, 0);
    for (index, Written { first, times, advances }) in written.iter().enumerate() {
        let body = first.checked_add(advances.len()).and_then(|end| nodes.get(*first..end));
        let body = body.filter(|body| !body.is_empty() && *first >= end && *times > 1);
        let body =
            body.ok_or_else(|| wrong(index, "it is empty, lies beyond the nodes, or overlaps another"))?;
        if body.iter().zip(advances).any(|(node, advances)| numbers(node).len() != advances.len()) {
            return Err(wrong(index, "its advances are not those of its nodes' numbers"));
        }
        end = first + body.len();
        visits = visits.saturating_add(body.len().saturating_mul(times - 1));
        bytes =
            body.iter().fold(bytes, |bytes, node| bytes.saturating_add(size(node).saturating_mul(times - 1)));
    }
    if visits > MAX_VISITS {
        return Err(CompileError::TooManyNodes { nodes: visits, most: MAX_VISITS });
    }
    if bytes > MAX_BYTES {
        return Err(wrong(0, &format!("its nodes take {bytes} bytes, at most {MAX_BYTES} are allowed")));
    }
    let (mut made, mut repeats) = (Vec::with_capacity(visits), Vec::with_capacity(written.len()));
    let mut rest = nodes.into_iter();
    let mut taken = 0;
    for (index, Written { first, times, advances }) in written.iter().enumerate() {
        made.extend(rest.by_ref().take(first - taken));
        let (start, length) = (made.len(), advances.len());
        made.extend(rest.by_ref().take(length));
        taken = first + length;
        for entry in start..start + length * (times - 1) {
            let next = advanced(&made[entry], &advances[(entry - start) % length]);
            made.push(
                next.ok_or_else(|| wrong(index, "an advance leaves the numbers that a node may have"))?,
            );
        }
        repeats.push(Repeat { first: start, length, times: *times });
    }
    made.extend(rest);
    Ok((made, repeats))
}

/// The numbers of a node that may be others in the next iteration: what it reads, what is in its name, where a slice begins.
fn numbers(node: &FixedNode) -> Vec<i64> {
    let mut numbers: Vec<i64> = node.inputs.iter().map(|input| *input as i64).collect();
    numbers.extend(numbers_of(&node.name));
    if let FixedOp::Slice { starts, .. } = &node.op {
        numbers.extend(starts.iter().map(|start| *start as i64));
    }
    numbers
}

/// The same node an iteration on.
fn advanced(node: &FixedNode, advances: &[i64]) -> Option<FixedNode> {
    let mut numbers = numbers(node).into_iter().zip(advances).map(|(number, by)| number.checked_add(*by));
    let mut places = |of: &[usize]| -> Option<Vec<usize>> {
        of.iter().map(|_| usize::try_from(numbers.next()??).ok()).collect()
    };
    let inputs = places(&node.inputs)?;
    let count = numbers_of(&node.name).len();
    let in_name: Vec<i64> = numbers.by_ref().take(count).collect::<Option<_>>()?;
    let name = with_numbers(&node.name, in_name)?;
    let mut op = node.op.clone();
    if let FixedOp::Slice { starts, .. } = &mut op {
        for start in starts {
            *start = usize::try_from(numbers.next()??).ok()?;
        }
    }
    Some(FixedNode { name, op, inputs, shape: node.shape.clone(), accumulator: node.accumulator })
}

/// Bytes that a node takes, very roughly.
fn size(node: &FixedNode) -> usize {
    let FixedNode { name, op, inputs, shape, .. } = node;
    let mut numbers = inputs.len() + shape.len();
    if let FixedOp::Function(function) = op {
        numbers += function.polynomials.iter().map(|polynomial| 3 + polynomial.len()).sum::<usize>();
        numbers += function.factors.as_ref().map_or(0, |factors| factors.values.len());
    }
    256 + name.len() + 8 * numbers
}
