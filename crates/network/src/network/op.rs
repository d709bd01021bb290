//! The operators of the fixed-point network.

use serde::{Deserialize, Serialize};

use crate::accumulator::Accumulator;
use crate::elementwise::{FixedClip, FixedElementwise, FixedFunction, FixedLeakyRelu, Relu, Square};
use crate::window::{ConvGeometry, Window};

/// The largest absolute value of a public factor in [`FixedOp::Add`] and [`FixedOp::Scale`].
pub const MAX_FACTOR: i64 = 1 << 20;

/// The most bits of what [`FixedOp::Bias`] adds.
pub const MAX_BIAS_BITS: u32 = 60;

/// An integer operator. It takes one value unless it says otherwise, and its output lives in the ring of its inputs unless it is
/// [`FixedOp::Rescale`], [`FixedOp::Narrow`] or [`FixedOp::Function`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum FixedOp {
    /// Convolution of [c, h, w] with integer weights, plus bias.
    Conv2d(ConvGeometry),
    /// `W x + b` for a vector x; W is [outputs, inputs].
    Linear {
        /// Rows of W.
        outputs: usize,
        /// Public: each row of W has a single 1 and zeros else, so that the layer picks one element for each output. Which is secret.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        picks: bool,
    },
    /// `x + b` for integers b that are part of the weights, one for each element.
    Bias {
        /// Public: all b are below 2^bits in absolute value; at most [`MAX_BIAS_BITS`].
        bits: u32,
    },
    /// The sum of each window's real elements; a mean's division lies in the scale.
    SumPool(Window),
    /// The maximum of each window's real elements.
    MaxPool(Window),
    /// `max(x, 0)`.
    Relu,
    /// `x` where x >= 0, else `floor(numerator * x / 2^shift)`.
    LeakyRelu(FixedLeakyRelu),
    /// `min(x, high)`.
    Clip(FixedClip),
    /// `floor((x + 2^(shift-1)) / 2^shift)`; a shift of 0 changes nothing. The output's ring may differ from the input's.
    Rescale {
        /// Bits dropped.
        shift: u32,
    },
    /// `x` in a ring modulo a smaller power of two, or one as small: what is computed there has fewer bits.
    Narrow,
    /// Any function of one element, by polynomials on segments of its domain. The output's ring may differ from the input's.
    Function(FixedFunction),
    /// `x * x`, whose scale is the square of x's.
    Square,
    /// `a * b` for two values of one shape and one ring, whose scale is the product of theirs.
    Mul,
    /// The products of matrices in pairs, `[g, m, k]` and `[g, k, n]` to `[g, m, n]`, in one ring: sums whose scale is the product of
    /// theirs.
    MatrixProduct {
        /// How many products a sum has: k.
        inner: usize,
    },
    /// `factors[0] * a + factors[1] * b` for two values of one shape and one ring.
    Add {
        /// Public, not 0, at most [`MAX_FACTOR`] in absolute value.
        factors: [i64; 2],
    },
    /// `factor * x`.
    Scale {
        /// Public, not 0, at most [`MAX_FACTOR`] in absolute value.
        factor: i64,
    },
    /// The same elements under the node's shape.
    Reshape,
    /// The axes in another order: axis j of the output is axis `axes[j]` of the input.
    Transpose {
        /// A permutation of the axes.
        axes: Vec<usize>,
    },
    /// Evenly spaced elements of each axis, as many as the node's shape says: element i is the input's `start + i * step`.
    Slice {
        /// The first element, one per axis.
        starts: Vec<usize>,
        /// The distance, one per axis, not 0.
        steps: Vec<i64>,
    },
    /// Zeros around the input, up to the node's shape.
    Pad {
        /// Zeros before the first element, one per axis.
        before: Vec<usize>,
    },
    /// Any number of values of one ring joined along an axis.
    Concat {
        /// The axis.
        axis: usize,
    },
}

impl FixedOp {
    /// The same operator on values of a ring with attributes that it can have there, if its own may be others.
    #[must_use]
    pub fn confined(&self, ring: Accumulator) -> Option<Self> {
        match self {
            Self::Clip(clip) => Some(Self::Clip(clip.confined(ring))),
            _ => None,
        }
    }

    /// The operator's name in messages and reports, and what it is if it works on each element alone. Rescale and Scale are left out:
    /// how values are scaled is the whole crate's matter.
    fn entry(&self) -> (&'static str, Option<&dyn FixedElementwise>) {
        match self {
            Self::Conv2d(_) => ("Conv2d", None),
            Self::Linear { .. } => ("Linear", None),
            Self::Bias { .. } => ("Bias", None),
            Self::SumPool(_) => ("SumPool", None),
            Self::MaxPool(_) => ("MaxPool", None),
            Self::Relu => ("Relu", Some(&Relu)),
            Self::LeakyRelu(op) => ("LeakyRelu", Some(op)),
            Self::Clip(op) => ("Clip", Some(op)),
            Self::Rescale { .. } => ("Rescale", None),
            Self::Narrow => ("Narrow", None),
            Self::Function(op) => ("Function", Some(op)),
            Self::Square => ("Square", Some(&Square)),
            Self::Mul => ("Mul", None),
            Self::MatrixProduct { .. } => ("MatrixProduct", None),
            Self::Add { .. } => ("Add", None),
            Self::Scale { .. } => ("Scale", None),
            Self::Reshape => ("Reshape", None),
            Self::Transpose { .. } => ("Transpose", None),
            Self::Slice { .. } => ("Slice", None),
            Self::Pad { .. } => ("Pad", None),
            Self::Concat { .. } => ("Concat", None),
        }
    }

    /// The operator's name in messages and reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.entry().0
    }

    /// The operator if it works on each element alone, by one rule for all.
    #[must_use]
    pub fn elementwise(&self) -> Option<&dyn FixedElementwise> {
        self.entry().1
    }

    /// How many values it takes, at least and at most.
    #[must_use]
    pub const fn arity(&self) -> (usize, usize) {
        match self {
            Self::Add { .. } | Self::Mul | Self::MatrixProduct { .. } => (2, 2),
            Self::Concat { .. } => (1, MAX_INPUTS),
            _ => (1, 1),
        }
    }

    /// Whether it is a linear layer: it multiplies by weights.
    #[must_use]
    pub const fn is_linear(&self) -> bool {
        matches!(self, Self::Conv2d(_) | Self::Linear { .. })
    }

    /// Whether the parties need a circuit for it.
    #[must_use]
    pub fn is_nonlinear(&self) -> bool {
        matches!(self, Self::MaxPool(_) | Self::Rescale { .. })
            || self.elementwise().is_some_and(|op| !op.multiplies())
    }

    /// Whether it multiplies values by more than public integers, so that its output has many more bits.
    pub fn multiplies(&self) -> bool {
        self.is_linear()
            || matches!(self, Self::Mul | Self::MatrixProduct { .. })
            || self.elementwise().is_some_and(FixedElementwise::multiplies)
    }

    /// Whether its protocols take differences of two elements, or of an element and a number.
    #[must_use]
    pub fn takes_differences(&self) -> bool {
        matches!(self, Self::MaxPool(_))
            || self.elementwise().is_some_and(FixedElementwise::takes_differences)
    }

    /// Whether its output, which is bounded whatever the ring of its input, may live in another.
    #[must_use]
    pub fn changes_ring(&self) -> bool {
        matches!(self, Self::Rescale { .. } | Self::Narrow)
            || self.elementwise().is_some_and(FixedElementwise::changes_ring)
    }

    /// Whether its output can be larger than its inputs, or its ring smaller than theirs, and so exceed what the ring allows.
    #[must_use]
    pub fn may_grow(&self) -> bool {
        self.multiplies()
            || matches!(
                self,
                Self::Bias { .. } | Self::SumPool(_) | Self::Add { .. } | Self::Scale { .. } | Self::Narrow
            )
    }
}

/// A node of the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedNode {
    /// Unique, not empty; the float node's name where there is one.
    pub name: String,
    /// What it computes.
    pub op: FixedOp,
    /// The values it takes, all made before it: value 0 is the input, value i + 1 node i's output.
    pub inputs: Vec<usize>,
    /// Its output's shape, without the batch axis.
    pub shape: Vec<usize>,
    /// The ring of its output.
    #[serde(rename = "modulus")]
    pub accumulator: Accumulator,
}

impl FixedNode {
    /// The number of elements of its output.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether its output has no elements; never so in a checked network.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// More values than any real Concat joins.
pub const MAX_INPUTS: usize = 1024;
