//! Constants that no neighbouring layer could take become layers: a depthwise convolution of one tap is a factor and a term.
//!
//! A single positive or negative factor for all elements stays: fixed point takes it into the scale.

use super::Draft;
use super::constant::{self, per_channel};
use crate::CompileError;
use crate::graph::{Node, Op, infer};
use crate::tensor::Tensor;

/// More channels than a layer of one tap each is worth.
const MAX_CHANNELS: usize = 1 << 14;

/// Turns factors, then the terms that are left, into layers.
pub(super) fn make_layers(draft: &mut Draft) -> Result<(), CompileError> {
    for terms in [false, true] {
        while let Some(index) = (0..draft.graph.nodes.len()).find(|&index| is_leftover(draft, index, terms)) {
            make_layer(draft, index)?;
            draft.shapes = infer(&draft.graph, &draft.tensors)?;
        }
        constant::fold(draft)?;
    }
    Ok(())
}

fn is_leftover(draft: &Draft, index: usize, terms: bool) -> bool {
    let node = &draft.graph.nodes[index];
    let channels = image_of(draft, index)[0];
    let values = constant::values_of(draft, index).unwrap_or_default();
    let fits = channels <= MAX_CHANNELS;
    match node.op {
        Op::AddConstant { .. } => fits && terms,
        Op::MulConstant { .. } => {
            fits && uniform(&values).is_none() && per_channel(&values, channels).is_some()
        }
        _ => false,
    }
}

/// The factor, if one for all elements that is not 0.
pub(crate) fn uniform(values: &[f32]) -> Option<f32> {
    let first = *values.first()?;
    (first.is_normal() && values.iter().all(|value| value.to_bits() == first.to_bits())).then_some(first)
}

/// The shape in which the layer works: an image's own, else one channel for each element.
fn image_of(draft: &Draft, index: usize) -> [usize; 3] {
    let shape = draft.input_shape(index);
    <[usize; 3]>::try_from(shape).unwrap_or([shape.iter().product(), 1, 1])
}

fn make_layer(draft: &mut Draft, index: usize) -> Result<(), CompileError> {
    let Node { name, op, inputs } = draft.graph.nodes[index].clone();
    let (shape, image) = (draft.input_shape(index).to_vec(), image_of(draft, index));
    let values = constant::values_of(draft, index)?;
    let channels = image[0];
    let (weight, bias) = match op {
        Op::AddConstant { .. } => {
            let bias = per_channel(&values, channels).map(Tensor::vector);
            (vec![1.0; channels], bias.or_else(|| Tensor::new(image.to_vec(), values)))
        }
        _ => (per_channel(&values, channels).unwrap_or_default(), None),
    };
    let weight = Tensor::new(vec![channels, 1, 1, 1], weight).unwrap_or_else(|| Tensor::vector(Vec::new()));
    let weight = draft.add_tensor(&format!("{name}/weight"), weight)?;
    let bias = bias.map(|bias| draft.add_tensor(&format!("{name}/bias"), bias)).transpose()?;
    let conv = Op::Conv { weight, bias, strides: [1, 1], pads: [0; 4], dilations: [1, 1], groups: channels };
    if shape == image {
        draft.graph.nodes[index].op = conv;
        return Ok(());
    }
    let (before, layer) =
        (draft.fresh_name(format!("{name}/image")), draft.fresh_name(format!("{name}/layer")));
    let nodes = [
        Node { name: before.clone(), op: Op::Reshape { shape: image.to_vec() }, inputs },
        Node { name: layer.clone(), op: conv, inputs: vec![before] },
        Node { name, op: Op::Reshape { shape }, inputs: vec![layer] },
    ];
    draft.graph.nodes.splice(index..=index, nodes);
    Ok(())
}
