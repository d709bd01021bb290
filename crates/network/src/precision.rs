//! What precision a model's owner asks for, and what a network reaches.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The precision asked of a network.
///
/// Serialised as `{"error": 0.005}` or `{"bits": 12}`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// The largest error of a score on the calibration samples, relative to the range of its sample's scores: above 0, below 1.
    Error(f64),
    /// Bits of every activation, and the fewest of a layer's largest weight: [`Precision::FEWEST_BITS`] to [`Precision::MOST_BITS`].
    Bits(u32),
}

impl Precision {
    /// The fewest bits that a network may be asked to have.
    pub const FEWEST_BITS: u32 = 6;
    /// The most.
    pub const MOST_BITS: u32 = 16;
}

impl Default for Precision {
    /// Half a per cent.
    fn default() -> Self {
        Self::Error(0.005)
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => f.write_str(&percent(*error)),
            Self::Bits(bits) => write!(f, "{bits} bits"),
        }
    }
}

/// What a network reaches on its calibration samples, without those that were set aside.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reached {
    /// What was asked.
    pub asked: Precision,
    /// The largest error of a score relative to the range of its sample's scores.
    pub error: f64,
    /// Calibration samples that it was measured on.
    pub samples: usize,
    /// Samples whose label is the float graph's.
    pub labels_kept: usize,
    /// Samples whose label is another one though the float graph's two best scores are farther apart than the error asked for.
    pub labels_lost: usize,
}

impl Reached {
    /// The error as a percentage.
    #[must_use]
    pub fn said(&self) -> String {
        percent(self.error)
    }

    /// The same where inputs that were made count, too: as an error, and as labels lost, but as no samples.
    #[must_use]
    pub fn with_made(self, made: &Self) -> Self {
        let labels_lost = self.labels_lost + made.labels_lost;
        Self { error: self.error.max(made.error), labels_lost, ..self }
    }

    /// Whether it is what was asked.
    #[must_use]
    pub fn is_met(&self) -> bool {
        match self.asked {
            Precision::Error(error) => self.error <= error && self.labels_lost == 0,
            Precision::Bits(_) => true,
        }
    }
}

/// A share as a percentage to three digits or so, rounded up: what is printed is never better than what was found.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let steps: f64 = match percent {
        ..0.1 => 10_000.0,
        ..1.0 => 1000.0,
        ..10.0 => 100.0,
        _ => 10.0,
    };
    // What is a whole number of steps but for the rounding of floats stays one; no zero is negative.
    format!("{}%", (percent * steps - 1e-6).ceil() / steps + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_rounded_up_to_three_digits() {
        let cases = [
            (0.005, "0.5%"),
            (0.005_001_1, "0.501%"),
            (0.012_34, "1.24%"),
            (0.25, "25%"),
            (0.000_123_41, "0.0124%"),
            (0.0, "0%"),
        ];
        for (share, text) in cases {
            assert_eq!(percent(share), text);
        }
        assert_eq!(Precision::Bits(12).to_string(), "12 bits");
    }

    #[test]
    fn bits_are_met_whatever_the_error_and_an_error_only_with_its_labels() {
        let reached = |asked, error, labels_lost| {
            Reached { asked, error, samples: 4, labels_kept: 4 - labels_lost, labels_lost }.is_met()
        };
        assert!(reached(Precision::Bits(8), 0.5, 1));
        assert!(reached(Precision::Error(0.01), 0.01, 0));
        assert!(!reached(Precision::Error(0.01), 0.011, 0));
        assert!(!reached(Precision::Error(0.01), 0.001, 1));
    }
}
