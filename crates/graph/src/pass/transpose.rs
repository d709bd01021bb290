//! Transpositions move towards the output: past operators that work on each element alone, until two meet and become one or none.
//!
//! Exports from channels-last frameworks wrap every layer in a pair. Moving elements costs the parties nothing, but an activation
//! between two transpositions hides the layers around it from the other passes.

use lanner_network::movement::Moves;
use lanner_network::{CompileError, Tensor};

use super::{Draft, tidy};
use crate::graph::{Node, Op, infer};

/// Moves and joins transpositions until none can move.
pub(super) fn push_back(draft: &mut Draft) -> Result<(), CompileError> {
    while step(draft)? {
        tidy::remove_unused(draft);
        draft.shapes = infer(&draft.graph, &draft.tensors)?;
    }
    Ok(())
}

fn step(draft: &mut Draft) -> Result<bool, CompileError> {
    for index in 0..draft.graph.nodes.len() {
        let Some(axes) = transposed_inputs(draft, index) else {
            if removes_identity(draft, index) {
                return Ok(true);
            }
            continue;
        };
        match &draft.graph.nodes[index].op {
            Op::Transpose { axes: second } => {
                let joined = second.iter().map(|&axis| axes[axis]).collect();
                take_sources(draft, index);
                draft.graph.nodes[index].op = Op::Transpose { axes: joined };
            }
            _ => pass(draft, index, axes)?,
        }
        return Ok(true);
    }
    Ok(false)
}

/// The axes, if the node can work on the values before the transpositions that make all its inputs.
fn transposed_inputs(draft: &Draft, index: usize) -> Option<Vec<usize>> {
    let node = &draft.graph.nodes[index];
    let passes = node.op.elementwise().is_some()
        || matches!(
            node.op,
            Op::Transpose { .. } | Op::AddConstant { .. } | Op::MulConstant { .. } | Op::Add | Op::Mul
        );
    let mut all = node.inputs.iter().map(|input| match &draft.graph.nodes[draft.producer(input)?].op {
        Op::Transpose { axes } => Some(axes),
        _ => None,
    });
    let first = if passes { all.next()?? } else { return None };
    all.all(|axes| axes == Some(first)).then(|| first.clone())
}

/// Makes the node use what its inputs transpose.
fn take_sources(draft: &mut Draft, index: usize) {
    let inputs = draft.graph.nodes[index].inputs.clone();
    let source = |input: &String| {
        draft.producer(input).map_or_else(|| input.clone(), |node| draft.graph.nodes[node].inputs[0].clone())
    };
    draft.graph.nodes[index].inputs = inputs.iter().map(source).collect();
}

/// The node works on the values before the transposition, which now follows it.
fn pass(draft: &mut Draft, index: usize, axes: Vec<usize>) -> Result<(), CompileError> {
    let Node { name, op, .. } = draft.graph.nodes[index].clone();
    if let Op::AddConstant { value } | Op::MulConstant { value } = &op {
        let constant = draft.tensors.of_node(&name, value)?;
        let untransposed = untranspose(constant, draft.input_shape(index), &axes);
        let tensor = draft.add_tensor(&format!("{name}/transposed"), untransposed)?;
        if let Op::AddConstant { value } | Op::MulConstant { value } = &mut draft.graph.nodes[index].op {
            *value = tensor;
        }
    }
    take_sources(draft, index);
    let behind = draft.fresh_name(format!("{name}/transpose"));
    draft.rewire(&name, &behind);
    let node = Node { name: behind, op: Op::Transpose { axes }, inputs: vec![name] };
    draft.graph.nodes.insert(index + 1, node);
    Ok(())
}

/// A constant that broadcasts to the transposed `shape`, for the value before the transposition.
fn untranspose(constant: &Tensor, shape: &[usize], axes: &[usize]) -> Tensor {
    let lead = shape.len() - constant.shape().len().min(shape.len());
    let mut aligned = vec![1; lead];
    aligned.extend(constant.shape());
    let mut back = vec![0; axes.len()];
    axes.iter().enumerate().for_each(|(to, &from)| back[from] = to);
    let data = Moves::transpose(&aligned, &back).apply(&[constant.data()]);
    let moved = back.iter().map(|&axis| aligned[axis]).collect();
    Tensor::new(moved, data).unwrap_or_else(|| constant.clone())
}

/// Removes the transposition at `index` if it changes nothing; whether it was one.
fn removes_identity(draft: &mut Draft, index: usize) -> bool {
    let node = &draft.graph.nodes[index];
    let Op::Transpose { axes } = &node.op else { return false };
    let unchanged = axes.iter().enumerate().all(|(to, &from)| to == from);
    let needed = draft.graph.output == node.name && draft.producer(&node.inputs[0]).is_none();
    if unchanged && !needed {
        draft.remove(index);
    }
    unchanged && !needed
}
