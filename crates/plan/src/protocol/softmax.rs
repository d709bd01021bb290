//! The label and its probability.

use lanner_protocol::linear::Sets;
use lanner_protocol::nonlinear::ot_nonlinear::CotSupply;
use lanner_protocol::nonlinear::softmax::Softmax;
use lanner_protocol::{Cost, OfflineCost, ProtocolError};
use lanner_share::Ring;
use serde::{Deserialize, Serialize};

use super::{Built, Describe, Facts};
use crate::Held;
use crate::held::{LABEL, WORD};

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
    fn offline_cost(&self, _: &mut CotSupply) -> Result<OfflineCost, ProtocolError> {
        Ok(self.offline_cost())
    }

    fn online_cost(&self) -> Result<Cost, ProtocolError> {
        Ok(self.online_cost())
    }

    fn garbles(&self) -> bool {
        true
    }

    fn held(&self) -> Held {
        let inputs = self.exponents().evaluator_inputs() + self.division().evaluator_inputs();
        let (labels, products) = (inputs as u64 * LABEL, self.product_bits() as u64 * WORD);
        let tables = self.exponents().table_bytes(1) + self.division().table_bytes(1);
        // The server keeps its factors beside the shares of their products.
        Held { client: tables as u64 + labels + products, server: labels + 2 * products }
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let gates = self.exponents().and_count() + self.division().and_count();
        vec![("instances", 1), ("and_gates", gates as u64), ("product_bits", self.product_bits() as u64)]
    }
}
