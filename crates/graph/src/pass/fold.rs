//! Constants into the weights and biases of linear layers.
//!
//! Each function takes a constant over the whole shape of the layer's output or input and returns whether the layer could take it.
//! Weights may be shared by several nodes, so a changed tensor always gets a name of its own.

use lanner_network::kernel::{add_columns, add_conv};
use lanner_network::shape::{area, image, per_channel_or_whole};
use lanner_network::{CompileError, Tensor};

use super::Draft;
use super::constant::per_channel;
use crate::graph::{Op, conv_geometry};

/// `factor * (W x + b)`: needs one factor per output channel.
pub(super) fn scale_outputs(draft: &mut Draft, index: usize, factor: &[f32]) -> Result<bool, CompileError> {
    let weight = weight_of(draft, index)?;
    let scaled: Vec<f32> = match draft.graph.nodes[index].op {
        Op::Conv { .. } => {
            let Some(factors) = per_channel(factor, weight.shape()[0]) else { return Ok(false) };
            let whole = per_channel_or_whole(&factors, weight.shape());
            multiply(weight.data(), whole.into_iter())
        }
        _ => multiply(weight.data(), factor.iter().copied().cycle()),
    };
    let bias = bias_of(draft, index)?.map(|bias| multiply(&bias, factor.iter().copied()));
    let shape = weight.shape().to_vec();
    set_weight(draft, index, shape, scaled)?;
    if let Some(bias) = bias {
        set_bias(draft, index, &bias)?;
    }
    Ok(true)
}

/// `W x + b + term`: always possible, since a bias may differ at every output element.
pub(super) fn shift_outputs(draft: &mut Draft, index: usize, term: &[f32]) -> Result<bool, CompileError> {
    let bias = match bias_of(draft, index)? {
        Some(bias) => bias.iter().zip(term).map(|(b, t)| (f64::from(*b) + f64::from(*t)) as f32).collect(),
        None => term.to_vec(),
    };
    set_bias(draft, index, &bias)?;
    Ok(true)
}

/// `W (factor * x) + b`: needs one factor per input channel.
pub(super) fn scale_inputs(draft: &mut Draft, index: usize, factor: &[f32]) -> Result<bool, CompileError> {
    let weight = weight_of(draft, index)?;
    let shape = weight.shape().to_vec();
    let scaled = match draft.graph.nodes[index].op {
        Op::Conv { groups, .. } => {
            let channels = draft.input_shape(index)[0];
            let Some(factors) = per_channel(factor, channels) else { return Ok(false) };
            let (group_in, group_out) = (shape[1], shape[0] / groups);
            let taps = shape[2] * shape[3];
            let of_weight = |at: usize| {
                let (out_channel, i) = (at / (group_in * taps), at / taps % group_in);
                factors[out_channel / group_out * group_in + i]
            };
            multiply(weight.data(), (0..weight.data().len()).map(of_weight))
        }
        _ => multiply(weight.data(), per_channel_or_whole(factor, &shape).into_iter()),
    };
    set_weight(draft, index, shape, scaled)?;
    Ok(true)
}

/// `W (x + term) + b`: the bias takes `W term`, which differs at a padded border.
pub(super) fn shift_inputs(draft: &mut Draft, index: usize, term: &[f32]) -> Result<bool, CompileError> {
    let weight = weight_of(draft, index)?;
    let mut image_of_term = vec![0.0; draft.output_shape(index).iter().product()];
    match conv_geometry(&draft.graph.nodes[index], &draft.tensors)? {
        Some(geometry) => {
            let (input, output) = (image(draft.input_shape(index)), area(draft.output_shape(index)));
            add_conv(term, input, weight.data(), &geometry, output, &mut image_of_term);
        }
        None => add_columns(term, weight.data(), &mut image_of_term),
    }
    shift_outputs(draft, index, &image_of_term)
}

/// `W y + b` where row j of W takes `factor_j` times element `column_j` of the layer's new input: each column's rows add up.
pub(super) fn scatter_rows(
    draft: &mut Draft,
    index: usize,
    rows: &[(usize, f64)],
    columns: usize,
) -> Result<(), CompileError> {
    let weight = weight_of(draft, index)?;
    let outputs = weight.shape()[1];
    let mut sums = vec![0.0_f64; columns * outputs];
    for (row, &(column, factor)) in weight.data().chunks_exact(outputs).zip(rows) {
        let sums = &mut sums[column * outputs..][..outputs];
        sums.iter_mut().zip(row).for_each(|(sum, &weight)| *sum += factor * f64::from(weight));
    }
    set_weight(draft, index, vec![columns, outputs], sums.into_iter().map(|sum| sum as f32).collect())
}

fn multiply(values: &[f32], factors: impl Iterator<Item = f32>) -> Vec<f32> {
    values.iter().zip(factors).map(|(value, factor)| (f64::from(*value) * f64::from(factor)) as f32).collect()
}

fn weight_of(draft: &Draft, index: usize) -> Result<Tensor, CompileError> {
    let node = &draft.graph.nodes[index];
    match &node.op {
        Op::Conv { weight, .. } | Op::MatMul { weight, .. } => {
            draft.tensors.of_node(&node.name, weight).cloned()
        }
        _ => Err(CompileError::UnknownTensor { node: node.name.clone(), tensor: "weight".to_owned() }),
    }
}

/// The bias of every output element, or `None` without a bias.
fn bias_of(draft: &Draft, index: usize) -> Result<Option<Vec<f32>>, CompileError> {
    let node = &draft.graph.nodes[index];
    match &node.op {
        Op::Conv { bias: Some(bias), .. } | Op::MatMul { bias: Some(bias), .. } => {
            let bias = draft.tensors.of_node(&node.name, bias)?;
            Ok(Some(per_channel_or_whole(bias.data(), draft.output_shape(index))))
        }
        _ => Ok(None),
    }
}

fn set_weight(
    draft: &mut Draft,
    index: usize,
    shape: Vec<usize>,
    data: Vec<f32>,
) -> Result<(), CompileError> {
    let base = format!("{}/weight", draft.graph.nodes[index].name);
    let tensor = Tensor::new(shape, data).unwrap_or_else(|| Tensor::vector(Vec::new()));
    let name = draft.add_tensor(&base, tensor)?;
    if let Op::Conv { weight, .. } | Op::MatMul { weight, .. } = &mut draft.graph.nodes[index].op {
        *weight = name;
    }
    Ok(())
}

/// Sets the bias of every output element, kept as one per channel where that is enough.
fn set_bias(draft: &mut Draft, index: usize, values: &[f32]) -> Result<(), CompileError> {
    let shape = draft.output_shape(index).to_vec();
    let tensor = match per_channel(values, shape[0]) {
        Some(channels) => Tensor::vector(channels),
        None => Tensor::new(shape, values.to_vec()).unwrap_or_else(|| Tensor::vector(Vec::new())),
    };
    let name = draft.add_tensor(&format!("{}/bias", draft.graph.nodes[index].name), tensor)?;
    if let Op::Conv { bias, .. } | Op::MatMul { bias, .. } = &mut draft.graph.nodes[index].op {
        *bias = Some(name);
    }
    Ok(())
}
