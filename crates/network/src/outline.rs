//! What a network would be, as far as operators and shapes tell.

use crate::{CompileError, FixedOp};

/// A node of the prepared graph.
#[derive(Clone, Debug, PartialEq)]
pub struct OutlinedNode {
    /// Its name.
    pub name: String,
    /// The shape of its first input.
    pub input: Vec<usize>,
    /// The shape of its value.
    pub shape: Vec<usize>,
    /// The layer or the pool that it becomes; `None` for what takes no more than its elements do.
    pub op: Option<FixedOp>,
}

/// A graph's nodes as they will be computed, and what of them cannot be.
#[derive(Debug, Default, PartialEq)]
pub struct Outline {
    /// The nodes that fixed point has, in order.
    pub nodes: Vec<OutlinedNode>,
    /// For each of the others, which node it is and why.
    pub refused: Vec<CompileError>,
    /// How many scores there are.
    pub outputs: usize,
}
