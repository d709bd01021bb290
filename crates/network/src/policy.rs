//! What the model owner lets the client learn from the final scores.

use serde::{Deserialize, Serialize};

/// The output policy: the model owner's choice, fixed when the model is compiled.
///
/// Serialised as `"label"`, `{"label-map": {"places": 128}}`, `"labels"`, `{"probability": {"digits": 2}}`, `{"top-k": {"k": 3}}`, `"logits"` or `"value"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The index of the largest score, ties to the lowest index; nothing else.
    #[default]
    Label,
    /// At each of several places the index of the largest of its scores, which follow one another, ties to the lowest index; nothing else.
    LabelMap {
        /// How many places.
        places: u32,
    },
    /// The indices of the scores above zero, of a network whose labels do not exclude each other; nothing else.
    Labels,
    /// The label and its softmax probability to a given number of decimal digits.
    Probability {
        /// Decimal digits.
        digits: u32,
    },
    /// The `k` best labels in order.
    TopK {
        /// How many labels.
        k: u32,
    },
    /// Every score: an explicit choice, since scores help to extract a model.
    Logits,
    /// Every output of a network that estimates quantities: they are the result.
    Value,
}

impl Policy {
    /// Whether the client needs the output's scale: to turn scores into reals, or for its part of a probability.
    #[must_use]
    pub const fn needs_scale(self) -> bool {
        matches!(self, Self::Probability { .. } | Self::Logits | Self::Value)
    }

    /// How many classes a given number of outputs tells apart; none where they are quantities.
    ///
    /// One score alone tells two: above zero it is the second.
    #[must_use]
    pub const fn classes(self, outputs: usize) -> Option<usize> {
        match self {
            Self::Value | Self::LabelMap { places: 0 } => None,
            Self::LabelMap { places } => Some(outputs / places as usize),
            _ if outputs == 1 => Some(2),
            _ => Some(outputs),
        }
    }

    /// The policy's name, as in a manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Label => "label",
            Self::LabelMap { .. } => "label-map",
            Self::Labels => "labels",
            Self::Probability { .. } => "probability",
            Self::TopK { .. } => "top-k",
            Self::Logits => "logits",
            Self::Value => "value",
        }
    }
}
