//! The prepared graph as segments: a linear layer and what follows it up to the next.

use super::calibrate::Range;
use crate::CompileError;
use crate::graph::{Node, Op, conv_geometry};
use crate::pass::Draft;
use crate::window::{ConvGeometry, Window};

/// A chain of operators that fixed point has, in segments.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) input: Range,
    /// Operators before the first linear layer.
    pub(super) lead: Vec<Item>,
    /// One per linear layer; not empty.
    pub(super) segments: Vec<Segment>,
}

/// A linear layer and the operators up to the next one.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) layer: LayerItem,
    pub(super) tail: Vec<Item>,
}

/// A linear layer: the graph's node, with its geometry if it is a convolution.
#[derive(Debug)]
pub(super) struct LayerItem {
    pub(super) node: usize,
    pub(super) geometry: Option<ConvGeometry>,
    pub(super) shape: Vec<usize>,
    pub(super) range: Range,
}

/// An operator without weights.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) action: Action,
    pub(super) shape: Vec<usize>,
    /// Its calibrated output.
    pub(super) range: Range,
}

/// What an operator without weights does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// The mean over windows: summed now, divided by the area in the scale.
    Mean(Window),
    Max(Window),
    Relu,
    /// The upper bound, in real units.
    ClipAbove(f32),
    Reshape,
}

impl Action {
    /// Whether a circuit computes it.
    pub(super) const fn is_nonlinear(self) -> bool {
        matches!(self, Self::Max(_) | Self::Relu | Self::ClipAbove(_))
    }

    /// How much larger the integers of its output are for the same real values.
    pub(super) const fn growth(self) -> f64 {
        match self {
            Self::Mean(window) => window.area() as f64,
            _ => 1.0,
        }
    }
}

impl Chain {
    /// Splits the graph at its linear layers.
    ///
    /// # Errors
    /// [`CompileError::UnsupportedOp`] naming the first node that fixed point does not have.
    pub(super) fn new(draft: &Draft, ranges: &[Range]) -> Result<Self, CompileError> {
        let (mut lead, mut segments) = (Vec::new(), Vec::<Segment>::new());
        for (index, node) in draft.graph.nodes.iter().enumerate() {
            let (shape, range) = (draft.shapes[&node.name].clone(), ranges[index + 1]);
            if node.op.is_linear() {
                let geometry = conv_geometry(node, &draft.tensors)?;
                check_geometry(node, geometry)?;
                segments.push(Segment {
                    layer: LayerItem { node: index, geometry, shape, range },
                    tail: Vec::new(),
                });
                continue;
            }
            let actions = translate(node, &draft.shapes[&node.inputs[0]])?;
            let tail = segments.last_mut().map_or(&mut lead, |segment| &mut segment.tail);
            tail.extend(actions.into_iter().map(|(suffix, action)| {
                let name = format!("{}{suffix}", node.name);
                Item { name, action, shape: shape.clone(), range }
            }));
        }
        if segments.is_empty() {
            let reason = "it has no convolution or matrix product with weights; nothing is there to protect"
                .to_owned();
            return Err(CompileError::Wiring { node: draft.graph.output.clone(), reason });
        }
        Ok(Self { input: ranges[0], lead, segments })
    }
}

/// The actions of an operator, each with a suffix to the node's name.
fn translate(node: &Node, input: &[usize]) -> Result<Vec<(&'static str, Action)>, CompileError> {
    let one = |action| Ok(vec![("", action)]);
    match node.op {
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
        Op::MaxPool { kernel, strides, pads } => one(Action::Max(Window { kernel, strides, pads })),
        Op::AveragePool { kernel, strides, pads, count_include_pad } => {
            if pads != [0; 4] && !count_include_pad {
                let attribute = format!("pads = {pads:?} and count_include_pad = 0");
                return Err(unsupported(
                    node,
                    attribute,
                    "its divisor changes at the border; set count_include_pad = 1 or no pads",
                ));
            }
            one(Action::Mean(Window { kernel, strides, pads }))
        }
        Op::GlobalAveragePool => {
            one(Action::Mean(Window { kernel: [input[1], input[2]], strides: [1, 1], pads: [0; 4] }))
        }
        Op::Flatten | Op::Reshape { .. } => one(Action::Reshape),
        Op::AddConstant { .. } | Op::MulConstant { .. } | Op::BatchNorm { .. } => Err(unsupported(
            node,
            "a constant that no neighbouring layer can take".to_owned(),
            "put it next to a Conv, Gemm or MatMul, one value per channel",
        )),
        Op::LeakyRelu { alpha } => Err(unsupported(node, format!("alpha = {alpha}"), "use Relu")),
        Op::Add | Op::Mul => {
            Err(unsupported(node, "two computed values".to_owned(), "use a network without branches"))
        }
        Op::Softmax | Op::ArgMax | Op::Conv { .. } | Op::MatMul { .. } => {
            Err(unsupported(node, "its place in the graph".to_owned(), "keep it at the graph's end only"))
        }
    }
}

/// Refuses what the layers' protocols do not have.
fn check_geometry(node: &Node, geometry: Option<ConvGeometry>) -> Result<(), CompileError> {
    match geometry {
        Some(ConvGeometry { groups, .. }) if groups != 1 => {
            Err(unsupported(node, format!("group = {groups}"), "use group = 1"))
        }
        Some(ConvGeometry { dilations, .. }) if dilations != [1, 1] => {
            Err(unsupported(node, format!("dilations = {dilations:?}"), "use dilations = [1, 1]"))
        }
        _ => Ok(()),
    }
}

fn unsupported(node: &Node, attribute: String, fix: &'static str) -> CompileError {
    CompileError::UnsupportedOp { node: node.name.clone(), operator: node.op.name(), attribute, fix }
}
