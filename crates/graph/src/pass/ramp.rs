//! Ramps as a `Relu` and a tail: far from 0 only the first is left, however large the input is.

use lanner_network::{CompileError, Tensor};

use super::Draft;
use crate::elementwise::{Function, Ramp};
use crate::graph::{Node, Op, infer};

/// Takes every ramp apart.
pub(super) fn take_apart(draft: &mut Draft) -> Result<(), CompileError> {
    for index in (0..draft.graph.nodes.len()).rev() {
        if let Op::Ramp(ramp) = draft.graph.nodes[index].op.clone() {
            let nodes = parts(draft, index, ramp)?;
            draft.graph.nodes.splice(index..=index, nodes);
        }
    }
    draft.shapes = infer(&draft.graph, &draft.tensors)?;
    Ok(())
}

/// The nodes in place of the ramp at `index`: the last has its name.
fn parts(draft: &mut Draft, index: usize, ramp: Ramp) -> Result<Vec<Node>, CompileError> {
    let Node { name, inputs, .. } = draft.graph.nodes[index].clone();
    let node = |name: &String, op, inputs: &[&String]| Node {
        name: name.clone(),
        op,
        inputs: inputs.iter().map(|&input| input.clone()).collect(),
    };
    let [relu, tail, scaled] =
        ["relu", "tail", "scaled"].map(|part| draft.fresh_name(format!("{name}/{part}")));
    let mut nodes = vec![node(&relu, Op::Relu, &[&inputs[0]])];
    let mut line = relu;
    if let Some(gain) = ramp.gain() {
        let gain = Tensor::vector(vec![gain]);
        let value = draft.add_tensor(&format!("{name}/gain"), gain)?;
        nodes.push(node(&scaled, Op::MulConstant { value }, &[&line]));
        line = scaled;
    }
    nodes.push(node(&tail, Op::Function(Function::Tail(ramp)), &[&inputs[0]]));
    nodes.push(node(&name, Op::Add, &[&line, &tail]));
    Ok(nodes)
}
