//! Operators by how they are lowered.

use lanner_network::FixedOp;

/// Operators that are lowered alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Each party computes it on its own share.
    Local,
    /// A layer with weights.
    Layer,
    /// The product of a value with itself.
    Square,
    /// The product of two values.
    Product,
    /// A function by polynomials.
    Function,
    /// A circuit computes it, with its neighbours.
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
            FixedOp::Square => Self::Square,
            FixedOp::Mul | FixedOp::MatrixProduct { .. } => Self::Product,
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
