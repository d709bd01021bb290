//! Unused nodes, squares, and the graph's last Softmax and `ArgMax`.

use std::collections::BTreeSet;

use lanner_network::{CompileError, Head};

use super::Draft;
use crate::graph::Op;

/// Removes nodes that the output does not need.
pub(super) fn remove_unused(draft: &mut Draft) {
    let mut needed = BTreeSet::from([draft.graph.output.clone()]);
    // Nodes come after the values they use, so one walk from the end finds all.
    for node in draft.graph.nodes.iter().rev() {
        if needed.contains(&node.name) {
            needed.extend(node.inputs.iter().cloned());
        }
    }
    draft.graph.nodes.retain(|node| needed.contains(&node.name));
}

/// A product of a value with itself is a square.
pub(super) fn name_squares(draft: &mut Draft) {
    for node in &mut draft.graph.nodes {
        if node.op == Op::Mul && node.inputs[0] == node.inputs[1] {
            node.op = Op::Square;
            node.inputs.truncate(1);
        }
    }
}

/// Removes `Softmax`, `ArgMax` or both from the graph's end. Only the output policy says what of them is computed.
///
/// # Errors
/// [`CompileError::UnsupportedOp`] if they stand elsewhere or their axis is not the only one.
pub(super) fn take_head(draft: &mut Draft) -> Result<Head, CompileError> {
    let mut head = Head::Scores;
    for (op, seen) in [(Op::ArgMax, Head::ArgMax), (Op::Softmax, Head::Softmax)] {
        let Some(last) = draft.producer(&draft.graph.output).filter(|&last| draft.graph.nodes[last].op == op)
        else {
            continue;
        };
        let shape = draft.input_shape(last);
        if shape.len() != 1 {
            return Err(refuse(
                draft,
                last,
                format!("an input of shape {shape:?}"),
                "flatten its input to one axis",
            ));
        }
        draft.remove(last);
        head = if head == Head::Scores { seen } else { head };
    }
    match draft.graph.nodes.iter().position(|node| matches!(node.op, Op::Softmax | Op::ArgMax)) {
        Some(index) => Err(refuse(draft, index, "later nodes".to_owned(), "keep it at the graph's end only")),
        None => Ok(head),
    }
}

fn refuse(draft: &Draft, index: usize, attribute: String, fix: &'static str) -> CompileError {
    let node = &draft.graph.nodes[index];
    CompileError::UnsupportedOp { node: node.name.clone(), operator: node.op.name(), attribute, fix }
}
