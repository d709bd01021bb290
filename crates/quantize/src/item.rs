//! The prepared graph as items that fixed point has, with numbered values.

use std::collections::BTreeMap;

use lanner_graph::elementwise::Elementwise;
use lanner_graph::graph::conv_geometry;
use lanner_graph::pass::{Draft, uniform};
use lanner_graph::{Node, Op};
use lanner_network::{CompileError, ConvGeometry, ENCRYPTED_VALUES, FixedOp, Window};

use super::calibrate::Seen;
use crate::elementwise::{Lowered, lowered};

/// One operator of the prepared graph. Value 0 is the input, value i + 1 the output of item i.
#[derive(Clone, Debug)]
pub(super) struct Item<'a> {
    pub(super) name: String,
    /// The operator's name in messages.
    pub(super) operator: &'static str,
    pub(super) action: Action<'a>,
    pub(super) inputs: Vec<usize>,
    pub(super) shape: Vec<usize>,
    /// Its calibrated output.
    pub(super) seen: Seen,
    /// The first item of those that are quantised as one, as those of all steps of a recurrent layer.
    pub(super) class: usize,
}

/// What an item does.
#[derive(Clone, Debug)]
pub(super) enum Action<'a> {
    /// A linear layer: the graph's node, with its geometry if it is a convolution.
    Layer {
        node: usize,
        geometry: Option<ConvGeometry>,
    },
    /// A constant for each element: the graph's node.
    Bias {
        node: usize,
    },
    /// The mean over windows: summed now, divided by the area in the scale.
    Mean(Window),
    Max(Window),
    Elementwise(&'a dyn Lowered),
    Add,
    /// The product of two values.
    Mul,
    /// The products of matrices in pairs, of so many terms each.
    MatrixProduct {
        inner: usize,
    },
    /// One real factor for all elements, neither 0 nor infinite.
    Factor(f64),
    /// An operator that moves elements.
    Move(FixedOp),
}

impl Action<'_> {
    /// Whether a circuit computes it.
    pub(super) fn is_nonlinear(&self) -> bool {
        matches!(self, Self::Max(_) | Self::Elementwise(_)) && !self.takes_few_bits()
    }

    /// Whether it wants inputs of few bits: its output has many more than they have, or it has polynomials for few.
    pub(super) fn takes_few_bits(&self) -> bool {
        matches!(self, Self::Layer { .. }) || self.is_product() || self.is_square() || self.chooses_scale()
    }

    /// Whether it multiplies two values.
    pub(super) const fn is_product(&self) -> bool {
        matches!(self, Self::Mul | Self::MatrixProduct { .. })
    }

    /// Whether it takes values as they are, of all their bits, since only their sign matters.
    pub(super) fn compares(&self) -> bool {
        self.choosing().is_some_and(Elementwise::compares)
    }

    /// Whether its output's scale does not follow from its input's, and its ring may be any.
    pub(super) fn chooses_scale(&self) -> bool {
        self.choosing().is_some()
    }

    /// The operator, if its output's scale does not follow from its input's.
    pub(super) fn choosing(&self) -> Option<&dyn Lowered> {
        match self {
            Self::Elementwise(op) if op.changes_ring() => Some(*op),
            _ => None,
        }
    }

    /// Whether it is a product of a value with itself, which may take sums whole.
    pub(super) fn is_square(&self) -> bool {
        matches!(self, Self::Elementwise(op) if op.multiplies())
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
pub(super) fn items<'a>(draft: &'a Draft, seen: &[Seen]) -> Result<Vec<Item<'a>>, CompileError> {
    let mut items = Vec::with_capacity(draft.graph.nodes.len());
    let mut values = BTreeMap::from([(draft.graph.inputs[0].name.as_str(), 0)]);
    for (index, node) in draft.graph.nodes.iter().enumerate() {
        let (name, shape, seen) = (node.name.clone(), draft.shapes[&node.name].clone(), seen[index + 1]);
        let inputs = node.inputs.iter().map(|name| values[name.as_str()]).collect();
        let operator = node.op.name();
        let action = translate(draft, index)?;
        items.push(Item { name, operator, action, inputs, shape, seen, class: index });
        values.insert(&node.name, items.len());
    }
    if !items.iter().any(|item: &Item<'_>| matches!(item.action, Action::Layer { .. } | Action::Bias { .. }))
    {
        return Err(CompileError::NoLayer);
    }
    Ok(items)
}

/// Checks that there are sums and products alone, which need no rescale.
///
/// # Errors
/// [`CompileError::UnsupportedOp`] naming the first other.
pub(super) fn only_polynomials(items: &[Item<'_>]) -> Result<(), CompileError> {
    let is_other = |item: &&Item<'_>| {
        item.action.is_nonlinear() || item.action.chooses_scale() || item.action.is_product()
    };
    let fix = |item: &Item<'_>| match item.action {
        Action::Max(_) => {
            "replace it by AveragePool and train the network again, or compile for an interactive mode such as auto"
        }
        _ => {
            "replace it by a square and train the network again, or compile for an interactive mode such as auto"
        }
    };
    items.iter().find(is_other).map_or(Ok(()), |item| {
        Err(CompileError::UnsupportedOp {
            node: item.name.clone(),
            operator: item.operator,
            attribute: ENCRYPTED_VALUES.to_owned(),
            fix: fix(item),
        })
    })
}

/// The action of a node.
pub(super) fn translate(draft: &Draft, index: usize) -> Result<Action<'_>, CompileError> {
    let node = &draft.graph.nodes[index];
    let input = draft.shapes[&node.inputs[0]].as_slice();
    let moved = |op| Ok(Action::Move(op));
    match &node.op {
        Op::Conv { .. } | Op::MatMul { .. } => {
            Ok(Action::Layer { node: index, geometry: conv_geometry(node, &draft.tensors)? })
        }
        &Op::MaxPool { kernel, strides, pads } => Ok(Action::Max(Window { kernel, strides, pads })),
        // The passes left averages over whole windows alone.
        &Op::AveragePool { kernel, strides, pads, .. } => Ok(Action::Mean(Window { kernel, strides, pads })),
        Op::GlobalAveragePool => {
            Ok(Action::Mean(Window { kernel: [input[1], input[2]], strides: [1, 1], pads: [0; 4] }))
        }
        Op::Flatten | Op::Reshape { .. } => moved(FixedOp::Reshape),
        Op::Transpose { axes } => moved(FixedOp::Transpose { axes: axes.clone() }),
        Op::Slice { starts, steps, .. } => {
            moved(FixedOp::Slice { starts: starts.clone(), steps: steps.clone() })
        }
        Op::Pad { before, .. } => moved(FixedOp::Pad { before: before.clone() }),
        Op::Concat { axis } => moved(FixedOp::Concat { axis: *axis }),
        Op::Add => Ok(Action::Add),
        Op::MulConstant { value } => match uniform(draft.tensors.of_node(&node.name, value)?.data()) {
            Some(factor) => Ok(Action::Factor(f64::from(factor))),
            None => Err(unfolded(node)),
        },
        Op::AddConstant { .. } => Ok(Action::Bias { node: index }),
        Op::BatchNorm { .. } => Err(unfolded(node)),
        Op::Mul => Ok(Action::Mul),
        Op::MatrixProduct => Ok(Action::MatrixProduct { inner: input[2] }),
        op => match lowered(op).map(|op| (op, op.unsupported())) {
            Some((op, None)) => Ok(Action::Elementwise(op)),
            Some((_, Some((attribute, fix)))) => Err(unsupported(node, attribute, fix)),
            // Softmax and arg-max.
            None => Err(unsupported(
                node,
                "other nodes behind it".to_owned(),
                "keep it at the end of the graph only",
            )),
        },
    }
}

fn unfolded(node: &Node) -> CompileError {
    unsupported(
        node,
        "a constant that no neighbouring layer can absorb".to_owned(),
        "place it next to a Conv, Gemm or MatMul, with one value per channel",
    )
}

fn unsupported(node: &Node, attribute: String, fix: &'static str) -> CompileError {
    CompileError::UnsupportedOp { node: node.name.clone(), operator: node.op.name(), attribute, fix }
}
