//! The prepared graph as items that fixed point has, with numbered values.

use std::collections::BTreeMap;

use super::calibrate::Seen;
use crate::CompileError;
use crate::graph::{Node, Op, conv_geometry};
use crate::network::{FixedOp, MAX_SLOPE_SHIFT};
use crate::pass::{Draft, uniform};
use crate::window::{ConvGeometry, Window};

/// One operator of the prepared graph. Value 0 is the input, value i + 1 the output of item i.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) action: Action,
    pub(super) inputs: Vec<usize>,
    pub(super) shape: Vec<usize>,
    /// Its calibrated output.
    pub(super) seen: Seen,
}

/// What an item does.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// A linear layer: the graph's node, with its geometry if it is a convolution.
    Layer {
        node: usize,
        geometry: Option<ConvGeometry>,
    },
    /// The mean over windows: summed now, divided by the area in the scale.
    Mean(Window),
    Max(Window),
    Relu,
    /// The slope below zero, `numerator / 2^shift`.
    Leaky {
        numerator: i64,
        shift: u32,
    },
    /// The upper bound, in real units.
    ClipAbove(f32),
    Square,
    Add,
    /// One real factor for all elements, neither 0 nor infinite.
    Factor(f64),
    /// An operator that moves elements.
    Move(FixedOp),
}

impl Action {
    /// Whether a circuit computes it.
    pub(super) const fn is_nonlinear(&self) -> bool {
        matches!(self, Self::Max(_) | Self::Relu | Self::Leaky { .. } | Self::ClipAbove(_))
    }

    /// Whether it wants an input of few bits: its output has many more than its input.
    pub(super) const fn multiplies(&self) -> bool {
        matches!(self, Self::Layer { .. } | Self::Square)
    }

    /// Whether it joins values, which must come at related scales.
    pub(super) const fn joins(&self) -> bool {
        matches!(self, Self::Add | Self::Move(FixedOp::Concat { .. }))
    }

    /// How much larger the integers of its output are for the same real values.
    pub(super) const fn growth(&self) -> f64 {
        match self {
            Self::Mean(window) => window.area() as f64,
            _ => 1.0,
        }
    }

    /// The real value of a unit of output over that of a unit of input, where it follows from the operator.
    pub(super) const fn unit(&self) -> f64 {
        match self {
            Self::Mean(window) => 1.0 / window.area() as f64,
            Self::Factor(factor) => factor.abs(),
            _ => 1.0,
        }
    }
}

/// Translates the graph.
///
/// # Errors
/// [`CompileError::UnsupportedOp`] naming the first node that fixed point does not have.
pub(super) fn items(draft: &Draft, seen: &[Seen], activation_bits: u32) -> Result<Vec<Item>, CompileError> {
    let mut items: Vec<Item> = Vec::with_capacity(draft.graph.nodes.len());
    let mut values = BTreeMap::from([(draft.graph.inputs[0].name.as_str(), 0)]);
    for (index, node) in draft.graph.nodes.iter().enumerate() {
        let (shape, seen) = (draft.shapes[&node.name].clone(), seen[index + 1]);
        let mut inputs: Vec<usize> = node.inputs.iter().map(|name| values[name.as_str()]).collect();
        for (suffix, action) in translate(draft, index, activation_bits)? {
            let name = format!("{}{suffix}", node.name);
            items.push(Item { name, action, inputs, shape: shape.clone(), seen });
            inputs = vec![items.len()];
        }
        values.insert(&node.name, items.len());
    }
    if !items.iter().any(|item| matches!(item.action, Action::Layer { .. })) {
        return Err(CompileError::NoLayer);
    }
    Ok(items)
}

/// The actions of a node, each with a suffix to the node's name.
fn translate(
    draft: &Draft,
    index: usize,
    activation_bits: u32,
) -> Result<Vec<(&'static str, Action)>, CompileError> {
    let node = &draft.graph.nodes[index];
    let input = draft.shapes[&node.inputs[0]].as_slice();
    let one = |action| Ok(vec![("", action)]);
    let moved = |op| Ok(vec![("", Action::Move(op))]);
    match &node.op {
        Op::Conv { .. } | Op::MatMul { .. } => {
            one(Action::Layer { node: index, geometry: conv_geometry(node, &draft.tensors)? })
        }
        Op::Relu => one(Action::Relu),
        Op::Clip { min: Some(0.0), max } => {
            let mut actions = vec![("", Action::Relu)];
            actions.extend(max.map(|max| ("/max", Action::ClipAbove(max))));
            Ok(actions)
        }
        Op::Clip { min, .. } => {
            let attribute = min.map_or_else(|| "no min".to_owned(), |min| format!("min = {min}"));
            Err(unsupported(node, attribute, "use min = 0, as in ReLU6, or a Relu"))
        }
        Op::LeakyRelu { alpha } if (0.0..=1.0).contains(alpha) => {
            let (numerator, shift) = slope(f64::from(*alpha), activation_bits);
            one(Action::Leaky { numerator, shift })
        }
        Op::LeakyRelu { alpha } => {
            Err(unsupported(node, format!("alpha = {alpha}"), "use an alpha between 0 and 1"))
        }
        &Op::MaxPool { kernel, strides, pads } => one(Action::Max(Window { kernel, strides, pads })),
        // The passes left averages over whole windows alone.
        &Op::AveragePool { kernel, strides, pads, .. } => one(Action::Mean(Window { kernel, strides, pads })),
        Op::GlobalAveragePool => {
            one(Action::Mean(Window { kernel: [input[1], input[2]], strides: [1, 1], pads: [0; 4] }))
        }
        Op::Flatten | Op::Reshape { .. } => moved(FixedOp::Reshape),
        Op::Transpose { axes } => moved(FixedOp::Transpose { axes: axes.clone() }),
        Op::Slice { starts, steps, .. } => {
            moved(FixedOp::Slice { starts: starts.clone(), steps: steps.clone() })
        }
        Op::Pad { before, .. } => moved(FixedOp::Pad { before: before.clone() }),
        Op::Concat { axis } => moved(FixedOp::Concat { axis: *axis }),
        Op::Square => one(Action::Square),
        Op::Add => one(Action::Add),
        Op::MulConstant { value } => match uniform(draft.tensors.of_node(&node.name, value)?.data()) {
            Some(factor) => one(Action::Factor(f64::from(factor))),
            None => Err(unfolded(node)),
        },
        Op::AddConstant { .. } | Op::BatchNorm { .. } => Err(unfolded(node)),
        Op::Mul => Err(unsupported(
            node,
            "two different computed values".to_owned(),
            "multiply by constants, or a value by itself, only",
        )),
        Op::Softmax | Op::ArgMax => {
            Err(unsupported(node, "its place in the graph".to_owned(), "keep it at the graph's end only"))
        }
    }
}

/// The fraction of the fewest bits whose error is below a quarter of an activation's unit over its range.
fn slope(alpha: f64, activation_bits: u32) -> (i64, u32) {
    let tolerance = f64::from(activation_bits + 2).exp2().recip();
    let rounded = |shift: u32| (alpha * f64::from(shift).exp2()).round();
    let close = |shift: &u32| (rounded(*shift) / f64::from(*shift).exp2() - alpha).abs() <= tolerance;
    let shift = (0..MAX_SLOPE_SHIFT).find(close).unwrap_or(MAX_SLOPE_SHIFT);
    (rounded(shift) as i64, shift)
}

fn unfolded(node: &Node) -> CompileError {
    unsupported(
        node,
        "a constant that no layer can take".to_owned(),
        "put it next to a Conv, Gemm or MatMul, one value per channel",
    )
}

fn unsupported(node: &Node, attribute: String, fix: &'static str) -> CompileError {
    CompileError::UnsupportedOp { node: node.name.clone(), operator: node.op.name(), attribute, fix }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_close_and_short() {
        assert_eq!(slope(0.0, 8), (0, 0));
        assert_eq!(slope(0.5, 8), (1, 1));
        assert_eq!(slope(1.0, 8), (1, 0));
        assert_eq!(slope(0.01, 8), (5, 9));
        for alpha in [0.1, 0.2, 0.3, 1.0 / 3.0, 0.99] {
            let (numerator, shift) = slope(alpha, 8);
            assert!((numerator as f64 / f64::from(shift).exp2() - alpha).abs() <= 1.0 / 1024.0);
        }
    }
}
