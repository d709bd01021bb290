//! Functions that are near 0, or a constant, far below 0 and near a line above: a `Relu` and a tail.

use std::f64::consts::SQRT_2;

use serde::{Deserialize, Serialize};

use super::erf::erfc;
use crate::elementwise::Elementwise;

/// A function that approaches a constant below 0 and a line through 0 above: `gain * max(x, 0)` and a tail, which approaches constants on both
/// sides. A pass takes it apart; fixed point has the parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Ramp {
    /// x times the probability that a normal variable is below x.
    Gelu {
        /// Whether the probability is approximated by a hyperbolic tangent.
        approximate: bool,
    },
    /// `x / (1 + exp(-alpha x))`: `SiLU` for an alpha of 1.
    Swish {
        /// Above 0.
        alpha: f32,
    },
    /// `log(1 + exp(x))`.
    Softplus,
    /// `x` where positive, else `alpha (exp(x) - 1)`.
    Elu {
        /// The limit far below 0, negated.
        alpha: f32,
    },
    /// `gamma x` where positive, else `gamma alpha (exp(x) - 1)`.
    Selu {
        /// The limit far below 0, negated, over gamma.
        alpha: f32,
        /// The slope above 0.
        gamma: f32,
    },
    /// `x` where positive, else `alpha (exp(x / alpha) - 1)`.
    Celu {
        /// Above 0.
        alpha: f32,
    },
    /// `x tanh(log(1 + exp(x)))`.
    Mish,
}

impl Ramp {
    /// The operator's name in messages.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Gelu { .. } => "Gelu",
            Self::Swish { .. } => "Swish",
            Self::Softplus => "Softplus",
            Self::Elu { .. } => "Elu",
            Self::Selu { .. } => "Selu",
            Self::Celu { .. } => "Celu",
            Self::Mish => "Mish",
        }
    }

    /// The slope far above 0 where that is not 1 for all attributes.
    #[must_use]
    pub const fn gain(&self) -> Option<f32> {
        match self {
            Self::Selu { gamma, .. } => Some(*gamma),
            _ => None,
        }
    }

    /// Whether the tail is the same on both sides of 0: what is missing above 0 is what is there below.
    #[must_use]
    pub const fn is_even(&self) -> bool {
        matches!(self, Self::Gelu { .. } | Self::Swish { .. } | Self::Softplus)
    }

    /// What the tail approaches far below 0; it vanishes far above.
    pub(super) fn floor(&self) -> f64 {
        match self {
            Self::Elu { alpha } | Self::Celu { alpha } => -f64::from(*alpha),
            Self::Selu { alpha, gamma } => -f64::from(*alpha) * f64::from(*gamma),
            _ => 0.0,
        }
    }

    /// The function less `gain * max(x, 0)`.
    pub(super) fn tail(&self, x: f64) -> f64 {
        let negative = x.min(0.0);
        match self {
            Self::Gelu { approximate: false } => -x.abs() * erfc(x.abs() / SQRT_2) / 2.0,
            Self::Gelu { approximate: true } => {
                let x = x.abs();
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
                // (1 - tanh(u)) / 2 without cancellation.
                -x / (1.0 + (2.0 * inner).exp())
            }
            Self::Swish { alpha } => -x.abs() / (1.0 + (f64::from(*alpha) * x.abs()).exp()),
            Self::Softplus => (-x.abs()).exp().ln_1p(),
            Self::Elu { alpha } => f64::from(*alpha) * negative.exp_m1(),
            Self::Selu { alpha, gamma } => f64::from(*alpha) * f64::from(*gamma) * negative.exp_m1(),
            Self::Celu { alpha } => f64::from(*alpha) * (negative / f64::from(*alpha)).exp_m1(),
            Self::Mish => {
                // tanh(log(1 + e^x)) is w / (w + 2) for w = e^x (e^x + 2).
                let exponential = x.exp();
                let w = exponential * (exponential + 2.0);
                if x > 0.0 { -2.0 * x / (w + 2.0) } else { x * w / (w + 2.0) }
            }
        }
    }
}

impl Elementwise for Ramp {
    fn eval(&self, x: f32) -> f32 {
        let x = f64::from(x);
        (f64::from(self.gain().unwrap_or(1.0)) * x.max(0.0) + self.tail(x)) as f32
    }

    fn is_finite(&self) -> bool {
        match self {
            Self::Swish { alpha } | Self::Elu { alpha } | Self::Celu { alpha } => alpha.is_finite(),
            Self::Selu { alpha, gamma } => alpha.is_finite() && gamma.is_finite(),
            _ => true,
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::Swish { alpha } | Self::Celu { alpha } if *alpha <= 0.0 => {
                Err(format!("alpha must be above 0, not {alpha}"))
            }
            Self::Selu { gamma, .. } if *gamma == 0.0 => Err("gamma must not be 0".to_owned()),
            _ => Ok(()),
        }
    }

    fn never_decreases(&self) -> bool {
        match self {
            Self::Softplus | Self::Celu { .. } => true,
            Self::Elu { alpha } => *alpha >= 0.0,
            Self::Selu { alpha, gamma } => *alpha >= 0.0 && *gamma >= 0.0,
            _ => false,
        }
    }
}
