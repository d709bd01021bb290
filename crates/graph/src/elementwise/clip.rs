//! Bounds.

use serde::{Deserialize, Serialize};

use super::Elementwise;

/// `min(max(x, min), max)`; an absent bound does not bind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clip {
    /// The lower bound.
    pub min: Option<f32>,
    /// The upper bound.
    pub max: Option<f32>,
}

impl Elementwise for Clip {
    fn eval(&self, x: f32) -> f32 {
        x.max(self.min.unwrap_or(f32::NEG_INFINITY)).min(self.max.unwrap_or(f32::INFINITY))
    }

    fn is_finite(&self) -> bool {
        self.min.iter().chain(&self.max).all(|bound| bound.is_finite())
    }

    fn check(&self) -> Result<(), String> {
        match (self.min, self.max) {
            (Some(min), Some(max)) if min > max => Err(format!("min {min} is larger than max {max}")),
            _ => Ok(()),
        }
    }

    fn never_decreases(&self) -> bool {
        true
    }

    fn unsupported(&self) -> Option<(String, &'static str)> {
        let attribute = match self.min {
            Some(0.0) => return None,
            Some(min) => format!("min = {min}"),
            None => "no min".to_owned(),
        };
        Some((attribute, "use min = 0, as in ReLU6, or a Relu"))
    }
}
