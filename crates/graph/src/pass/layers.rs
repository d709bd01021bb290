//! What moves or averages elements as part of layers, for networks whose values stay encrypted: there a layer is all that does so.

use lanner_network::{CompileError, Tensor};

use super::{Draft, constant, fold};
use crate::graph::{Op, infer};

/// Makes every mean over windows a convolution of each channel by itself, and gives every transposition before a dense layer to that layer.
///
/// # Errors
/// [`CompileError`] if the tensors are damaged.
pub fn make_all(draft: &mut Draft) -> Result<(), CompileError> {
    for index in 0..draft.graph.nodes.len() {
        match draft.graph.nodes[index].op.clone() {
            // The passes before left averages over whole windows alone.
            Op::AveragePool { kernel, strides, pads, .. } => make_layer(draft, index, kernel, strides, pads)?,
            Op::GlobalAveragePool => {
                let kernel = [draft.input_shape(index)[1], draft.input_shape(index)[2]];
                make_layer(draft, index, kernel, [1, 1], [0; 4])?;
            }
            Op::Transpose { axes } => give_transposition(draft, index, &axes)?,
            _ => {}
        }
    }
    draft.shapes = infer(&draft.graph, &draft.tensors)?;
    // A term in front of a mean that counts padding was no part of the mean; now it is one of a layer.
    constant::fold(draft)
}

/// The mean over windows as a convolution.
fn make_layer(
    draft: &mut Draft,
    index: usize,
    kernel: [usize; 2],
    strides: [usize; 2],
    pads: [usize; 4],
) -> Result<(), CompileError> {
    let (groups, area) = (draft.input_shape(index)[0], kernel[0] * kernel[1]);
    let weights = vec![1.0 / area as f32; groups * area];
    let weights = Tensor::new(vec![groups, 1, kernel[0], kernel[1]], weights)
        .unwrap_or_else(|| Tensor::vector(Vec::new()));
    let name = draft.graph.nodes[index].name.clone();
    let weight = draft.add_tensor(&format!("{name}/mean"), weights)?;
    draft.graph.nodes[index].op = Op::Conv { weight, bias: None, strides, pads, dilations: [1, 1], groups };
    Ok(())
}

/// Has the dense layer behind a transposition take its elements in the order before it, if nothing but changes of shape lies between.
fn give_transposition(draft: &mut Draft, index: usize, axes: &[usize]) -> Result<(), CompileError> {
    let mut behind = draft.only_consumer(&draft.graph.nodes[index].name);
    while let Some(at) =
        behind.filter(|&at| matches!(draft.graph.nodes[at].op, Op::Flatten | Op::Reshape { .. }))
    {
        behind = draft.only_consumer(&draft.graph.nodes[at].name);
    }
    let Some(dense) = behind.filter(|&at| {
        matches!(draft.graph.nodes[at].op, Op::MatMul { .. }) && draft.input_shape(at).len() == 1
    }) else {
        return Ok(());
    };
    let rows: Vec<(usize, f64)> =
        sources(draft.input_shape(index), axes).into_iter().map(|source| (source, 1.0)).collect();
    fold::scatter_rows(draft, dense, &rows, rows.len())?;
    draft.graph.nodes[index].op = Op::Reshape { shape: draft.output_shape(index).to_vec() };
    Ok(())
}

/// For each element of a transposed value, which element of the value it is.
fn sources(shape: &[usize], axes: &[usize]) -> Vec<usize> {
    let stride = |axis: usize| shape[axis + 1..].iter().product::<usize>();
    let mut sources = vec![0];
    for &axis in axes {
        sources = sources
            .iter()
            .flat_map(|source| (0..shape[axis]).map(move |at| source + at * stride(axis)))
            .collect();
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::sources;

    #[test]
    fn elements_of_a_transposed_value_are_found() {
        assert_eq!(sources(&[2, 3], &[1, 0]), [0, 3, 1, 4, 2, 5]);
        assert_eq!(sources(&[2, 2, 2], &[1, 2, 0]), [0, 4, 1, 5, 2, 6, 3, 7]);
    }
}
