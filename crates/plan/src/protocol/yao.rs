//! Garbled circuits.

use lanner_protocol::linear::Sets;
use lanner_protocol::nonlinear::ot_nonlinear::CotSupply;
use lanner_protocol::nonlinear::windows::Windows;
use lanner_protocol::nonlinear::yao::{Function, Layer, Ranking};
use lanner_protocol::{Cost, OfflineCost, ProtocolError};
use lanner_share::Ring;
use serde::{Deserialize, Serialize};

use super::{Built, Describe, Facts};
use crate::Held;
use crate::held::{LABEL, WORD};

/// A circuit on each window, from ring to ring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activation {
    /// What it computes.
    pub function: Function,
    /// The windows.
    pub windows: Windows,
    /// The ring of the input.
    pub from: Ring,
    /// The ring of the output.
    pub to: Ring,
}

/// An oblivious arg-max whose result the client learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Classes {
    /// Number of scores.
    pub classes: usize,
    /// The ring of the scores.
    pub from: Ring,
}

/// The best classes in order, which the client learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Best {
    /// Number of scores.
    pub classes: usize,
    /// How many of them.
    pub k: usize,
    /// The ring of the scores.
    pub from: Ring,
}

impl Describe for Activation {
    fn name(&self) -> &'static str {
        "yao.activation"
    }

    fn ring(&self) -> Ring {
        self.from
    }

    fn output_ring(&self) -> Option<Ring> {
        Some(self.to)
    }

    fn makes_known(&self, _: bool) -> bool {
        false
    }

    fn build(&self, _: &Sets) -> Result<Built, ProtocolError> {
        Layer::new(self.function, &self.windows, self.from, self.to).map(Built::Yao)
    }
}

impl Facts for Layer {
    fn offline_cost(&self, _: &mut CotSupply) -> Result<OfflineCost, ProtocolError> {
        self.offline_cost()
    }

    fn online_cost(&self) -> Result<Cost, ProtocolError> {
        Ok(self.online_cost())
    }

    fn garbles(&self) -> bool {
        true
    }

    fn held(&self) -> Held {
        let labels = (self.circuit().evaluator_inputs() * self.instances()) as u64 * LABEL;
        let products = self.output_bits() as u64 * WORD;
        let tables = self.circuit().table_bytes(self.instances()) as u64;
        Held { client: tables + labels + products, server: products }
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let gates = self.circuit().and_count() * self.instances();
        vec![("instances", self.instances() as u64), ("and_gates", gates as u64)]
    }
}

impl Describe for Classes {
    fn name(&self) -> &'static str {
        "yao.argmax"
    }

    fn ring(&self) -> Ring {
        self.from
    }

    fn makes_known(&self, _: bool) -> bool {
        false
    }

    fn build(&self, _: &Sets) -> Result<Built, ProtocolError> {
        Ranking::label(self.classes, self.from).map(Built::Ranking)
    }
}

impl Describe for Best {
    fn name(&self) -> &'static str {
        "yao.top_k"
    }

    fn ring(&self) -> Ring {
        self.from
    }

    fn makes_known(&self, _: bool) -> bool {
        false
    }

    fn build(&self, _: &Sets) -> Result<Built, ProtocolError> {
        Ranking::top(self.classes, self.k, self.from).map(Built::Ranking)
    }
}

impl Facts for Ranking {
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
        let labels = self.circuit().evaluator_inputs() as u64 * LABEL;
        Held { client: self.circuit().table_bytes(1) as u64 + labels, server: 0 }
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("instances", 1), ("and_gates", self.circuit().and_count() as u64)]
    }
}
