//! The parts of a network that is made of another one.

use std::collections::BTreeMap;

use super::{Calibrated, FixedNode, LinearWeights};

/// Nodes, with what calibration saw of each value, the input first.
pub(super) struct Rebuilt {
    pub(super) nodes: Vec<FixedNode>,
    pub(super) seen: Vec<Calibrated>,
    pub(super) weights: BTreeMap<usize, LinearWeights>,
}

impl Rebuilt {
    /// No nodes yet.
    pub(super) fn new(input: Calibrated) -> Self {
        Self { nodes: Vec::new(), seen: vec![input], weights: BTreeMap::new() }
    }

    /// Appends a node; its value.
    pub(super) fn push(&mut self, node: FixedNode, seen: Calibrated) -> usize {
        self.nodes.push(node);
        self.seen.push(seen);
        self.nodes.len()
    }
}
