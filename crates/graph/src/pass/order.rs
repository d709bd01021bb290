//! Max-pooling before the activation: pool(relu(x)) = relu(pool(x)), since the activation never decreases.
//!
//! The activation then runs once per window instead of once per element. Gazelle and FALCON both rely on it.

use lanner_network::CompileError;

use super::Draft;
use crate::elementwise::Elementwise;
use crate::graph::Op;

/// Moves every `MaxPool` before the activations that it directly follows.
pub(super) fn pool_before_activation(draft: &mut Draft) -> Result<(), CompileError> {
    while let Some((activation, pool)) = find(draft) {
        draft.exchange(activation, pool)?;
    }
    Ok(())
}

fn find(draft: &Draft) -> Option<(usize, usize)> {
    let is_pool = |index: &usize| matches!(draft.graph.nodes[*index].op, Op::MaxPool { .. });
    (0..draft.graph.nodes.len()).filter(is_pool).find_map(|pool| {
        let before = draft.chained_before(pool)?;
        let activation = draft.graph.nodes[before].op.elementwise();
        activation.is_some_and(Elementwise::never_decreases).then_some((before, pool))
    })
}
