//! What a plan is made of.

use lanner_graph::Policy;
use lanner_protocol::nonlinear::ot_nonlinear::Rounding;
use serde::{Deserialize, Serialize};

use crate::Protocol;

/// Which published design the layers follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// GAZELLE: packed BFV layers and garbled circuits.
    Gazelle,
    /// FALCON: layers in the frequency domain, garbled circuits.
    Falcon,
    /// Cheetah: coefficient-encoded layers over powers of two, oblivious transfer between them.
    Cheetah(Rounding),
}

impl Mode {
    /// The mode's name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gazelle => "gazelle",
            Self::Falcon => "falcon",
            Self::Cheetah(_) => "cheetah",
        }
    }
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The name of the model's node that the step ends with.
    pub name: String,
    /// The values that it reads: value 0 is the network's input, value `i + 1` what step `i` makes.
    pub inputs: Vec<usize>,
    /// How it is computed.
    #[serde(flatten)]
    pub protocol: Protocol,
}

/// The protocol of every step, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The design followed.
    pub mode: Mode,
    /// What the client learns.
    pub policy: Policy,
    /// The steps.
    pub steps: Vec<Step>,
}
