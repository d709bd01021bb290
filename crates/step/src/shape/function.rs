//! The public shape of an activation.

use serde::{Deserialize, Serialize};

/// A function of one window of values: their maximum, then ReLU or a slope below zero, then rescaling by `2^shift` to the
/// nearest integer, halves upwards, then an upper bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// Whether negative values become zero.
    pub relu: bool,
    /// What negative values are multiplied by, rounding down; needs windows of one value, neither `relu` nor `high`.
    pub slope: Option<Slope>,
    /// The largest output; needs `relu`.
    pub high: Option<i64>,
    /// Bits dropped.
    pub shift: u32,
}

impl Function {
    /// The maximum of a window, and of a window of one value the value.
    pub const IDENTITY: Self = Self { relu: false, slope: None, high: None, shift: 0 };
    /// Zero up to zero, and one from one on.
    pub const STEP: Self = Self { relu: true, high: Some(1), ..Self::IDENTITY };
}

/// The slope `numerator / 2^shift` of a leaky ReLU below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slope {
    /// In 0..=2^shift.
    pub numerator: u64,
    /// Bits of the denominator, at most 32.
    pub shift: u32,
}
