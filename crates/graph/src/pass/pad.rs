//! Zeros around an image become the padding of the convolution behind them.

use lanner_network::CompileError;

use super::Draft;
use crate::graph::{Op, infer};

/// Joins every `Pad` of height and width with the convolution that alone uses it.
pub(super) fn join(draft: &mut Draft) -> Result<(), CompileError> {
    while let Some((index, more)) = find(draft) {
        let behind = draft.only_consumer(&draft.graph.nodes[index].name);
        if let Some(Op::Conv { pads, .. }) = behind.map(|node| &mut draft.graph.nodes[node].op) {
            pads.iter_mut().zip(more).for_each(|(pad, more)| *pad += more);
        }
        draft.remove(index);
    }
    draft.shapes = infer(&draft.graph, &draft.tensors)?;
    Ok(())
}

/// A padding that a convolution can take: its node, and the zeros at the top, left, bottom and right.
fn find(draft: &Draft) -> Option<(usize, [usize; 4])> {
    draft.graph.nodes.iter().enumerate().find_map(|(index, node)| {
        let Op::Pad { before, after } = &node.op else { return None };
        let behind = draft.only_consumer(&node.name)?;
        let (&[0, top, left], &[0, bottom, right]) = (before.as_slice(), after.as_slice()) else {
            return None;
        };
        matches!(draft.graph.nodes[behind].op, Op::Conv { .. }).then_some((index, [top, left, bottom, right]))
    })
}
