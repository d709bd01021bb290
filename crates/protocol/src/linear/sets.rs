//! The parameter sets of linear layers.

use lanner_bfv::{ParameterSet, Parameters};
use serde::{Deserialize, Serialize};

use crate::ProtocolError;

/// A parameter set that linear layers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Set {
    /// [`ParameterSet::A0`]: `N = 4096`, one limb of 50 bits.
    A0,
    /// [`ParameterSet::A1`]: `N = 4096`, three limbs of 35 bits.
    A1,
    /// [`ParameterSet::A2`]: `N = 8192`, three limbs of 40 bits.
    A2,
    /// [`ParameterSet::B`]: `N = 8192`, three limbs of 50 bits and a special one.
    B,
    /// [`ParameterSet::W`]: `N = 8192`, four limbs of 164 bits together and a special one.
    W,
}

/// All of them, built once.
#[derive(Clone, Debug)]
pub struct Sets {
    a0: Parameters,
    a1: Parameters,
    a2: Parameters,
    b: Parameters,
    w: Parameters,
}

impl Set {
    /// The ring degree of its ciphertexts.
    #[must_use]
    pub const fn degree(self) -> usize {
        match self {
            Self::A0 | Self::A1 => 4096,
            Self::A2 | Self::B | Self::W => 8192,
        }
    }

    /// The set's name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A0 => "A0",
            Self::A1 => "A1",
            Self::A2 => "A2",
            Self::B => "B",
            Self::W => "W",
        }
    }
}

impl Sets {
    /// Builds the sets.
    ///
    /// # Errors
    /// None: the sets are ones that are accepted.
    pub fn new() -> Result<Self, ProtocolError> {
        Ok(Self {
            a0: ParameterSet::A0.parameters()?,
            a1: ParameterSet::A1.parameters()?,
            a2: ParameterSet::A2.parameters()?,
            b: ParameterSet::B.parameters()?,
            w: ParameterSet::W.parameters()?,
        })
    }

    /// The parameters of a set.
    #[must_use]
    pub fn get(&self, set: Set) -> &Parameters {
        match set {
            Set::A0 => &self.a0,
            Set::A1 => &self.a1,
            Set::A2 => &self.a2,
            Set::B => &self.b,
            Set::W => &self.w,
        }
    }
}
