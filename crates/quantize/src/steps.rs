//! The steps of recurrent layers, which are quantised alike: what calibration saw of a value in one step, it saw in all.
//!
//! So all steps have one set of scales, weights, tables, rings and shifts, and the network that is made of them repeats
//! ([`lanner_network::repeats`]). Graphs in which no part takes what it made before are quantised node by node.

use std::hash::{DefaultHasher, Hash};

use lanner_graph::Op;
use lanner_graph::pass::Draft;
use lanner_network::repeats::{Listed, Repeat};
use lanner_network::{CompileError, Tensor, repeats};

use super::calibrate::Seen;
use super::item::Item;

/// The most operations of a prepared graph, those that repeat counted once, and every one: a fourth of what networks may have, for each becomes a few
/// nodes. So a graph that is not refused before it is calibrated is not refused for its operations behind.
const MOST: [usize; 2] = [1 << 12, 1 << 15];

/// A prepared graph with the number of each value.
struct Nodes<'d> {
    draft: &'d Draft,
    /// Of each node, the values that it reads: value 0 is the input, value i + 1 what node i makes.
    inputs: Vec<Vec<usize>>,
}

impl<'d> Nodes<'d> {
    fn of(draft: &'d Draft) -> Self {
        let names = draft.graph.nodes.iter().map(|node| node.name.as_str());
        let names = std::iter::once(draft.graph.inputs[0].name.as_str()).chain(names);
        let places: std::collections::HashMap<&str, usize> =
            names.enumerate().map(|(place, name)| (name, place)).collect();
        let inputs = |node: &lanner_graph::Node| {
            node.inputs.iter().filter_map(|name| places.get(name.as_str()).copied()).collect()
        };
        Self { draft, inputs: draft.graph.nodes.iter().map(inputs).collect() }
    }

    fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.draft.tensors.get(name)
    }

    /// What repeats, if a part takes what its iteration before made.
    fn repeats(&self) -> Vec<Repeat> {
        let found = repeats::find(self);
        let carries = |repeat: &Repeat| repeats::carries(self, |entry| self.inputs[entry].len(), repeat);
        if found.iter().any(carries) { found } else { Vec::new() }
    }
}

impl Listed for Nodes<'_> {
    fn count(&self) -> usize {
        self.inputs.len()
    }

    fn hash(&self, entry: usize, hasher: &mut DefaultHasher) {
        let node = &self.draft.graph.nodes[entry];
        (node.op.name(), &self.draft.shapes[&node.name], self.inputs[entry].len()).hash(hasher);
    }

    fn is_alike(&self, one: usize, other: usize) -> bool {
        let [a, b] = [one, other].map(|entry| &self.draft.graph.nodes[entry]);
        if self.draft.shapes[&a.name] != self.draft.shapes[&b.name] {
            return false;
        }
        let mut op = b.op.clone();
        // Tensors are the same where their values are.
        for (mine, theirs) in tensors(&mut a.op.clone()).into_iter().zip(tensors(&mut op)) {
            if mine != theirs {
                if self.tensor(mine).is_none() || self.tensor(mine) != self.tensor(theirs) {
                    return false;
                }
                theirs.clone_from(mine);
            }
        }
        if let (Op::Slice { starts, .. }, Op::Slice { starts: other, .. }) = (&a.op, &mut op) {
            other.clone_from(starts);
        }
        a.op == op
    }

    fn numbers(&self, entry: usize) -> Vec<i64> {
        let starts = match &self.draft.graph.nodes[entry].op {
            Op::Slice { starts, .. } => starts.as_slice(),
            _ => &[],
        };
        self.inputs[entry].iter().chain(starts).map(|number| *number as i64).collect()
    }
}

/// The names of an operator's tensors.
fn tensors(op: &mut Op) -> Vec<&mut String> {
    match op {
        Op::Conv { weight, bias, .. } | Op::MatMul { weight, bias } => {
            std::iter::once(weight).chain(bias).collect()
        }
        Op::BatchNorm { scale, bias, mean, var, .. } => vec![scale, bias, mean, var],
        Op::AddConstant { value } | Op::MulConstant { value } => vec![value],
        _ => Vec::new(),
    }
}

/// Has the steps of recurrent layers quantised alike: each value's ranges become those of all steps.
pub(super) fn join(items: &mut [Item<'_>], draft: &Draft) {
    for Repeat { first, length, times } in Nodes::of(draft).repeats() {
        for entry in first..first + length {
            let all = || (0..times).map(move |iteration| entry + iteration * length);
            let seen = all().map(|item| items[item].seen).reduce(Seen::hull).unwrap_or(items[entry].seen);
            for item in all() {
                (items[item].seen, items[item].class) = (seen, entry);
            }
        }
    }
}

/// Checks that a graph has no more operations than a network may, those that repeat counted once.
///
/// # Errors
/// [`CompileError::TooManyNodes`] if it has.
pub(super) fn check_count(draft: &Draft) -> Result<(), CompileError> {
    let nodes = draft.graph.nodes.len();
    if nodes <= MOST[0] {
        return Ok(());
    }
    let once = nodes - Nodes::of(draft).repeats().iter().map(Repeat::spared).sum::<usize>();
    match [once, nodes].into_iter().zip(MOST).find(|(nodes, most)| nodes > most) {
        Some((nodes, most)) => Err(CompileError::TooManyNodes { nodes, most }),
        None => Ok(()),
    }
}
