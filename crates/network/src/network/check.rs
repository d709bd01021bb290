//! What makes a network sound: order, shapes, rings and attributes. Files may come from anyone.

use std::collections::BTreeSet;

use super::repeats::{self, MAX_NODES, MAX_VISITS};
use super::{FixedOp, InputScale, MAX_BIAS_BITS, MAX_FACTOR, NetworkInput, PublicNetwork};
use crate::CompileError;
use crate::movement;
use crate::product::Matrices;
use crate::tensor::element_count;
use crate::window::{MAX_AXIS, MAX_WEIGHTS};

/// The largest number of elements of one value.
const MAX_ELEMENTS: usize = 1 << 24;
/// The largest number of elements of all values. Limits on memory are lower but for a few networks.
const MAX_ELEMENTS_IN_ALL: usize = 1 << 30;

/// Checks everything but limits and bounds.
pub(super) fn check(network: &PublicNetwork) -> Result<(), CompileError> {
    check_input(network.input())?;
    let nodes = network.nodes();
    if nodes.is_empty() {
        return Err(wrong("the output", "it needs nodes"));
    }
    let counts = repeats::counts(nodes.len(), network.repeats());
    if let Some((nodes, most)) =
        counts.into_iter().zip([MAX_NODES, MAX_VISITS]).find(|(nodes, most)| nodes > most)
    {
        return Err(CompileError::TooManyNodes { nodes, most });
    }
    let mut names = BTreeSet::new();
    let mut elements = network.input().len();
    for (index, node) in nodes.iter().enumerate() {
        if node.name.is_empty() || node.name.len() > 1024 || !names.insert(&node.name) {
            return Err(wrong(&format!("node {index}"), "its name is empty, too long or taken"));
        }
        check_node(network, index).map_err(|reason| wrong(&node.name, &reason))?;
        elements += node.len();
        if elements > MAX_ELEMENTS_IN_ALL {
            let node = node.name.clone();
            return Err(CompileError::TooManyElements { node, elements, most: MAX_ELEMENTS_IN_ALL });
        }
    }
    check_uses(network)
}

/// Refuses shifts that leave a ring no room for any value.
pub(super) fn check_limits(network: &PublicNetwork) -> Result<(), CompileError> {
    match (0..=network.nodes().len()).find(|&value| network.limit(value) < 0) {
        None => Ok(()),
        Some(value) => {
            let place = value.checked_sub(1).map_or("the input", |node| &network.nodes()[node].name);
            Err(wrong(place, "the rescales behind it drop more bits than its ring has room for"))
        }
    }
}

/// Checks the input alone.
pub(super) fn check_input(input: &NetworkInput) -> Result<(), CompileError> {
    check_shape(&input.shape)
        .map_err(|reason| CompileError::Network { place: "the input".to_owned(), reason })?;
    let limit = input.accumulator.limit(0);
    let in_ring = (-limit..=0).contains(&input.low.into()) && (0..=limit).contains(&input.high.into());
    if !in_ring || !is_sound(input) {
        return Err(wrong("the input", "its scale or its range is not usable"));
    }
    let features = input.features.as_ref().map_or(Ok(()), |features| features.check(&input.shape));
    features.map_err(|reason| wrong("the input", &reason))
}

/// Whether a stated range is one, and the integers are its ends; features have none.
fn is_sound(input: &NetworkInput) -> bool {
    let InputScale::Stated { low, high, .. } = input.scale else { return true };
    if input.features.is_some() {
        return false;
    }
    let unit = input.scale.unit();
    // A NaN is nowhere.
    let is_range = (f64::MIN..=0.0).contains(&low) && (0.0..=f64::MAX).contains(&high);
    let ends = [(low, input.low), (high, input.high)];
    let are_ends = ends.iter().all(|&(real, end)| input.scale.nearest(real) == end);
    is_range && unit.is_normal() && unit > 0.0 && are_ends
}

/// Checks node `index` against the values before it.
fn check_node(network: &PublicNetwork, index: usize) -> Result<(), String> {
    let node = &network.nodes()[index];
    let (least, most) = node.op.arity();
    if !(least..=most).contains(&node.inputs.len()) || node.inputs.iter().any(|&value| value > index) {
        let inputs = &node.inputs;
        return Err(format!("it takes the values {inputs:?}, of which {least} to {most} must lie before it"));
    }
    let inputs: Vec<&[usize]> = node.inputs.iter().map(|&value| network.shape(value)).collect();
    check_shape(&node.shape)?;
    let shape = output_shape(&node.op, &inputs, &node.shape)?;
    if shape != node.shape {
        return Err(format!("its shape is {:?}, the operator gives {shape:?}", node.shape));
    }
    let (before, after) = (network.accumulator(node.inputs[0]), node.accumulator);
    let changes = node.inputs.iter().any(|&value| network.accumulator(value) != after);
    match node.op {
        FixedOp::Rescale { .. } | FixedOp::Narrow | FixedOp::MatrixProduct { .. }
            if before.factors().or(after.factors()).is_some() =>
        {
            Err("values modulo products of primes have no such operator".to_owned())
        }
        FixedOp::Rescale { shift } if shift >= before.bits() => {
            Err(format!("a shift of {shift} bits is too large"))
        }
        FixedOp::Rescale { .. } => Ok(()),
        FixedOp::Narrow if before.is_power_of_two() && after.is_power_of_two() => {
            if after.bits() <= before.bits() { Ok(()) } else { Err("its ring is no smaller one".to_owned()) }
        }
        FixedOp::Narrow => Err("only rings modulo powers of two have smaller ones in them".to_owned()),
        _ if changes && !node.op.changes_ring() => {
            Err("only Rescale, Narrow and Function may change the ring".to_owned())
        }
        FixedOp::Add { factors } => factors.into_iter().try_for_each(check_factor),
        FixedOp::Scale { factor } => check_factor(factor),
        FixedOp::Bias { bits } if bits > MAX_BIAS_BITS => {
            Err(format!("{bits} bits of what it adds are more than {MAX_BIAS_BITS}"))
        }
        _ => node.op.elementwise().map_or(Ok(()), |op| op.check(before, after)),
    }
}

/// Refuses values that nothing uses.
fn check_uses(network: &PublicNetwork) -> Result<(), CompileError> {
    let used: BTreeSet<usize> = network.nodes().iter().flat_map(|node| node.inputs.iter().copied()).collect();
    match (0..network.nodes().len()).find(|value| !used.contains(value)) {
        Some(0) => Err(wrong("the input", "no node uses it")),
        Some(value) => Err(wrong(&network.nodes()[value - 1].name, "no node uses its value")),
        None => Ok(()),
    }
}

/// The shape that an operator gives; where shapes are its only attribute it gives the `wanted` one.
fn output_shape(op: &FixedOp, inputs: &[&[usize]], wanted: &[usize]) -> Result<Vec<usize>, String> {
    let input = inputs[0];
    match op {
        FixedOp::Conv2d(geometry) => geometry.output(input),
        FixedOp::Linear { outputs, .. } if input.len() == 1 && *outputs <= MAX_WEIGHTS / input[0] => {
            Ok(vec![*outputs])
        }
        FixedOp::Linear { .. } => {
            Err(format!("needs a vector and at most {MAX_WEIGHTS} weights, got shape {input:?}"))
        }
        FixedOp::SumPool(window) | FixedOp::MaxPool(window) => {
            let &[channels, height, width] = input else {
                return Err(format!("needs an input of shape [channels, height, width], got {input:?}"));
            };
            let [height, width] = window.output([height, width])?;
            Ok(vec![channels, height, width])
        }
        FixedOp::Reshape if element_count(wanted) == element_count(input) => Ok(wanted.to_vec()),
        FixedOp::Reshape => Err(format!("cannot reshape {input:?} to {wanted:?}")),
        FixedOp::Transpose { axes } => movement::transpose(input, axes),
        FixedOp::Slice { starts, steps } => movement::slice(input, starts, wanted, steps),
        FixedOp::Pad { before } => {
            let after = |axis: usize| {
                let rest = wanted.get(axis)?.checked_sub(input[axis])?;
                rest.checked_sub(*before.get(axis)?)
            };
            let after: Option<Vec<usize>> = (0..input.len()).map(after).collect();
            let after = after.ok_or_else(|| format!("cannot pad {input:?} to {wanted:?} with {before:?}"))?;
            movement::pad(input, before, &after)
        }
        FixedOp::Concat { axis } => movement::concat(inputs, *axis),
        FixedOp::Add { .. } | FixedOp::Mul if inputs[0] != inputs[1] => {
            Err(format!("the shapes {:?} and {:?} differ", inputs[0], inputs[1]))
        }
        FixedOp::MatrixProduct { inner } => {
            let matrices = Matrices::of(inputs[0], inputs[1])?;
            if matrices.inner != *inner {
                return Err(format!(
                    "sums of {inner} products do not fit matrices of {} columns",
                    matrices.inner
                ));
            }
            Ok(matrices.product_shape())
        }
        // Sums, products, and what works on each element alone.
        _ => Ok(input.to_vec()),
    }
}

fn check_factor(factor: i64) -> Result<(), String> {
    if factor != 0 && (-MAX_FACTOR..=MAX_FACTOR).contains(&factor) {
        return Ok(());
    }
    Err(format!("the factor {factor} is 0 or beyond {MAX_FACTOR}"))
}

fn check_shape(shape: &[usize]) -> Result<(), String> {
    let axes_fit =
        !shape.is_empty() && shape.len() <= 8 && shape.iter().all(|size| (1..=MAX_AXIS).contains(size));
    if axes_fit && element_count(shape).is_some_and(|count| count <= MAX_ELEMENTS) {
        return Ok(());
    }
    Err(format!("the shape {shape:?} is empty or too large"))
}

fn wrong(place: &str, reason: &str) -> CompileError {
    CompileError::Network { place: place.to_owned(), reason: reason.to_owned() }
}
