//! Nonlinear layers by oblivious transfer, over powers of two.

use lanner_protocol::linear::Sets;
use lanner_protocol::nonlinear::ot_nonlinear::{CotSupply, Layer, Rounding};
use lanner_protocol::nonlinear::windows::Windows;
use lanner_protocol::nonlinear::yao::Function;
use lanner_protocol::{Cost, OfflineCost, Party, ProtocolError};
use lanner_share::Ring;
use serde::{Deserialize, Serialize};

use super::{Built, Describe, Facts};
use crate::Held;

/// A function of each window, from `Z_2^from` to `Z_2^to`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activation {
    /// What it computes.
    pub function: Function,
    /// The windows.
    pub windows: Windows,
    /// Bits of the ring of the input.
    pub from: u32,
    /// Bits of the ring of the output.
    pub to: u32,
    /// How values are rescaled.
    pub rounding: Rounding,
}

/// The square of each element, over `Z_2^bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Square {
    /// Number of elements.
    pub values: usize,
    /// The ring.
    pub bits: u32,
}

impl Describe for Activation {
    fn name(&self) -> &'static str {
        "ot.activation"
    }

    fn ring(&self) -> Ring {
        Ring::Pow2(self.from)
    }

    fn output_ring(&self) -> Option<Ring> {
        Some(Ring::Pow2(self.to))
    }

    fn makes_known(&self, _: bool) -> bool {
        false
    }

    fn build(&self, _: &Sets) -> Result<Built, ProtocolError> {
        Layer::activation(self.function, &self.windows, self.from, self.to, self.rounding).map(Built::Compare)
    }
}

impl Describe for Square {
    fn name(&self) -> &'static str {
        "ot.square"
    }

    fn ring(&self) -> Ring {
        Ring::Pow2(self.bits)
    }

    fn makes_known(&self, _: bool) -> bool {
        false
    }

    fn build(&self, _: &Sets) -> Result<Built, ProtocolError> {
        Layer::square(self.values, self.bits).map(Built::Compare)
    }
}

impl Facts for Layer {
    fn offline_cost(&self, supplies: &mut CotSupply) -> Result<OfflineCost, ProtocolError> {
        Ok(self.offline_cost(supplies))
    }

    fn online_cost(&self) -> Result<Cost, ProtocolError> {
        Ok(self.online_cost())
    }

    fn held(&self) -> Held {
        Held { client: self.held(Party::Client), server: self.held(Party::Server) }
    }

    fn transfers(&self) -> [usize; 2] {
        [Party::Client, Party::Server].map(|party| self.transfers(party))
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let transfers: usize = Facts::transfers(self).into_iter().sum();
        vec![("instances", self.inputs() as u64), ("transfers", transfers as u64)]
    }
}
