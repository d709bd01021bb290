//! Maps with public coefficients that each party applies to its own shares alone: nothing is sent.

use lanner_protocol::ProtocolError;
use lanner_protocol::linear::Sets;
use lanner_protocol::nonlinear::windows::Windows;
use lanner_share::Ring;
use serde::{Deserialize, Serialize};

use super::{Built, Describe, Facts};

/// Sums over windows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SumPool {
    /// The windows.
    pub windows: Windows,
    /// The ring.
    pub ring: Ring,
}

/// `factors[0] * a + factors[1] * b`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Add {
    /// Public factors.
    pub factors: [i64; 2],
    /// The ring.
    pub ring: Ring,
}

/// `factor * x`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scale {
    /// A public factor.
    pub factor: i64,
    /// The ring.
    pub ring: Ring,
}

/// Elements in another order or number, as the network's node says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// The node.
    pub node: usize,
    /// The ring.
    pub ring: Ring,
}

/// Any of these maps.
#[derive(Clone, Debug)]
pub enum Local {
    /// Sums of groups of elements.
    SumGroups(Vec<Vec<usize>>),
    /// `factors[0] * a + factors[1] * b`.
    Add([i64; 2]),
    /// `factor * x`.
    Scale(i64),
    /// The movement of this node of the network.
    Move(usize),
}

impl Facts for Local {}

macro_rules! describe_local {
    ($protocol:ty, $name:literal, $build:expr) => {
        impl Describe for $protocol {
            fn name(&self) -> &'static str {
                $name
            }

            fn ring(&self) -> Ring {
                self.ring
            }

            fn makes_known(&self, inputs_known: bool) -> bool {
                inputs_known
            }

            fn build(&self, _: &Sets) -> Result<Built, ProtocolError> {
                let build: fn(&Self) -> Result<Local, ProtocolError> = $build;
                build(self).map(Built::Local)
            }
        }
    };
}

describe_local!(SumPool, "local.sum_pool", |pool| Ok(Local::SumGroups(pool.windows.groups()?)));
describe_local!(Add, "local.add", |add| Ok(Local::Add(add.factors)));
describe_local!(Scale, "local.scale", |scale| Ok(Local::Scale(scale.factor)));
describe_local!(Move, "local.move", |movement| Ok(Local::Move(movement.node)));
