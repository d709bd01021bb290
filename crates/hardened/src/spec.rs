//! The public description of a network.

use lanner_bfv::ParameterSet;
use lanner_step::{Convolution, Function, Windows};
use serde::{Deserialize, Serialize};

/// A network as both parties know it: layers one behind the other, modulo one prime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The parameter set of all ciphertexts.
    pub set: ParameterSet,
    /// The prime, which is 1 modulo twice the set's degree.
    pub prime: u64,
    /// The least value that an element of the input may have.
    pub low: i64,
    /// Bits of an element above the least: all values of so many bits are taken.
    pub bits: u32,
    /// The layers.
    pub layers: Vec<Layer>,
    /// What the client is told of the last one's outputs.
    pub told: Told,
}

/// A linear layer, and what is computed on its outputs in circuits; nothing behind the last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// The network's node that has the weights.
    pub node: String,
    /// Windows of what is in front, whose sums are the layer's inputs; none where it reads the elements themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summed: Option<Windows>,
    /// The layer's shape.
    pub shape: Convolution,
    /// What turns its outputs into the next one's elements.
    pub activation: Option<Activation>,
}

impl Layer {
    /// Elements that it reads.
    pub(crate) fn inputs(&self) -> usize {
        self.summed.as_ref().map_or_else(|| self.shape.inputs(), Windows::inputs)
    }
}

/// A function of windows of a layer's outputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Activation {
    /// What it computes.
    pub function: Function,
    /// The windows.
    pub windows: Windows,
}

/// What the client is told of the scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// Every score.
    Scores,
    /// The index of the largest one.
    Label,
    /// The indices of so many of the largest.
    TopK(usize),
    /// Those above zero.
    Positive,
}
