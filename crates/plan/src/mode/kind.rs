//! Operators by how they are lowered.

use lanner_network::FixedOp;

/// Operators that are lowered alike: by each party on its own share, as layers with weights, as products of values, as functions by polynomials, or
/// with their neighbours by what is between layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Local,
    Layer,
    Product,
    Function,
    Between,
}

impl Kind {
    /// Whether each party computes an operator on its own share.
    pub(crate) const fn is_local(op: &FixedOp) -> bool {
        matches!(Self::of(op), Self::Local)
    }

    /// The kind of an operator. Whoever adds one says here what becomes of it.
    pub(crate) const fn of(op: &FixedOp) -> Self {
        match op {
            FixedOp::Conv2d(_) | FixedOp::Linear { .. } => Self::Layer,
            FixedOp::Square | FixedOp::Mul | FixedOp::MatrixProduct { .. } => Self::Product,
            FixedOp::Function(_) => Self::Function,
            FixedOp::Relu
            | FixedOp::LeakyRelu(_)
            | FixedOp::Clip(_)
            | FixedOp::MaxPool(_)
            | FixedOp::Rescale { .. } => Self::Between,
            FixedOp::Bias { .. }
            | FixedOp::SumPool(_)
            | FixedOp::Add { .. }
            | FixedOp::Scale { .. }
            | FixedOp::Narrow
            | FixedOp::Reshape
            | FixedOp::Transpose { .. }
            | FixedOp::Slice { .. }
            | FixedOp::Pad { .. }
            | FixedOp::Concat { .. } => Self::Local,
        }
    }
}
