//! Bounds: both in the float graph, the upper one alone in fixed point, where `Relu` is the lower one.

use serde::{Deserialize, Serialize};

use super::{Elementwise, FixedElementwise, Part, Wanted};
use crate::accumulator::Accumulator;
use crate::network::FixedOp;

/// `min(max(x, min), max)`; an absent bound does not bind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clip {
    /// The lower bound.
    pub min: Option<f32>,
    /// The upper bound.
    pub max: Option<f32>,
}

/// `min(x, high)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedClip {
    /// The bound, at the value's own scale; not negative.
    pub high: i64,
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

    fn lower(&self, wanted: &Wanted<'_>) -> Result<Vec<Part>, String> {
        let scale = wanted.scale;
        let above = self.max.map(|max| {
            let high = (f64::from(max) / scale).round_ties_even().max(0.0) as i64;
            Part { suffix: "/max", ..Part::exact(FixedOp::Clip(FixedClip { high }), scale) }
        });
        Ok([Part::exact(FixedOp::Relu, scale)].into_iter().chain(above).collect())
    }
}

impl FixedElementwise for FixedClip {
    fn eval(&self, x: i128) -> i128 {
        x.min(i128::from(self.high))
    }

    fn check(&self, ring: Accumulator, _after: Accumulator) -> Result<(), String> {
        if (0..=ring.limit_without_differences(0)).contains(&self.high.into()) {
            return Ok(());
        }
        Err(format!("the bound {} is outside the ring", self.high))
    }

    /// A bound beyond the ring never binds.
    fn confined(&self, ring: Accumulator) -> Option<FixedOp> {
        Some(FixedOp::Clip(Self {
            high: i128::from(self.high).clamp(0, ring.limit_without_differences(0)) as i64,
        }))
    }
}
