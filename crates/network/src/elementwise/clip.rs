//! An upper bound; the lower one is `Relu`.

use serde::{Deserialize, Serialize};

use super::FixedElementwise;
use crate::accumulator::Accumulator;

/// `min(x, high)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedClip {
    /// The bound, at the value's own scale; not negative.
    pub high: i64,
}

impl FixedClip {
    /// The same on values of a ring: a bound beyond it never binds.
    pub(crate) fn confined(&self, ring: Accumulator) -> Self {
        Self { high: i128::from(self.high).clamp(0, ring.limit_without_differences(0)) as i64 }
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
}
