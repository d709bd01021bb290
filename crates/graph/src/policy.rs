//! What the model owner lets the client learn from the final scores.

use serde::{Deserialize, Serialize};

/// The output policy: the model owner's choice, fixed when the model is compiled.
///
/// Serialised as `"label"`, `{"probability": {"digits": 2}}`, `{"top-k": {"k": 3}}` or `"logits"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The index of the largest score, ties to the lowest index; nothing else.
    #[default]
    Label,
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
}

impl Policy {
    /// Whether the client needs the output's scale: to turn scores into reals, or for its part of a probability.
    #[must_use]
    pub const fn needs_scale(self) -> bool {
        matches!(self, Self::Probability { .. } | Self::Logits)
    }

    /// The policy's name, as on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Label => "label",
            Self::Probability { .. } => "probability",
            Self::TopK { .. } => "top-k",
            Self::Logits => "logits",
        }
    }
}
