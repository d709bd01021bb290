//! What a plan is made of.

use lanner_graph::Policy;
use lanner_protocol::linear::Convolution;
use lanner_protocol::linear::gazelle::Kernel;
use lanner_protocol::nonlinear::windows::Windows;
use lanner_protocol::nonlinear::yao::Function;
use serde::{Deserialize, Serialize};

/// Which published design the layers follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// GAZELLE: packed BFV layers and garbled circuits.
    Gazelle,
}

impl Mode {
    /// The mode's name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gazelle => "gazelle",
        }
    }
}

/// The protocol of one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "protocol", rename_all = "snake_case")]
pub enum Protocol {
    /// A linear layer on slots, over `Z_prime`.
    GazelleLinear {
        /// The layer's shape.
        shape: Convolution,
        /// The plaintext modulus.
        prime: u64,
        /// The kernel.
        kernel: Kernel,
    },
    /// The square of each element, over `Z_prime`.
    GazelleSquare {
        /// Number of elements.
        values: usize,
        /// The plaintext modulus.
        prime: u64,
    },
    /// Sums over windows of each party's own share: average pooling without the division.
    SumPool {
        /// The windows.
        windows: Windows,
        /// The ring.
        prime: u64,
    },
    /// `factors[0] * a + factors[1] * b` of each party's own shares.
    Add {
        /// Public factors.
        factors: [i64; 2],
        /// The ring.
        prime: u64,
    },
    /// `factor * x` of each party's own share.
    Scale {
        /// A public factor.
        factor: i64,
        /// The ring.
        prime: u64,
    },
    /// Elements of each party's own shares in another order or number, as the network's node says.
    Move {
        /// The node.
        node: usize,
        /// The ring.
        prime: u64,
    },
    /// The server draws its share anew, so that it is known before the input is.
    Remask {
        /// Number of elements.
        values: usize,
        /// The ring.
        prime: u64,
    },
    /// A garbled circuit on each window, from `Z_from` to `Z_to`.
    Yao {
        /// What it computes.
        function: Function,
        /// The windows.
        windows: Windows,
        /// The ring of the input.
        from: u64,
        /// The ring of the output.
        to: u64,
    },
    /// An oblivious arg-max whose result the client learns.
    YaoArgMax {
        /// Number of scores.
        classes: usize,
        /// The ring of the scores.
        from: u64,
    },
    /// The server opens its share of the scores to the client.
    Reveal {
        /// Number of scores.
        values: usize,
        /// The ring of the scores.
        from: u64,
    },
}

impl Protocol {
    /// The protocol's name in reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::GazelleLinear { shape, .. } if shape.image[0] * shape.image[1] == 1 => "gazelle.fc",
            Self::GazelleLinear { .. } => "gazelle.conv",
            Self::GazelleSquare { .. } => "gazelle.square",
            Self::SumPool { .. } => "local.sum_pool",
            Self::Add { .. } => "local.add",
            Self::Scale { .. } => "local.scale",
            Self::Move { .. } => "local.move",
            Self::Remask { .. } => "share.remask",
            Self::Yao { .. } => "yao.activation",
            Self::YaoArgMax { .. } => "yao.argmax",
            Self::Reveal { .. } => "share.reveal",
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
