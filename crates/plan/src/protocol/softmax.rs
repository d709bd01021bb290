//! The label and its probability.

use lanner_protocol::linear::Sets;
use lanner_protocol::nonlinear::compare::Supplies;
use lanner_protocol::nonlinear::softmax::Softmax;
use lanner_protocol::{Cost, OfflineCost, ProtocolError};
use lanner_share::Ring;
use serde::{Deserialize, Serialize};

use super::{Built, Describe, Facts};
use crate::Held;
use crate::held::LABEL;

/// The label and its probability to some decimal digits, which the client learns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Likely {
    /// Number of scores.
    pub classes: usize,
    /// Decimal digits.
    pub digits: u32,
    /// What one unit of a score stands for: finite and above zero.
    pub scale: f64,
    /// The ring of the scores.
    pub from: Ring,
}

// A checked network's output scale is a number.
impl Eq for Likely {}

impl Describe for Likely {
    fn name(&self) -> &'static str {
        "falcon.softmax"
    }

    fn ring(&self) -> Ring {
        self.from
    }

    fn makes_known(&self, _: bool) -> bool {
        false
    }

    fn build(&self, _: &Sets) -> Result<Built, ProtocolError> {
        let softmax = Softmax::new(self.classes, self.digits, self.scale, self.from)?;
        Ok(Built::Softmax(Box::new(softmax)))
    }
}

impl Facts for Softmax {
    fn offline_cost(&self, _: &mut Supplies) -> Result<OfflineCost, ProtocolError> {
        Ok(self.offline_cost())
    }

    fn online_cost(&self) -> Result<Cost, ProtocolError> {
        Ok(self.online_cost())
    }

    fn garbles(&self) -> bool {
        true
    }

    fn held(&self) -> Held {
        let labels = self.circuit().evaluator_inputs() as u64 * LABEL;
        Held { client: self.circuit().table_bytes(1) as u64 + labels, server: 0 }
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("instances", 1), ("and_gates", self.circuit().and_count() as u64)]
    }
}
