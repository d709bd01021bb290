//! What is never negative needs no `Relu`: that of a sum of two rectified values, for one, as residual networks may have.

use std::collections::HashSet;

use super::Draft;
use crate::elementwise::Clip;
use crate::graph::Node;
use crate::graph::Op;

/// Takes away every `Relu` whose input is never negative, whatever the network's input and its weights are.
pub(super) fn leave_out_relu(draft: &mut Draft) {
    let mut never_negative: HashSet<String> = HashSet::new();
    for index in 0..draft.graph.nodes.len() {
        let node = draft.graph.nodes[index].clone();
        let kept = node.inputs.iter().all(|input| never_negative.contains(input));
        if matches!(node.op, Op::Relu) && kept {
            draft.rewire(&node.name, &node.inputs[0]);
        } else if makes_none(&node) || keeps_none(&node.op) && kept {
            never_negative.insert(node.name);
        }
    }
}

/// Whether an operator's output is at least 0 whatever its inputs are.
fn makes_none(node: &Node) -> bool {
    match &node.op {
        Op::Relu | Op::Square | Op::Step => true,
        Op::Clip(Clip { min: Some(min), .. }) => *min >= 0.0,
        Op::Mul => node.inputs[0] == node.inputs[1],
        _ => false,
    }
}

/// Whether an operator's output is at least 0 where its inputs are.
const fn keeps_none(op: &Op) -> bool {
    matches!(
        op,
        Op::MaxPool { .. }
            | Op::AveragePool { .. }
            | Op::GlobalAveragePool
            | Op::Flatten
            | Op::Reshape { .. }
            | Op::Transpose { .. }
            | Op::Slice { .. }
            | Op::Pad { .. }
            | Op::Concat { .. }
            | Op::Add
            | Op::Mul
    )
}
