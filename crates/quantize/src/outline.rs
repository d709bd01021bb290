//! What fixed point would make of a graph, as far as its operators and shapes tell: before any sample is looked at.

use lanner_graph::{Graph, pass};
use lanner_network::{CompileError, FixedOp, Outline, OutlinedNode, Tensors};

use super::item::{Action, translate};
use super::steps;
use super::trees::TreeGraph;

/// Outlines a graph, without the constants in front of its first layer if these are to be published.
///
/// # Errors
/// [`CompileError`] if the graph or its tensors are damaged, if it has no layer, or if there is nothing to publish.
pub fn outline(
    graph: &Graph,
    tensors: &Tensors,
    public_preprocessing: bool,
) -> Result<Outline, CompileError> {
    if let Some(trees) = TreeGraph::of(graph, tensors)? {
        return Ok(trees.outline());
    }
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
            Ok(Action::Layer { geometry: None, .. }) => {
                Some(FixedOp::Linear { outputs: shape[0], picks: false })
            }
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
