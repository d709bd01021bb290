//! Constants that no neighbouring layer could take become layers: a depthwise convolution of one tap is a factor and a term.
//!
//! A single positive or negative factor for all elements stays: fixed point takes it into the scale. So do terms that the server may as well
//! add to its share. But where what is made of a term meets other values in a sum, a layer is worth its price: its scale may be any, and is
//! made to suit theirs.

use std::collections::BTreeSet;

use lanner_network::{CompileError, Tensor};

use super::constant::per_channel;
use super::{Draft, constant};
use crate::graph::{Node, Op, infer};

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
    let values = constant::values_of(draft, index).unwrap_or_default();
    match draft.graph.nodes[index].op {
        Op::AddConstant { .. } => {
            terms && image_of(draft, index, &values).is_some() && meets_others(draft, index)
        }
        Op::MulConstant { .. } => uniform(&values).is_none() && image_of(draft, index, &values).is_some(),
        _ => false,
    }
}

/// Whether what is made of a node's value enters a sum or a join with values that are not, before it is multiplied or a function of it taken.
fn meets_others(draft: &Draft, index: usize) -> bool {
    let mut made = BTreeSet::from([draft.graph.nodes[index].name.as_str()]);
    for Node { name, op, inputs } in &draft.graph.nodes[index + 1..] {
        let count = inputs.iter().filter(|input| made.contains(input.as_str())).count();
        if count == 0
            || op.is_linear()
            || matches!(op, Op::Mul | Op::MatrixProduct | Op::Square | Op::Function(_) | Op::Ramp(_))
        {
            continue;
        }
        if count < inputs.len() {
            return true;
        }
        made.insert(name);
    }
    false
}

/// The factor, if one for all elements that is not 0.
#[must_use]
pub fn uniform(values: &[f32]) -> Option<f32> {
    let first = *values.first()?;
    (first.is_normal() && values.iter().all(|value| value.to_bits() == first.to_bits())).then_some(first)
}

/// The shape in which a layer of one tap each can apply the values: an image's own, where factors are one per channel, else one
/// channel for each run of equal values. None where these are too many channels.
fn image_of(draft: &Draft, index: usize, values: &[f32]) -> Option<[usize; 3]> {
    let is_term = matches!(draft.graph.nodes[index].op, Op::AddConstant { .. });
    let own = <[usize; 3]>::try_from(draft.input_shape(index))
        .ok()
        .filter(|image| is_term || per_channel(values, image[0]).is_some());
    let run = longest_run(values);
    let image = own.unwrap_or([values.len() / run, run, 1]);
    (image[0] <= MAX_CHANNELS).then_some(image)
}

/// The largest length of equal pieces, from the first value on, in each of which all values are equal.
fn longest_run(values: &[f32]) -> usize {
    let changes = (1..values.len()).filter(|&at| values[at].to_bits() != values[at - 1].to_bits());
    changes.fold(values.len(), greatest_divisor).max(1)
}

const fn greatest_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

fn make_layer(draft: &mut Draft, index: usize) -> Result<(), CompileError> {
    let Node { name, op, inputs } = draft.graph.nodes[index].clone();
    let (shape, values) = (draft.input_shape(index).to_vec(), constant::values_of(draft, index)?);
    let Some(image) = image_of(draft, index, &values) else { return Ok(()) };
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

#[cfg(test)]
mod tests {
    use super::longest_run;

    #[test]
    fn runs_are_equal_pieces_of_equal_values() {
        assert_eq!(longest_run(&[1.0; 6]), 6);
        assert_eq!(longest_run(&[1.0, 1.0, 2.0, 2.0, 3.0, 3.0]), 2);
        assert_eq!(longest_run(&[1.0, 1.0, 1.0, 1.0, 2.0, 2.0]), 2);
        assert_eq!(longest_run(&[1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]), 1);
        assert_eq!(longest_run(&[]), 1);
    }
}
