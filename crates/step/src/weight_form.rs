//! How a layer's weights are kept.

/// How a layer's weights are kept: a choice between memory and the time of each prediction, which no message shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightForm {
    /// Transformed once, ready to multiply.
    Evaluation,
    /// As coefficients, or as the integers that those are, transformed whenever they are needed: a seventh of the memory or less.
    Coefficient,
}
