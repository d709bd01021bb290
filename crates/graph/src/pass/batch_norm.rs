//! Batch normalisation at inference is a constant factor and a constant term per channel.

use lanner_network::{CompileError, Tensor};

use super::Draft;
use crate::float::batch_norm_affine;
use crate::graph::{Node, Op, infer};

/// Replaces each `BatchNorm` by `MulConstant` and `AddConstant`; the latter keeps the node's name.
pub(super) fn expand(draft: &mut Draft) -> Result<(), CompileError> {
    while let Some(index) = draft.graph.nodes.iter().position(|node| matches!(node.op, Op::BatchNorm { .. }))
    {
        expand_one(draft, index)?;
    }
    draft.shapes = infer(&draft.graph, &draft.tensors)?;
    Ok(())
}

fn expand_one(draft: &mut Draft, index: usize) -> Result<(), CompileError> {
    let Node { name, op, inputs } = draft.graph.nodes[index].clone();
    let Op::BatchNorm { scale, bias, mean, var, eps } = op else { return Ok(()) };
    let tensor = |tensor: &str| draft.tensors.of_node(&name, tensor).map(Tensor::data);
    let (scale, shift) =
        batch_norm_affine(tensor(&scale)?, tensor(&bias)?, tensor(&mean)?, tensor(&var)?, eps);
    // One value per first axis, with axes of size 1 behind it so that it broadcasts.
    let mut shape = vec![1; draft.input_shape(index).len()];
    shape[0] = scale.len();
    let constant = |data| Tensor::new(shape.clone(), data).unwrap_or_else(|| Tensor::vector(Vec::new()));
    let factor = draft.add_tensor(&format!("{name}/scale"), constant(scale))?;
    let term = draft.add_tensor(&format!("{name}/shift"), constant(shift))?;
    let factor_name = draft.fresh_name(format!("{name}/scale"));
    draft.shapes.insert(factor_name.clone(), draft.input_shape(index).to_vec());
    let add = Node { name, op: Op::AddConstant { value: term }, inputs: vec![factor_name.clone()] };
    let multiply = Node { name: factor_name, op: Op::MulConstant { value: factor }, inputs };
    draft.graph.nodes.splice(index..=index, [multiply, add]);
    Ok(())
}
