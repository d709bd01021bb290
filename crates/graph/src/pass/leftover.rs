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

/// More channels than a term is worth a layer of.
const MAX_TERM_CHANNELS: usize = 1 << 14;

/// From so many channels on, factors that repeat are channels of their own, with an image turned round on either side.
const MANY_CHANNELS: usize = 1 << 14;

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
            || matches!(
                op,
                Op::Mul | Op::MatrixProduct | Op::Square | Op::Step | Op::Function(_) | Op::Ramp(_)
            )
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
/// channel for each run of equal values. None where these are too many channels for terms.
fn image_of(draft: &Draft, index: usize, values: &[f32]) -> Option<[usize; 3]> {
    let is_term = matches!(draft.graph.nodes[index].op, Op::AddConstant { .. });
    let own = <[usize; 3]>::try_from(draft.input_shape(index))
        .ok()
        .filter(|image| is_term || per_channel(values, image[0]).is_some());
    let run = longest_run(values);
    let image = own.unwrap_or([values.len() / run, run, 1]);
    (!is_term || image[0] <= MAX_TERM_CHANNELS).then_some(image)
}

/// The number of values after which factors of many channels repeat, if they do: those of features that are the same for all tokens.
fn period_of(image: [usize; 3], values: &[f32]) -> Option<usize> {
    let divisors = (1..=values.len().isqrt()).filter(|divisor| values.len().is_multiple_of(*divisor));
    let mut periods: Vec<usize> = divisors.flat_map(|divisor| [divisor, values.len() / divisor]).collect();
    periods.sort_unstable();
    let repeats = |period: &usize| {
        let pairs = values.iter().zip(&values[*period..]);
        pairs.into_iter().all(|(a, b)| a.to_bits() == b.to_bits())
    };
    periods.into_iter().filter(|_| image[0] > MANY_CHANNELS).find(repeats).filter(|period| *period < image[0])
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
    let is_factor = matches!(op, Op::MulConstant { .. });
    let period = if is_factor { period_of(image, &values) } else { None };
    let image = period.map_or(image, |period| [period, values.len() / period, 1]);
    let channels = image[0];
    let (weight, bias) = match op {
        Op::AddConstant { .. } => {
            let bias = per_channel(&values, channels).map(Tensor::vector);
            (vec![1.0; channels], bias.or_else(|| Tensor::new(image.to_vec(), values.clone())))
        }
        _ if period.is_some() => (values[..channels].to_vec(), None),
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
    let turned = Op::Transpose { axes: vec![1, 0] };
    let mut steps = vec![("image", Op::Reshape { shape: image.to_vec() }), ("layer", conv)];
    if let Some(period) = period {
        let rows = values.len() / period;
        steps.splice(0..0, [("rows", Op::Reshape { shape: vec![rows, period] }), ("turned", turned.clone())]);
        steps.extend([("columns", Op::Reshape { shape: vec![period, rows] }), ("back", turned)]);
    }
    let mut before = inputs;
    let mut nodes = Vec::new();
    for (step, op) in steps {
        let node = Node { name: draft.fresh_name(format!("{name}/{step}")), op, inputs: before };
        before = vec![node.name.clone()];
        nodes.push(node);
    }
    nodes.push(Node { name, op: Op::Reshape { shape }, inputs: before });
    draft.graph.nodes.splice(index..=index, nodes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{MANY_CHANNELS, longest_run, period_of};

    #[test]
    fn runs_are_equal_pieces_of_equal_values() {
        assert_eq!(longest_run(&[1.0; 6]), 6);
        assert_eq!(longest_run(&[1.0, 1.0, 2.0, 2.0, 3.0, 3.0]), 2);
        assert_eq!(longest_run(&[1.0, 1.0, 1.0, 1.0, 2.0, 2.0]), 2);
        assert_eq!(longest_run(&[1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]), 1);
        assert_eq!(longest_run(&[]), 1);
    }

    #[test]
    fn factors_of_features_repeat_token_by_token() {
        let of = |period: usize, rows: usize| -> Vec<f32> {
            (0..period * rows).map(|at| (at % period) as f32 + 1.0).collect()
        };
        let many = MANY_CHANNELS / 64 + 1;
        let image = |values: &[f32]| [values.len(), 1, 1];
        let period = |values: &[f32]| period_of(image(values), values);
        assert_eq!(period(&of(64, many)), Some(64));
        assert_eq!(period(&of(many, 64)), Some(many));
        // What repeats nowhere, and what is few.
        assert_eq!(period(&of(64 * many, 1)), None);
        assert_eq!(period(&of(64, 4)), None);
        let mut other = of(64, many);
        other[64 * many - 1] = 0.5;
        assert_eq!(period(&other), None);
        // Not worth turning an image round for.
        assert_eq!(period_of([64, many, 1], &of(64, many)), None);
    }
}
