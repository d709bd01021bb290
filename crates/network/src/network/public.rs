//! The half of a network that both parties know.

use serde::{Deserialize, Serialize};

use super::check::{check, check_limits};
use super::repeats::{self, Written};
use super::{FORMAT_VERSION, FixedNode, FixedOp, NetworkInput, REPEATING_FORMAT_VERSION, propagate};
use crate::CompileError;
use crate::accumulator::Accumulator;
use crate::elementwise::FixedClip;
use crate::grid::GridFactor;
use crate::integer::rescale;
use crate::movement::{Moves, Source};
use crate::repeats::Repeat;
use crate::version::check_version;

/// A fixed-point network without weights: input, operators, shapes, rings, shifts and, where the output policy needs it, the output's
/// scale.
///
/// Invariant: checked when made or read; see the module's text for the order of nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "PublicFile", into = "PublicFile")]
pub struct PublicNetwork {
    input: NetworkInput,
    nodes: Vec<FixedNode>,
    /// In order.
    repeats: Vec<Repeat>,
    output_scale: Option<GridFactor>,
    head: Head,
    /// Whether values of which no differences are taken may fill their rings.
    fills_rings: bool,
    /// Follows from the rest: see [`PublicNetwork::limit`].
    limits: Vec<i128>,
    /// Likewise: see [`PublicNetwork::users`].
    users: Vec<Vec<usize>>,
}

/// What the float graph did with its scores at the end; the output policy decides what of it is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Head {
    /// The graph ends in scores.
    #[default]
    Scores,
    /// The graph ended in Softmax.
    Softmax,
    /// The graph ended in `ArgMax`, with or without Softmax before it.
    ArgMax,
}

/// What a public network says beside its input and its nodes.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    /// The output's scale over the input's, if it is public.
    pub output_scale: Option<GridFactor>,
    /// What the float graph did with the scores.
    pub head: Head,
    /// Whether values of which no differences are taken may fill their rings: see [`PublicNetwork::limit`].
    pub fills_rings: bool,
}

impl PublicNetwork {
    /// Checks and makes a network; the output's scale is the input's times a factor.
    ///
    /// # Errors
    /// [`CompileError::Network`] naming the node or part that is wrong.
    pub fn new(
        input: NetworkInput,
        nodes: Vec<FixedNode>,
        output_scale: Option<GridFactor>,
        head: Head,
    ) -> Result<Self, CompileError> {
        Self::with_repeats(input, nodes, Vec::new(), Ending { output_scale, head, fills_rings: false })
    }

    /// As [`Self::new`], of nodes some of which repeat.
    pub(super) fn with_repeats(
        input: NetworkInput,
        nodes: Vec<FixedNode>,
        repeats: Vec<Repeat>,
        ending: Ending,
    ) -> Result<Self, CompileError> {
        let Ending { output_scale, head, fills_rings } = ending;
        let (limits, users) = (Vec::new(), Vec::new());
        let mut network = Self { input, nodes, repeats, output_scale, head, fills_rings, limits, users };
        check(&network)?;
        network.users = network.all_users();
        network.limits = network.all_limits();
        check_limits(&network)?;
        propagate(&network, None)?;
        Ok(network)
    }

    /// Reads the JSON form.
    ///
    /// # Errors
    /// [`CompileError::Json`], [`CompileError::FormatVersion`] or [`CompileError::Network`].
    pub fn from_json(json: &str) -> Result<Self, CompileError> {
        check_version("public network", &FORMAT_VERSIONS, json)?;
        let file: PublicFile = serde_json::from_str(json)
            .map_err(|reason| CompileError::Json { what: "public network", reason: reason.to_string() })?;
        Self::try_from(file)
    }

    /// Writes the JSON form; the same network always gives the same bytes.
    ///
    /// # Errors
    /// Never for a checked network; the serialiser's error otherwise.
    pub fn to_json(&self) -> Result<String, CompileError> {
        serde_json::to_string(self)
            .map_err(|reason| CompileError::Json { what: "public network", reason: reason.to_string() })
    }

    /// The input.
    #[must_use]
    pub const fn input(&self) -> &NetworkInput {
        &self.input
    }

    /// The parts of the nodes that repeat, in order: a recurrent layer's steps, which have weights, tables and shifts in common.
    #[must_use]
    pub fn repeats(&self) -> &[Repeat] {
        &self.repeats
    }

    /// The version of its files.
    pub(super) const fn format_version(&self) -> u32 {
        if self.repeats.is_empty() { FORMAT_VERSION } else { REPEATING_FORMAT_VERSION }
    }

    /// What is said of it beside its input and its nodes.
    pub(super) const fn ending(&self) -> Ending {
        Ending { output_scale: self.output_scale, head: self.head, fills_rings: self.fills_rings }
    }

    /// The nodes in order; the last one's value is the output.
    #[must_use]
    pub fn nodes(&self) -> &[FixedNode] {
        &self.nodes
    }

    /// Real value of one unit of the output, if it is public: score = integer * scale. A multiple of the input's on the grid.
    #[must_use]
    pub fn output_scale(&self) -> Option<f64> {
        self.output_scale.map(|factor| self.input.scale.unit() * factor.value())
    }

    /// The network that does not say what a unit of the output is worth.
    #[must_use]
    pub(super) fn without_output_scale(self) -> Self {
        Self { output_scale: None, ..self }
    }

    /// The number of output scores.
    #[must_use]
    pub fn output_len(&self) -> usize {
        self.shape(self.nodes.len()).iter().product()
    }

    /// What the float graph did with the scores.
    #[must_use]
    pub const fn head(&self) -> Head {
        self.head
    }

    /// The shape of value `value` (0: the input; i + 1: node i's output).
    #[must_use]
    pub fn shape(&self, value: usize) -> &[usize] {
        if value == 0 { &self.input.shape } else { &self.nodes[value - 1].shape }
    }

    /// The ring of value `value`.
    #[must_use]
    pub fn accumulator(&self, value: usize) -> Accumulator {
        if value == 0 { self.input.accumulator } else { self.nodes[value - 1].accumulator }
    }

    /// The largest absolute value that value `value` may take, never negative: its ring's limit before the next rescale on any way from it that meets
    /// no linear layer, no product of secrets and no function by polynomials. In a network that fills its rings there is no room for differences
    /// where none are taken on these ways.
    #[must_use]
    pub fn limit(&self, value: usize) -> i128 {
        self.limits[value]
    }

    /// Whether its values do not all fit integers of 64 bits.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        (0..=self.nodes.len()).any(|value| self.accumulator(value).bits() >= i64::BITS - 2)
    }

    /// The sums of absolute products in one output element must stay below this, so that none overflows the integers that the reference runs on.
    pub(super) fn machine_limit(&self) -> i128 {
        if self.is_wide() { 1 << 126 } else { 1 << 62 }
    }

    /// The nodes that use value `value`, in order.
    pub fn users(&self, value: usize) -> impl Iterator<Item = usize> + '_ {
        self.users[value].iter().copied()
    }

    /// The value behind node `node`, a `Clip`, that is largest where its bound binds, and that largest integer: the value that is rescaled,
    /// where a rescale alone reads the bound one, else the bound one. `None` if it is another operator.
    #[must_use]
    pub fn bounded(&self, node: usize) -> Option<(usize, i64)> {
        let FixedOp::Clip(FixedClip { high }) = self.nodes.get(node)?.op else { return None };
        let mut users = self.users(node + 1);
        match (users.next(), users.next()) {
            (Some(user), None) => match self.nodes[user].op {
                FixedOp::Rescale { shift } => Some((user + 1, rescale(high, shift))),
                _ => Some((node + 1, high)),
            },
            _ => Some((node + 1, high)),
        }
    }

    /// For each element of node `node`'s output, the input element that it copies, or `None` for zero; `None` in all if the operator
    /// does more than move elements.
    #[must_use]
    pub fn sources(&self, node: usize) -> Option<Vec<Option<Source>>> {
        self.moves(node).map(|moves| moves.sources())
    }

    /// How the elements of node `node`'s inputs move, if the operator does no more than that.
    pub(crate) fn moves(&self, node: usize) -> Option<Moves> {
        let FixedNode { op, inputs, shape, .. } = &self.nodes[node];
        let input = self.shape(inputs[0]);
        Some(match op {
            FixedOp::Reshape => Moves::reshape(input),
            FixedOp::Transpose { axes } => Moves::transpose(input, axes),
            FixedOp::Slice { starts, steps } => Moves::slice(input, starts, shape, steps),
            FixedOp::Pad { before } => Moves::pad(input, before, shape),
            FixedOp::Concat { axis } => {
                let inputs: Vec<&[usize]> = inputs.iter().map(|&value| self.shape(value)).collect();
                Moves::concat(&inputs, *axis, shape)
            }
            _ => return None,
        })
    }

    /// The nodes that use each value.
    fn all_users(&self) -> Vec<Vec<usize>> {
        let mut users = vec![Vec::new(); self.nodes.len() + 1];
        for (node, FixedNode { inputs, .. }) in self.nodes.iter().enumerate() {
            for input in inputs {
                if users[*input].last() != Some(&node) {
                    users[*input].push(node);
                }
            }
        }
        users
    }

    /// The limit of every value, the last first: a value's shift is the largest of those behind its users, and of the scores differences are taken.
    fn all_limits(&self) -> Vec<i128> {
        let mut behind = vec![Behind::default(); self.nodes.len() + 1];
        behind[self.nodes.len()].differences = true;
        for (index, node) in self.nodes.iter().enumerate().rev() {
            let of_node = match node.op {
                // What comes behind a rescale may be computed with it, or before it.
                FixedOp::Rescale { shift } => {
                    let of_next = (behind[index + 1].room - 1).saturating_mul(1 << shift);
                    Behind { shift, room: self.room_before(index, shift).min(of_next), ..behind[index + 1] }
                }
                _ if node.op.multiplies() || node.op.changes_ring() => {
                    Behind { differences: node.op.takes_differences(), ..Behind::default() }
                }
                _ => Behind {
                    differences: behind[index + 1].differences || node.op.takes_differences(),
                    ..behind[index + 1]
                },
            };
            for &input in &node.inputs {
                behind[input].join(of_node);
            }
        }
        let limit = |(value, behind): (usize, &Behind)| {
            let ring = self.accumulator(value);
            let limit = if behind.differences || !self.fills_rings {
                ring.limit(behind.shift)
            } else {
                ring.limit_without_differences(behind.shift)
            };
            limit.min(behind.room)
        };
        behind.iter().enumerate().map(limit).collect()
    }

    /// What a rescale's input may be for what is left of it to fit a ring that has no bits more than are left; anything where there are more.
    fn room_before(&self, rescale: usize, shift: u32) -> i128 {
        let [before, after] =
            [self.nodes[rescale].inputs[0], rescale + 1].map(|value| self.accumulator(value));
        let is_tight = shift > 0
            && before.is_power_of_two()
            && after.is_power_of_two()
            && after.bits() + shift == before.bits();
        // Rounded down, and one more: as rescales may round.
        if is_tight { (after.limit(0) << shift) - 1 } else { i128::MAX }
    }
}

/// What is computed of a value without a linear layer, a product of secrets or a function on the way.
#[derive(Clone, Copy)]
struct Behind {
    /// The largest shift of the rescales that it reaches.
    shift: u32,
    /// Whether differences of its elements are taken.
    differences: bool,
    /// The largest absolute value that the rings of these rescales have room for.
    room: i128,
}

impl Default for Behind {
    fn default() -> Self {
        Self { shift: 0, differences: false, room: i128::MAX }
    }
}

impl Behind {
    fn join(&mut self, other: Self) {
        self.shift = self.shift.max(other.shift);
        self.differences |= other.differences;
        self.room = self.room.min(other.room);
    }
}

/// The JSON form, before it is checked.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublicFile {
    format_version: u32,
    input: NetworkInput,
    /// Those that repeat once.
    nodes: Vec<FixedNode>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    repeats: Vec<Written>,
    /// Over the input's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_scale: Option<GridFactor>,
    head: Head,
    /// Whether values of which no differences are taken may fill their rings.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    fills_rings: bool,
}

impl TryFrom<PublicFile> for PublicNetwork {
    type Error = CompileError;

    fn try_from(file: PublicFile) -> Result<Self, CompileError> {
        let PublicFile { format_version, input, nodes, repeats, output_scale, head, fills_rings } = file;
        let expected = if repeats.is_empty() { FORMAT_VERSION } else { REPEATING_FORMAT_VERSION };
        if format_version != expected {
            let found = format_version;
            return Err(CompileError::FormatVersion { what: "public network", found, expected });
        }
        let (nodes, repeats) = repeats::read(nodes, &repeats)?;
        Self::with_repeats(input, nodes, repeats, Ending { output_scale, head, fills_rings })
    }
}

/// The versions that this build reads.
pub(super) const FORMAT_VERSIONS: [u32; 2] = [FORMAT_VERSION, REPEATING_FORMAT_VERSION];

impl From<PublicNetwork> for PublicFile {
    fn from(network: PublicNetwork) -> Self {
        let format_version = network.format_version();
        let PublicNetwork { input, nodes, repeats, output_scale, head, fills_rings, .. } = network;
        let (nodes, repeats) = repeats::write(nodes, &repeats);
        Self { format_version, input, nodes, repeats, output_scale, head, fills_rings }
    }
}
