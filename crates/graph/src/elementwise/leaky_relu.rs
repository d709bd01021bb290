//! A slope below zero.

use serde::{Deserialize, Serialize};

use super::Elementwise;

/// `x` where positive, else `alpha x`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeakyRelu {
    /// The slope below zero.
    pub alpha: f32,
}

impl Elementwise for LeakyRelu {
    fn eval(&self, x: f32) -> f32 {
        if x < 0.0 { x * self.alpha } else { x }
    }

    fn is_finite(&self) -> bool {
        self.alpha.is_finite()
    }

    fn never_decreases(&self) -> bool {
        self.alpha >= 0.0
    }

    fn is_homogeneous(&self) -> bool {
        true
    }

    fn unsupported(&self) -> Option<(String, &'static str)> {
        let has = (0.0..=1.0).contains(&self.alpha);
        (!has).then(|| (format!("alpha = {}", self.alpha), "use an alpha between 0 and 1"))
    }

    fn takes_differences(&self) -> bool {
        true
    }
}
