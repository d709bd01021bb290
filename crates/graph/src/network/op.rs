//! The operators of the fixed-point network.

use serde::{Deserialize, Serialize};

use crate::accumulator::Accumulator;
use crate::window::{ConvGeometry, Window};

/// An integer operator on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum FixedOp {
    /// Convolution of [c, h, w] with integer weights, plus bias.
    Conv2d(ConvGeometry),
    /// `W x + b` for a vector x; W is [outputs, inputs].
    Linear {
        /// Rows of W.
        outputs: usize,
    },
    /// The sum of each window's real elements; a mean's division lies in the scale.
    SumPool(Window),
    /// The maximum of each window's real elements.
    MaxPool(Window),
    /// `max(x, 0)`.
    Relu,
    /// `min(x, high)`.
    Clip {
        /// The bound, at the value's own scale; not negative.
        high: i64,
    },
    /// `floor((x + 2^(shift-1)) / 2^shift)`; a shift of 0 changes nothing. The output's ring may differ from the input's.
    Rescale {
        /// Bits dropped.
        shift: u32,
    },
    /// The same elements under the node's shape.
    Reshape,
}

impl FixedOp {
    /// The operator's name in messages and reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Conv2d(_) => "Conv2d",
            Self::Linear { .. } => "Linear",
            Self::SumPool(_) => "SumPool",
            Self::MaxPool(_) => "MaxPool",
            Self::Relu => "Relu",
            Self::Clip { .. } => "Clip",
            Self::Rescale { .. } => "Rescale",
            Self::Reshape => "Reshape",
        }
    }

    /// Whether the operator has weights.
    #[must_use]
    pub const fn is_linear(&self) -> bool {
        matches!(self, Self::Conv2d(_) | Self::Linear { .. })
    }

    /// Whether the parties need a circuit for it; otherwise each works on its own share, or on ciphertexts.
    #[must_use]
    pub const fn is_nonlinear(&self) -> bool {
        matches!(self, Self::MaxPool(_) | Self::Relu | Self::Clip { .. } | Self::Rescale { .. })
    }
}

/// A node of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedNode {
    /// Unique, not empty; the float node's name where there is one.
    pub name: String,
    /// What it computes.
    pub op: FixedOp,
    /// The values it takes: value 0 is the input, value i + 1 node i's output.
    pub inputs: Vec<usize>,
    /// Its output's shape, without the batch axis.
    pub shape: Vec<usize>,
    /// The ring of its output.
    #[serde(rename = "prime")]
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
