//! The fixed-point network: what the two parties compute, integer for integer.
//!
//! Values are signed integers; a value's real meaning is `integer * scale`. A [`PublicNetwork`] is what both parties know; a
//! [`Network`] adds what only the model owner holds: integer weights, biases, scales and ranges. `docs/numerics.md` is normative.
//!
//! # Order of operators
//!
//! Value 0 is the input and value i + 1 is node i's output; a node takes values made before it, so there are no cycles. A value may
//! have several users. Every value has one ring; all inputs of a node and its output share it, and only `Rescale`, `Narrow` and
//! `Function` move a value into another. Every value but the last, which is the output, has a user.
//!
//! Where a nonlinear operator alone uses the value of another, the two belong to one run, which one circuit computes. In a compiled
//! network a run has the order `MaxPool`, one of `Relu` and `LeakyRelu`, `Clip`, `Rescale`, as far as the model has them in this
//! order. Rescaling commutes with the others (all are monotone), so a circuit may clip after the shift, against the rescaled bound.

mod bounds;
mod check;
mod faithful;
mod features;
mod file;
mod input;
mod lookups;
mod op;
mod public;
mod rebuilt;
mod repeats;
mod report;
mod tightened;
mod weights;

use std::collections::BTreeMap;

use crate::{CompileError, Reached};
pub use bounds::{Bound, linear_interval};
pub(crate) use bounds::{machine_bounds, propagate, sum_bound};
pub use features::{Features, Preprocessing};
pub use features::{MAX_CENTRE, MAX_EXPONENT, position};
pub use file::NetworkManifest;
pub use input::{InputScale, NetworkInput};
pub use lookups::Lookup;
pub use op::{FixedNode, FixedOp, MAX_BIAS_BITS, MAX_FACTOR, MAX_INPUTS};
pub use public::Ending;
pub use public::{Head, PublicNetwork};
pub use report::{Calibrated, Evidence, FunctionFit, ValueReport, WeightReport};
pub use weights::LinearWeights;

/// The version of the compiled network's format that this build reads and writes.
pub const FORMAT_VERSION: u32 = 7;

/// The version of one with parts that repeat, which builds that read [`FORMAT_VERSION`] alone do not know.
pub const REPEATING_FORMAT_VERSION: u32 = 8;

/// A compiled network: the public half, and the model owner's weights and ranges.
///
/// Invariant: checked as a whole when made or read; sums fit `i64`, and every proved range was recomputed from the weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    public: PublicNetwork,
    weights: BTreeMap<usize, LinearWeights>,
    values: Vec<ValueReport>,
    set_aside: usize,
    made: usize,
    given_up: usize,
    reached: Option<Reached>,
}

impl Network {
    /// Joins the halves and checks them against each other.
    ///
    /// # Errors
    /// [`CompileError::Network`] naming the node that contradicts another part.
    pub fn new(
        public: PublicNetwork,
        weights: BTreeMap<usize, LinearWeights>,
        calibrated: &[Calibrated],
    ) -> Result<Self, CompileError> {
        bounds::check_weights(&public, &weights)?;
        machine_bounds(&public, &weights)?;
        let bounds = propagate(&public, Some(&weights))?;
        let values = report::join(&public, &bounds, &weights, calibrated)?;
        Ok(Self { public, weights, values, set_aside: 0, made: 0, given_up: 0, reached: None })
    }

    /// Joins the halves, and finds what repeats: a part whose iterations differ in nothing but in what they read. What calibration saw of a value is
    /// what it saw of it in all iterations.
    ///
    /// # Errors
    /// As [`Self::new`]; [`CompileError::TooManyNodes`] where too few of them repeat.
    pub fn repeating(
        input: NetworkInput,
        nodes: Vec<FixedNode>,
        ending: Ending,
        weights: BTreeMap<usize, LinearWeights>,
        mut calibrated: Vec<Calibrated>,
    ) -> Result<Self, CompileError> {
        let repeats = repeats::find(&nodes, &weights, &calibrated);
        repeats::join_ranges(&repeats, &mut calibrated);
        let public = PublicNetwork::with_repeats(input, nodes, repeats, ending)?;
        Self::new(public, weights, &calibrated)
    }

    /// Gives every value of what repeats the range that it has over all iterations.
    pub fn join_ranges(&self, calibrated: &mut [Calibrated]) {
        repeats::join_ranges(self.public.repeats(), calibrated);
    }

    /// The network, compiled without a given number of its calibration samples.
    #[must_use]
    pub fn with_set_aside(self, set_aside: usize) -> Self {
        Self { set_aside, ..self }
    }

    /// The network, compiled with a given number of inputs of the compiler's own making beside its calibration samples, or without them after all.
    #[must_use]
    pub fn with_made(self, made: usize, given_up: usize) -> Self {
        Self { made, given_up, ..self }
    }

    /// The network, with what it reaches on its calibration samples.
    #[must_use]
    pub fn with_reached(self, reached: Reached) -> Self {
        Self { reached: Some(reached), ..self }
    }

    /// The network whose public half does not say what a unit of the output is worth: for policies that do without.
    #[must_use]
    pub fn without_public_output_scale(self) -> Self {
        Self { public: self.public.without_output_scale(), ..self }
    }

    /// Real value of one unit of the output: score = integer * scale. The owner knows it whether or not it is public.
    #[must_use]
    pub fn output_scale(&self) -> f64 {
        self.values.last().map_or(1.0, |value| value.scale)
    }

    /// The half that a client may see: no weight, bias, range or intermediate scale.
    #[must_use]
    pub const fn public(&self) -> &PublicNetwork {
        &self.public
    }

    /// The integers of node `node`, or `None` if it is not a linear layer.
    #[must_use]
    pub fn weights(&self, node: usize) -> Option<&LinearWeights> {
        self.weights.get(&node)
    }

    /// Scale, range and quantisation error of every value: the input, then each node's output.
    #[must_use]
    pub fn values(&self) -> &[ValueReport] {
        &self.values
    }

    /// The nodes that are upper bounds of the compiler's own, in order: what reaches one saturates.
    pub fn saturating(&self) -> impl Iterator<Item = usize> + '_ {
        let marked = self.values.iter().enumerate().filter(|(_, value)| value.saturates);
        marked.filter_map(|(value, _)| value.checked_sub(1))
    }

    /// The values that some accepted input may take out of their rings, as far as is known: what is calibrated, and what follows from that. None where all
    /// ranges are proved for every accepted input.
    pub fn unproved(&self) -> impl Iterator<Item = &ValueReport> {
        self.values.iter().filter(|value| value.evidence != Evidence::Proved)
    }

    /// What it reaches on its calibration samples, where a precision was asked for. The owner's alone.
    #[must_use]
    pub const fn reached(&self) -> Option<Reached> {
        self.reached
    }

    /// How many calibration samples no ring holds: on those, and on inputs like them, sums overflow.
    #[must_use]
    pub const fn set_aside(&self) -> usize {
        self.set_aside
    }

    /// How many inputs the compiler made, where the calibration samples covered little of a stated range or say little of probabilities: the network
    /// has room for them, and its precision is measured on them, too. None where there was not room for both.
    #[must_use]
    pub const fn made(&self) -> usize {
        self.made
    }

    /// How many such inputs were given up, since there was no room for them or no precision on them.
    #[must_use]
    pub const fn given_up(&self) -> usize {
        self.given_up
    }
}
