//! What a softmax sends, from its circuit alone.

use super::Softmax;
use crate::nonlinear::yao::{revealing_offline_cost, revealing_online_cost};
use crate::{Cost, OfflineCost};

impl Softmax {
    /// The cost of the offline phase.
    #[must_use]
    pub fn offline_cost(&self) -> OfflineCost {
        revealing_offline_cost(self.circuit())
    }

    /// The cost of the online phase.
    #[must_use]
    pub fn online_cost(&self) -> Cost {
        revealing_online_cost(self.circuit())
    }
}
