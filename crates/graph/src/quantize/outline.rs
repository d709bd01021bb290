//! What fixed point would make of a graph, as far as its operators and shapes tell: before any sample is looked at.

use super::item::{Action, translate};
use super::steps;
use crate::CompileError;
use crate::graph::Graph;
use crate::network::FixedOp;
use crate::pass;
use crate::tensor::Tensors;

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

/// Outlines a graph, without the constants in front of its first layer if these are to be published.
///
/// # Errors
/// [`CompileError`] if the graph or its tensors are damaged, if it has no layer, or if there is nothing to publish.
pub fn outline(
    graph: &Graph,
    tensors: &Tensors,
    public_preprocessing: bool,
) -> Result<Outline, CompileError> {
    let (draft, _) = if public_preprocessing {
        let stripped = pass::strip(graph, tensors)?;
        pass::prepare(&stripped.graph, &stripped.tensors)?
    } else {
        pass::prepare(graph, tensors)?
    };
    steps::check_count(&draft)?;
    let mut outline =
        Outline { outputs: draft.shapes[&draft.graph.output].iter().product(), ..Outline::default() };
    for (index, node) in draft.graph.nodes.iter().enumerate() {
        let (name, shape) = (node.name.clone(), draft.shapes[&node.name].clone());
        let input = draft.shapes[&node.inputs[0]].clone();
        let op = match translate(&draft, index) {
            Ok(Action::Layer { geometry: Some(geometry), .. }) => Some(FixedOp::Conv2d(geometry)),
            Ok(Action::Layer { geometry: None, .. }) => Some(FixedOp::Linear { outputs: shape[0] }),
            Ok(Action::Bias { .. }) => Some(FixedOp::Bias { bits: 0 }),
            Ok(Action::Mean(window)) => Some(FixedOp::SumPool(window)),
            Ok(Action::Max(window)) => Some(FixedOp::MaxPool(window)),
            // A scale takes it.
            Ok(Action::Factor(_)) => continue,
            Ok(_) => None,
            Err(error) => {
                outline.refused.push(error);
                continue;
            }
        };
        outline.nodes.push(OutlinedNode { name, input, shape, op });
    }
    let is_layer = |node: &OutlinedNode| {
        node.op.as_ref().is_some_and(|op| op.is_linear() || matches!(op, FixedOp::Bias { .. }))
    };
    if outline.refused.is_empty() && !outline.nodes.iter().any(is_layer) {
        return Err(CompileError::NoLayer);
    }
    Ok(outline)
}
