//! The half of a network that both parties know.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{FORMAT_VERSION, FixedNode, FixedOp, MAX_FACTOR, MAX_SLOPE_SHIFT, propagate};
use crate::accumulator::Accumulator;
use crate::float::check_input;
use crate::graph::check_version;
use crate::movement::{self, Source};
use crate::tensor::element_count;
use crate::window::{MAX_AXIS, MAX_WEIGHTS};
use crate::{CompileError, InputError};

/// More nodes than any network has.
const MAX_NODES: usize = 4096;
/// The largest number of elements of one value.
const MAX_ELEMENTS: usize = 1 << 24;
/// The largest number of elements of all values.
const MAX_ELEMENTS_IN_ALL: usize = 1 << 28;

/// A fixed-point network without weights: input, operators, shapes, rings, shifts and the output's scale.
///
/// Invariant: checked when made or read; see the module's text for the order of nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "PublicFile", into = "PublicFile")]
pub struct PublicNetwork {
    input: NetworkInput,
    nodes: Vec<FixedNode>,
    output_scale: f64,
    head: Head,
    /// Follows from the rest: see [`PublicNetwork::limit`].
    limits: Vec<i64>,
}

/// The network's input: shape, quantisation and the integers accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkInput {
    /// The name of the model's input.
    pub name: String,
    /// Its shape without the batch axis, in the model's own layout.
    pub shape: Vec<usize>,
    /// Real value of one unit.
    pub scale: f64,
    /// The smallest integer accepted: twice the calibrated minimum, or 0 if that is not negative.
    pub low: i64,
    /// The largest integer accepted: twice the calibrated maximum, or 0 if that is not positive.
    pub high: i64,
    /// The ring of the first layer, where the client's shares live.
    #[serde(rename = "prime")]
    pub accumulator: Accumulator,
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

impl NetworkInput {
    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements; never so in a checked network.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The smallest and the largest real value accepted: twice the calibrated range.
    #[must_use]
    pub fn limits(&self) -> [f64; 2] {
        [self.low as f64 * self.scale, self.high as f64 * self.scale]
    }

    /// The integers of a real input: `x / scale` in `f64`, rounded to nearest with ties to even.
    ///
    /// # Errors
    /// [`InputError`] if the length is wrong or a value is not finite or beyond [`NetworkInput::limits`].
    pub fn quantize(&self, input: &[f32]) -> Result<Vec<i64>, InputError> {
        check_input(input, &self.shape)?;
        let quantize = |(index, &x): (usize, &f32)| {
            let value = f64::from(x);
            let rounded = (value / self.scale).round_ties_even();
            if rounded < self.low as f64 || rounded > self.high as f64 {
                let [low, high] = self.limits();
                return Err(InputError::OutOfRange { index, value, low, high });
            }
            Ok(rounded as i64)
        };
        input.iter().enumerate().map(quantize).collect()
    }

    /// Checks integers that were quantised elsewhere.
    ///
    /// # Errors
    /// [`InputError::Length`] or [`InputError::OutOfRange`].
    pub fn check(&self, input: &[i64]) -> Result<(), InputError> {
        if input.len() != self.len() {
            return Err(InputError::Length {
                found: input.len(),
                expected: self.len(),
                shape: self.shape.clone(),
            });
        }
        match input.iter().position(|x| !(self.low..=self.high).contains(x)) {
            None => Ok(()),
            Some(index) => {
                let [low, high] = self.limits();
                Err(InputError::OutOfRange { index, value: input[index] as f64 * self.scale, low, high })
            }
        }
    }
}

impl PublicNetwork {
    /// Checks and makes a network.
    ///
    /// # Errors
    /// [`CompileError::Network`] naming the node or part that is wrong.
    pub fn new(
        input: NetworkInput,
        nodes: Vec<FixedNode>,
        output_scale: f64,
        head: Head,
    ) -> Result<Self, CompileError> {
        let mut network = Self { input, nodes, output_scale, head, limits: Vec::new() };
        network.check_input()?;
        if network.nodes.is_empty() || network.nodes.len() > MAX_NODES || !is_scale(output_scale) {
            return Err(wrong("the output", "it needs nodes, at most 4096, and a positive scale"));
        }
        let mut names = BTreeSet::new();
        let mut elements = network.input.len();
        for index in 0..network.nodes.len() {
            let node = &network.nodes[index];
            if node.name.is_empty() || node.name.len() > 1024 || !names.insert(&node.name) {
                return Err(wrong(&format!("node {index}"), "its name is empty, too long or taken"));
            }
            network
                .check_node(index)
                .map_err(|reason| CompileError::Network { place: node.name.clone(), reason })?;
            elements += node.len();
            if elements > MAX_ELEMENTS_IN_ALL {
                return Err(wrong(&node.name, "the values up to it have too many elements in all"));
            }
        }
        network.check_uses()?;
        network.limits = network.all_limits();
        propagate(&network, None)?;
        Ok(network)
    }

    /// Reads the JSON form.
    ///
    /// # Errors
    /// [`CompileError::Json`], [`CompileError::FormatVersion`] or [`CompileError::Network`].
    pub fn from_json(json: &str) -> Result<Self, CompileError> {
        check_version("public network", FORMAT_VERSION, json)?;
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

    /// The nodes in order; the last one's value is the output.
    #[must_use]
    pub fn nodes(&self) -> &[FixedNode] {
        &self.nodes
    }

    /// Real value of one unit of the output: score = integer * scale.
    #[must_use]
    pub const fn output_scale(&self) -> f64 {
        self.output_scale
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

    /// The largest absolute value that value `value` may take: its ring's limit before the next rescale on any way from it that meets
    /// no linear layer and no square.
    #[must_use]
    pub fn limit(&self, value: usize) -> i64 {
        self.limits[value]
    }

    /// The nodes that use value `value`, in order.
    pub fn users(&self, value: usize) -> impl Iterator<Item = usize> + '_ {
        let uses = move |node: &usize| self.nodes[*node].inputs.contains(&value);
        (value..self.nodes.len()).filter(uses)
    }

    /// For each element of node `node`'s output, the input element that it copies, or `None` for zero; `None` in all if the operator
    /// does more than move elements.
    #[must_use]
    pub fn sources(&self, node: usize) -> Option<Vec<Option<Source>>> {
        let FixedNode { op, inputs, shape, .. } = &self.nodes[node];
        let input = self.shape(inputs[0]);
        Some(match op {
            FixedOp::Reshape => movement::reshape_sources(input),
            FixedOp::Transpose { axes } => movement::transpose_sources(input, axes),
            FixedOp::Slice { starts, steps } => movement::slice_sources(input, starts, shape, steps),
            FixedOp::Pad { before } => movement::pad_sources(input, before, shape),
            FixedOp::Concat { axis } => {
                let inputs: Vec<&[usize]> = inputs.iter().map(|&value| self.shape(value)).collect();
                movement::concat_sources(&inputs, *axis, shape)
            }
            _ => return None,
        })
    }

    /// The limit of every value, the last first: a value's shift is the largest of those behind its users.
    fn all_limits(&self) -> Vec<i64> {
        let mut shifts = vec![0; self.nodes.len() + 1];
        for (index, node) in self.nodes.iter().enumerate().rev() {
            let shift = match node.op {
                FixedOp::Rescale { shift } => shift,
                FixedOp::Conv2d(_) | FixedOp::Linear { .. } | FixedOp::Square => 0,
                _ => shifts[index + 1],
            };
            for &input in &node.inputs {
                shifts[input] = shift.max(shifts[input]);
            }
        }
        shifts.iter().enumerate().map(|(value, &shift)| self.accumulator(value).limit(shift)).collect()
    }

    fn check_input(&self) -> Result<(), CompileError> {
        let input = &self.input;
        check_shape(&input.shape)
            .map_err(|reason| CompileError::Network { place: "the input".to_owned(), reason })?;
        let limit = input.accumulator.limit(0);
        if !is_scale(input.scale)
            || input.low > 0
            || input.high < 0
            || input.low < -limit
            || input.high > limit
        {
            return Err(wrong("the input", "its scale or its range is not usable"));
        }
        Ok(())
    }

    /// Checks node `index` against the values before it.
    fn check_node(&self, index: usize) -> Result<(), String> {
        let node = &self.nodes[index];
        let (least, most) = node.op.arity();
        if !(least..=most).contains(&node.inputs.len()) || node.inputs.iter().any(|&value| value > index) {
            let inputs = &node.inputs;
            return Err(format!(
                "it takes the values {inputs:?}, of which {least} to {most} must lie before it"
            ));
        }
        let inputs: Vec<&[usize]> = node.inputs.iter().map(|&value| self.shape(value)).collect();
        check_shape(&node.shape)?;
        let shape = output_shape(&node.op, &inputs, &node.shape)?;
        if shape != node.shape {
            return Err(format!("its shape is {:?}, the operator gives {shape:?}", node.shape));
        }
        let (before, after) = (self.accumulator(node.inputs[0]), node.accumulator);
        let changes = node.inputs.iter().any(|&value| self.accumulator(value) != after);
        match node.op {
            FixedOp::Rescale { shift } if shift >= before.bits() => {
                Err(format!("a shift of {shift} bits is too large"))
            }
            FixedOp::Rescale { .. } => Ok(()),
            _ if changes => Err("only Rescale may change the ring".to_owned()),
            FixedOp::Clip { high } if high < 0 || high > before.limit(0) => {
                Err(format!("the bound {high} is outside the ring"))
            }
            FixedOp::LeakyRelu { numerator, shift }
                if shift > MAX_SLOPE_SHIFT || !(0..=1_i64 << shift).contains(&numerator) =>
            {
                Err(format!("the slope {numerator} / 2^{shift} is not usable"))
            }
            FixedOp::Add { factors } => factors.into_iter().try_for_each(check_factor),
            FixedOp::Scale { factor } => check_factor(factor),
            _ => Ok(()),
        }
    }

    /// Refuses values that nothing uses.
    fn check_uses(&self) -> Result<(), CompileError> {
        let used: BTreeSet<usize> = self.nodes.iter().flat_map(|node| node.inputs.iter().copied()).collect();
        match (0..self.nodes.len()).find(|value| !used.contains(value)) {
            Some(0) => Err(wrong("the input", "no node uses it")),
            Some(value) => Err(wrong(&self.nodes[value - 1].name, "no node uses its value")),
            None => Ok(()),
        }
    }
}

/// The shape that an operator gives; where shapes are its only attribute it gives the `wanted` one.
fn output_shape(op: &FixedOp, inputs: &[&[usize]], wanted: &[usize]) -> Result<Vec<usize>, String> {
    let input = inputs[0];
    match op {
        FixedOp::Conv2d(geometry) => geometry.output(input),
        FixedOp::Linear { outputs } if input.len() == 1 && *outputs <= MAX_WEIGHTS / input[0] => {
            Ok(vec![*outputs])
        }
        FixedOp::Linear { .. } => {
            Err(format!("needs a vector and at most {MAX_WEIGHTS} weights, got shape {input:?}"))
        }
        FixedOp::SumPool(window) | FixedOp::MaxPool(window) => {
            let &[channels, height, width] = input else {
                return Err(format!("needs an input of shape [channels, height, width], got {input:?}"));
            };
            let [height, width] = window.output([height, width])?;
            Ok(vec![channels, height, width])
        }
        FixedOp::Reshape if element_count(wanted) == element_count(input) => Ok(wanted.to_vec()),
        FixedOp::Reshape => Err(format!("cannot reshape {input:?} to {wanted:?}")),
        FixedOp::Transpose { axes } => movement::transpose(input, axes),
        FixedOp::Slice { starts, steps } => movement::slice(input, starts, wanted, steps),
        FixedOp::Pad { before } => {
            let after = |axis: usize| {
                let rest = wanted.get(axis)?.checked_sub(input[axis])?;
                rest.checked_sub(*before.get(axis)?)
            };
            let after: Option<Vec<usize>> = (0..input.len()).map(after).collect();
            let after = after.ok_or_else(|| format!("cannot pad {input:?} to {wanted:?} with {before:?}"))?;
            movement::pad(input, before, &after)
        }
        FixedOp::Concat { axis } => movement::concat(inputs, *axis),
        FixedOp::Add { .. } if inputs[0] != inputs[1] => {
            Err(format!("the shapes {:?} and {:?} differ", inputs[0], inputs[1]))
        }
        FixedOp::Add { .. }
        | FixedOp::Scale { .. }
        | FixedOp::Square
        | FixedOp::Relu
        | FixedOp::LeakyRelu { .. }
        | FixedOp::Clip { .. }
        | FixedOp::Rescale { .. } => Ok(input.to_vec()),
    }
}

fn check_factor(factor: i64) -> Result<(), String> {
    if factor != 0 && (-MAX_FACTOR..=MAX_FACTOR).contains(&factor) {
        return Ok(());
    }
    Err(format!("the factor {factor} is 0 or beyond {MAX_FACTOR}"))
}

fn check_shape(shape: &[usize]) -> Result<(), String> {
    let axes_fit =
        !shape.is_empty() && shape.len() <= 8 && shape.iter().all(|size| (1..=MAX_AXIS).contains(size));
    if axes_fit && element_count(shape).is_some_and(|count| count <= MAX_ELEMENTS) {
        return Ok(());
    }
    Err(format!("the shape {shape:?} is empty or too large"))
}

fn is_scale(scale: f64) -> bool {
    scale.is_finite() && scale > 0.0
}

fn wrong(place: &str, reason: &str) -> CompileError {
    CompileError::Network { place: place.to_owned(), reason: reason.to_owned() }
}

/// The JSON form, before it is checked.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublicFile {
    format_version: u32,
    input: NetworkInput,
    nodes: Vec<FixedNode>,
    output_scale: f64,
    head: Head,
}

impl TryFrom<PublicFile> for PublicNetwork {
    type Error = CompileError;

    fn try_from(file: PublicFile) -> Result<Self, CompileError> {
        match file.format_version {
            FORMAT_VERSION => Self::new(file.input, file.nodes, file.output_scale, file.head),
            found => {
                Err(CompileError::FormatVersion { what: "public network", found, expected: FORMAT_VERSION })
            }
        }
    }
}

impl From<PublicNetwork> for PublicFile {
    fn from(network: PublicNetwork) -> Self {
        let PublicNetwork { input, nodes, output_scale, head, limits: _ } = network;
        Self { format_version: FORMAT_VERSION, input, nodes, output_scale, head }
    }
}
