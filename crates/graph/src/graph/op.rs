//! The operators of the float graph.

use lanner_network::MAX_INPUTS;
use serde::{Deserialize, Serialize};

use crate::elementwise::{Clip, Elementwise, Function, LeakyRelu, Ramp, Relu, Square, Step};
use crate::trees::Trees;

/// A float operator with ONNX's meaning, the batch axis apart. Strings name tensors.
///
/// Serialised with the variant's name as tag: `"Relu"`, `{"Clip": {"min": 0.0, "max": 6.0}}`. The importer lowers the operators that
/// are not here: Gemm to `MatMul`; `x - c`, `c - x` and `x / c` to `AddConstant` and `MulConstant`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Op {
    /// Two-dimensional convolution of `[c_in, h, w]` with zero padding.
    Conv {
        /// `[c_out, c_in / groups, kernel height, kernel width]`.
        weight: String,
        /// `[c_out]`, or the output's whole shape.
        bias: Option<String>,
        /// Vertical and horizontal step.
        strides: [usize; 2],
        /// Top, left, bottom, right.
        pads: [usize; 4],
        /// Vertical and horizontal distance between taps.
        dilations: [usize; 2],
        /// Channel groups.
        groups: usize,
    },
    /// `x W + b` for a vector x.
    MatMul {
        /// `[n_in, n_out]`.
        weight: String,
        /// `[n_out]`.
        bias: Option<String>,
    },
    /// `(x - mean) / sqrt(var + eps) * scale + bias` along the first axis.
    BatchNorm {
        /// One value per channel.
        scale: String,
        /// One value per channel.
        bias: String,
        /// One value per channel.
        mean: String,
        /// One value per channel.
        var: String,
        /// Added to the variance.
        eps: f64,
    },
    /// `x + value`, the value broadcast by numpy's rule.
    AddConstant {
        /// A tensor that broadcasts to x.
        value: String,
    },
    /// `x * value`, the value broadcast by numpy's rule.
    MulConstant {
        /// A tensor that broadcasts to x.
        value: String,
    },
    /// `max(x, 0)`.
    Relu,
    /// `x` where positive, else `alpha x`.
    LeakyRelu(LeakyRelu),
    /// `min(max(x, min), max)`; an absent bound does not bind.
    Clip(Clip),
    /// A smooth function.
    Function(Function),
    /// A smooth function that is near a constant below 0 and near a line above.
    Ramp(Ramp),
    /// The maximum of each window of [c, h, w]; padding never wins.
    MaxPool {
        /// Height and width of a window.
        kernel: [usize; 2],
        /// Vertical and horizontal step.
        strides: [usize; 2],
        /// Top, left, bottom, right.
        pads: [usize; 4],
    },
    /// The mean of each window of [c, h, w].
    AveragePool {
        /// Height and width of a window.
        kernel: [usize; 2],
        /// Vertical and horizontal step.
        strides: [usize; 2],
        /// Top, left, bottom, right.
        pads: [usize; 4],
        /// Whether padding counts as zeros; otherwise only real elements are averaged.
        count_include_pad: bool,
    },
    /// The mean of each channel: [c, h, w] to [c, 1, 1].
    GlobalAveragePool,
    /// All axes into one.
    Flatten,
    /// Another shape with as many elements.
    Reshape {
        /// The shape, all sizes positive.
        shape: Vec<usize>,
    },
    /// The sum of two values of one shape.
    Add,
    /// The element-wise product of two values of one shape.
    Mul,
    /// The products of matrices in pairs: `[g, m, k]` and `[g, k, n]` to `[g, m, n]`.
    MatrixProduct,
    /// `x * x`, element by element.
    Square,
    /// 1 where x is above 0, else 0.
    Step,
    /// The axes in another order.
    Transpose {
        /// Axis j of the output is axis `axes[j]` of the input.
        axes: Vec<usize>,
    },
    /// Evenly spaced elements of each axis: element i of the output's axis is element `start + i * step` of the input's.
    Slice {
        /// The first element, one per axis.
        starts: Vec<usize>,
        /// The output's shape.
        sizes: Vec<usize>,
        /// The distance, one per axis; negative steps go backwards, 0 is not allowed.
        steps: Vec<i64>,
    },
    /// Zeros around the input.
    Pad {
        /// Zeros before the first element, one per axis.
        before: Vec<usize>,
        /// Zeros after the last element, one per axis.
        after: Vec<usize>,
    },
    /// One or more values joined along an axis.
    Concat {
        /// The axis; the shapes agree on every other.
        axis: usize,
    },
    /// The scores of an ensemble of decision trees; only as the graph's first operator.
    Trees(Trees),
    /// Along the last axis; only at the graph's end.
    Softmax,
    /// The index of the largest element, the lowest of equals: shape `[1]`; only at the graph's end.
    ArgMax,
}

impl Op {
    /// The operator's name in messages, and what it is if it works on each element alone.
    fn entry(&self) -> (&'static str, Option<&dyn Elementwise>) {
        match self {
            Self::Conv { .. } => ("Conv", None),
            Self::MatMul { .. } => ("MatMul", None),
            Self::BatchNorm { .. } => ("BatchNormalization", None),
            Self::AddConstant { .. } => ("Add of a constant", None),
            Self::MulConstant { .. } => ("Mul by a constant", None),
            Self::Relu => ("Relu", Some(&Relu)),
            Self::LeakyRelu(op) => ("LeakyRelu", Some(op)),
            Self::Clip(op) => ("Clip", Some(op)),
            Self::Function(op) => (op.name(), Some(op)),
            Self::Ramp(op) => (op.name(), Some(op)),
            Self::MaxPool { .. } => ("MaxPool", None),
            Self::AveragePool { .. } => ("AveragePool", None),
            Self::GlobalAveragePool => ("GlobalAveragePool", None),
            Self::Flatten => ("Flatten", None),
            Self::Reshape { .. } => ("Reshape", None),
            Self::Add => ("Add", None),
            Self::Mul => ("Mul", None),
            Self::MatrixProduct => ("MatrixProduct", None),
            Self::Square => ("Square", Some(&Square)),
            Self::Step => ("Step", Some(&Step)),
            Self::Transpose { .. } => ("Transpose", None),
            Self::Slice { .. } => ("Slice", None),
            Self::Pad { .. } => ("Pad", None),
            Self::Concat { .. } => ("Concat", None),
            Self::Trees(_) => ("Trees", None),
            Self::Softmax => ("Softmax", None),
            Self::ArgMax => ("ArgMax", None),
        }
    }

    /// The operator's name in messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.entry().0
    }

    /// The operator if each element of its output depends on the input element at its place alone, by one rule for all places.
    #[must_use]
    pub fn elementwise(&self) -> Option<&dyn Elementwise> {
        self.entry().1
    }

    /// How many values the operator takes, at least and at most.
    #[must_use]
    pub const fn arity(&self) -> (usize, usize) {
        match self {
            Self::Add | Self::Mul | Self::MatrixProduct => (2, 2),
            Self::Concat { .. } => (1, MAX_INPUTS),
            _ => (1, 1),
        }
    }

    /// Whether every attribute is a finite number.
    pub(super) fn is_finite(&self) -> bool {
        match self {
            Self::BatchNorm { eps, .. } => eps.is_finite(),
            _ => self.elementwise().is_none_or(Elementwise::is_finite),
        }
    }

    /// Whether the operator is a layer with weights in fixed point.
    #[must_use]
    pub const fn is_linear(&self) -> bool {
        matches!(self, Self::Conv { .. } | Self::MatMul { .. })
    }
}
