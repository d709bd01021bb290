//! The factors that make up for an average's padding, where no layer took them, become slices, one factor for each, and their join.
//!
//! They are the same in all channels and in a few rectangles, and follow from the window alone: so they may be public, and cost no layer.

use lanner_network::{CompileError, Tensor};

use super::{Draft, average, constant};
use crate::graph::{Node, Op, infer};

/// More rectangles than this are left to a layer.
const MOST: usize = 16;

/// Splits all of them.
pub(super) fn split(draft: &mut Draft) -> Result<(), CompileError> {
    while let Some((index, cuts, values)) = (0..draft.graph.nodes.len()).find_map(|index| find(draft, index))
    {
        let nodes = joined(draft, index, &cuts, &values)?;
        draft.graph.nodes.splice(index..=index, nodes);
        draft.shapes = infer(&draft.graph, &draft.tensors)?;
    }
    Ok(())
}

/// Where rectangles begin, by row and by column; behind the last, where the image ends.
type Cuts = [Vec<usize>; 2];

/// Factors to split: their node, their rectangles, and those of one channel.
fn find(draft: &Draft, index: usize) -> Option<(usize, Cuts, Vec<f32>)> {
    let (Op::MulConstant { .. }, &[channels, height, width]) =
        (&draft.graph.nodes[index].op, draft.input_shape(index))
    else {
        return None;
    };
    let pool = draft.producer(&draft.graph.nodes[index].inputs[0])?;
    let values = average::divisors(draft, pool)?;
    let same = |a: &f32, b: &f32| a.to_bits() == b.to_bits();
    let all = values.iter().cycle().take(channels * values.len());
    if !constant::values_of(draft, index).ok()?.iter().zip(all).all(|(a, b)| same(a, b)) {
        return None;
    }
    let at = |row: usize, column: usize| &values[row * width + column];
    let row_changes = |row: &usize| !same(at(*row, 0), at(row - 1, 0));
    let column_changes = |column: &usize| !same(at(0, *column), at(0, column - 1));
    let ends = |changes: Vec<usize>, end: usize| [vec![0], changes, vec![end]].concat();
    let cuts = [
        ends((1..height).filter(row_changes).collect(), height),
        ends((1..width).filter(column_changes).collect(), width),
    ];
    let count: usize = cuts.iter().map(|cuts| cuts.len() - 1).product();
    (2..=MOST).contains(&count).then_some((index, cuts, values))
}

/// The nodes that take the place of node `index`: the last has its name.
fn joined(draft: &mut Draft, index: usize, cuts: &Cuts, values: &[f32]) -> Result<Vec<Node>, CompileError> {
    let Node { name, inputs, .. } = draft.graph.nodes[index].clone();
    let &[channels, _, width] = draft.input_shape(index) else { return Ok(Vec::new()) };
    let (mut nodes, mut bands) = (Vec::new(), Vec::new());
    for rows in cuts[0].windows(2) {
        let mut parts = Vec::new();
        for columns in cuts[1].windows(2) {
            let (row, column) = (rows[0], columns[0]);
            let part = draft.fresh_name(format!("{name}/{row}.{column}/part"));
            let slice = Op::Slice {
                starts: vec![0, row, column],
                sizes: vec![channels, rows[1] - row, columns[1] - column],
                steps: vec![1; 3],
            };
            nodes.push(Node { name: part.clone(), op: slice, inputs: inputs.clone() });
            let factor = values[row * width + column];
            if factor.to_bits() == 1.0_f32.to_bits() {
                parts.push(part);
                continue;
            }
            let value = draft.add_tensor(&format!("{name}/{row}.{column}"), Tensor::vector(vec![factor]))?;
            let scaled = draft.fresh_name(format!("{name}/{row}.{column}"));
            let multiply = Op::MulConstant { value };
            nodes.push(Node { name: scaled.clone(), op: multiply, inputs: vec![part] });
            parts.push(scaled);
        }
        let band = draft.fresh_name(format!("{name}/{}", rows[0]));
        nodes.push(Node { name: band.clone(), op: Op::Concat { axis: 2 }, inputs: parts });
        bands.push(band);
    }
    nodes.push(Node { name, op: Op::Concat { axis: 1 }, inputs: bands });
    Ok(nodes)
}
