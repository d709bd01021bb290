//! The items as fixed-point nodes: rings, shifts and scales, in the order of the items.
//!
//! A group of values that share a ring (see [`Structure`]) gets its ring from its first linear layer. Where a later member of the
//! group does not fit, all is lowered again with a larger ring for the group.

use std::collections::{BTreeMap, BTreeSet};

use super::QuantizationOptions;
use super::calibrate::Range;
use super::item::{Action, Item};
use super::layer::{RealLayer, Relation, Room};
use super::reach::{Reached, ends, to_rescales};
use super::structure::Structure;
use crate::CompileError;
use crate::accumulator::Accumulator;
use crate::network::{
    Bound, Calibrated, Evidence, FixedNode, FixedOp, Head, LinearWeights, MAX_FACTOR, Network, NetworkInput,
    PublicNetwork,
};
use crate::pass::Draft;

/// What a ring not chosen yet allows: more than any ring, far from overflow.
const UNBOUNDED: i64 = 1 << 60;

/// What is lowered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) draft: &'a Draft,
    pub(super) items: &'a [Item],
    /// The calibrated input.
    pub(super) input: Range,
    pub(super) options: &'a QuantizationOptions,
}

/// The nodes of a network, before calibration has seen their integers.
#[derive(Debug)]
pub(super) struct Lowered {
    input: NetworkInput,
    nodes: Vec<FixedNode>,
    weights: BTreeMap<usize, LinearWeights>,
    /// The scale of each value: the input, then each node's.
    scales: Vec<f64>,
    errors: BTreeMap<usize, f64>,
    output_scale: f64,
}

impl Lowered {
    /// The network; without calibrated ranges they count as 0.
    pub(super) fn network(
        &self,
        head: Head,
        measured: Option<&[Calibrated]>,
    ) -> Result<Network, CompileError> {
        let public = PublicNetwork::new(self.input.clone(), self.nodes.clone(), self.output_scale, head)?;
        let error = |value: usize| value.checked_sub(1).and_then(|node| self.errors.get(&node)).copied();
        let unseen = |(value, &scale)| Calibrated { scale, low: 0, high: 0, weight_error: error(value) };
        let unmeasured: Vec<Calibrated> = self.scales.iter().enumerate().map(unseen).collect();
        Network::new(public, self.weights.clone(), measured.unwrap_or(&unmeasured))
    }
}

/// Chooses rings, shifts and scales.
///
/// # Errors
/// [`CompileError::RangeOverflow`] naming the layer that fits no ring offered.
pub(super) fn lower(source: &Source<'_>, structure: &Structure, slack: f64) -> Result<Lowered, CompileError> {
    let mut least = vec![0; structure.groups];
    loop {
        match Builder::new(*source, structure, slack, &least)?.build() {
            Ok(lowered) => return Ok(lowered),
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::Narrow { group, next, error }) => {
                if next >= source.options.accumulators.len() {
                    return Err(error);
                }
                least[group] = next;
            }
        }
    }
}

/// Why lowering stopped.
enum Stop {
    Error(CompileError),
    /// The ring of a group is too small; `next` is the first that may do.
    Narrow {
        group: usize,
        next: usize,
        error: CompileError,
    },
}

impl From<CompileError> for Stop {
    fn from(error: CompileError) -> Self {
        Self::Error(error)
    }
}

/// Where an item's value is, and the real value of a unit of it.
#[derive(Clone, Copy, Debug)]
struct Placed {
    value: usize,
    scale: f64,
}

/// A node whose ring is its group's.
struct Pending {
    name: String,
    op: FixedOp,
    inputs: Vec<usize>,
    shape: Vec<usize>,
    group: usize,
}

struct Builder<'a> {
    source: Source<'a>,
    structure: &'a Structure,
    slack: f64,
    /// The first ring that each group may take.
    least: &'a [usize],
    /// The number of each group's ring, once chosen.
    rings: Vec<Option<usize>>,
    /// The largest absolute value of each group while its ring is not chosen.
    needs: Vec<i64>,
    /// Each item's value as its users take it: the input first.
    placed: Vec<Option<Placed>>,
    input: NetworkInput,
    names: BTreeSet<String>,
    nodes: Vec<Pending>,
    weights: BTreeMap<usize, LinearWeights>,
    scales: Vec<f64>,
    errors: BTreeMap<usize, f64>,
    /// Each value's bound by the weights, and as far as the public half shows it.
    bounds: Vec<[Bound; 2]>,
}

impl<'a> Builder<'a> {
    fn new(
        source: Source<'a>,
        structure: &'a Structure,
        slack: f64,
        least: &'a [usize],
    ) -> Result<Self, CompileError> {
        let levels = levels(source.options);
        let scale = source.input.width() / levels;
        if scale <= f64::MIN_POSITIVE {
            let reason = "every value is 0; pass samples like those that the model will see".to_owned();
            return Err(CompileError::Calibration { reason });
        }
        let twice = |end: f64| (2.0 * end / scale).round_ties_even() as i64;
        let (low, high) = (twice(source.input.low), twice(source.input.high));
        let graph_input = &source.draft.graph.inputs[0];
        let input = NetworkInput {
            name: graph_input.name.clone(),
            shape: graph_input.shape.clone(),
            scale,
            low,
            high,
            accumulator: source.options.accumulators[0],
        };
        let mut needs = vec![0; structure.groups];
        needs[structure.group_behind(0)] = high.max(-low);
        let mut placed = vec![None; source.items.len() + 1];
        placed[0] = Some(Placed { value: 0, scale });
        Ok(Self {
            source,
            structure,
            slack,
            least,
            rings: vec![None; structure.groups],
            needs,
            placed,
            input,
            names: BTreeSet::new(),
            nodes: Vec::new(),
            weights: BTreeMap::new(),
            scales: vec![scale],
            errors: BTreeMap::new(),
            bounds: vec![[Bound { low, high, evidence: Evidence::Proved }; 2]],
        })
    }

    fn build(mut self) -> Result<Lowered, Stop> {
        for index in 0..self.source.items.len() {
            let mut placed = self.add_item(index)?;
            if self.structure.rescaled[index + 1] {
                placed = self.add_rescale(index + 1, placed)?;
            }
            self.placed[index + 1] = Some(placed);
        }
        self.finish()
    }

    /// Chooses the rings that no layer has chosen, and fills them in.
    fn finish(mut self) -> Result<Lowered, Stop> {
        let output = self.place(self.source.items.len())?;
        self.input.accumulator = self.ring_or_smallest(self.structure.group_behind(0), "the input")?;
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for pending in &self.nodes {
            let accumulator = self.ring_or_smallest(pending.group, &pending.name)?;
            let op = match pending.op {
                // A bound beyond the ring never binds.
                FixedOp::Clip { high } => FixedOp::Clip { high: high.clamp(0, accumulator.limit(0)) },
                ref op => op.clone(),
            };
            let Pending { name, inputs, shape, .. } = pending;
            nodes.push(FixedNode {
                name: name.clone(),
                op,
                inputs: inputs.clone(),
                shape: shape.clone(),
                accumulator,
            });
        }
        let Self { input, weights, scales, errors, .. } = self;
        Ok(Lowered { input, nodes, weights, scales, errors, output_scale: output.scale })
    }

    fn ring_or_smallest(&self, group: usize, name: &str) -> Result<Accumulator, CompileError> {
        let rings = &self.source.options.accumulators;
        let chosen = self.rings[group].map(|ring| rings[ring]);
        let need = self.needs[group];
        let smallest = || rings[self.least[group]..].iter().copied().find(|ring| need <= ring.limit(0));
        chosen.or_else(smallest).ok_or_else(|| CompileError::RangeOverflow {
            node: name.to_owned(),
            bound: i128::from(need),
            limit: rings.last().map_or(0, |ring| ring.limit(0)),
        })
    }

    /// The place of a value; items use only earlier values.
    fn place(&self, value: usize) -> Result<Placed, Stop> {
        let missing = || CompileError::Network {
            place: format!("value {value}"),
            reason: "it is used before it is made".to_owned(),
        };
        self.placed[value].ok_or_else(|| missing().into())
    }

    fn add_item(&mut self, index: usize) -> Result<Placed, Stop> {
        let item = &self.source.items[index];
        let (value, x) = (index + 1, self.place(item.inputs[0])?);
        let one = |op| (op, x.scale * item.action.unit());
        let (op, scale) = match &item.action {
            Action::Layer { node, .. } => return self.add_layer(index, *node, x),
            Action::Add | Action::Move(FixedOp::Concat { .. }) => return self.add_join(index),
            Action::Factor(factor) if *factor > 0.0 => {
                return Ok(Placed { scale: x.scale * item.action.unit(), ..x });
            }
            Action::Factor(_) => one(FixedOp::Scale { factor: -1 }),
            Action::Mean(window) => one(FixedOp::SumPool(*window)),
            Action::Max(window) => one(FixedOp::MaxPool(*window)),
            Action::Relu => one(FixedOp::Relu),
            Action::Leaky { numerator, shift } => {
                one(FixedOp::LeakyRelu { numerator: *numerator, shift: *shift })
            }
            Action::ClipAbove(max) => {
                one(FixedOp::Clip { high: (f64::from(*max) / x.scale).round_ties_even().max(0.0) as i64 })
            }
            Action::Square => (FixedOp::Square, x.scale * x.scale),
            Action::Move(op) => one(op.clone()),
        };
        self.add(value, &item.name, op, &[x.value], scale)
    }

    /// A sum or a join of values: public factors bring them to one scale.
    fn add_join(&mut self, index: usize) -> Result<Placed, Stop> {
        let item = &self.source.items[index];
        let inputs = item.inputs.iter().map(|&input| self.place(input)).collect::<Result<Vec<_>, _>>()?;
        let scales: Vec<f64> = inputs.iter().map(|input| input.scale).collect();
        let (factors, scale) = common_scale(&scales).ok_or_else(|| CompileError::UnsupportedOp {
            node: item.name.clone(),
            operator: if matches!(item.action, Action::Add) { "Add" } else { "Concat" },
            attribute: format!("scales of {scales:?}"),
            fix: "bring its inputs to ranges of one magnitude",
        })?;
        if let (Action::Add, &[a, b]) = (&item.action, factors.as_slice()) {
            let values = [inputs[0].value, inputs[1].value];
            return self.add(index + 1, &item.name, FixedOp::Add { factors: [a, b] }, &values, scale);
        }
        let mut values = Vec::with_capacity(inputs.len());
        for ((input, &factor), &value) in inputs.iter().zip(&factors).zip(&item.inputs) {
            if factor == 1 {
                values.push(input.value);
                continue;
            }
            let (name, shape) = (format!("{}/scale", item.name), self.shape_of(value));
            let group = self.structure.group_before(index + 1);
            let limit = self.limit(index + 1, group, scale);
            let op = FixedOp::Scale { factor };
            values.push(self.push(name, op, vec![input.value], shape, group, scale, limit)?);
        }
        let Action::Move(op) = &item.action else { return Err(self.lost(index).into()) };
        self.add(index + 1, &item.name, op.clone(), &values, scale)
    }

    fn lost(&self, index: usize) -> CompileError {
        CompileError::Network {
            place: self.source.items[index].name.clone(),
            reason: "it joins another number of values than it takes".to_owned(),
        }
    }

    fn shape_of(&self, value: usize) -> Vec<usize> {
        match value.checked_sub(1) {
            None => self.input.shape.clone(),
            Some(item) => self.source.items[item].shape.clone(),
        }
    }

    /// Adds a node without weights for item value `value`.
    fn add(
        &mut self,
        value: usize,
        name: &str,
        op: FixedOp,
        inputs: &[usize],
        scale: f64,
    ) -> Result<Placed, Stop> {
        let group = self.structure.group_before(value);
        let limit = self.limit(value, group, scale);
        let shape = self.shape_of(value);
        let value = self.push(name.to_owned(), op, inputs.to_vec(), shape, group, scale, limit)?;
        Ok(Placed { value, scale })
    }

    fn add_rescale(&mut self, value: usize, x: Placed) -> Result<Placed, Stop> {
        let before = self.ring(self.structure.group_before(value));
        let shift = self.shift(value, x.scale).min(before.map_or(0, |ring| ring.bits() - 1));
        let group = self.structure.group_behind(value);
        let name = match x.value.checked_sub(1) {
            Some(node) => format!("{}/rescale", self.nodes[node].name),
            None => format!("{}/rescale", self.input.name),
        };
        let (scale, shape) = (x.scale * f64::from(shift).exp2(), self.shape_of(value));
        let limit = self.ring(group).map_or(UNBOUNDED, |ring| ring.limit(0));
        let op = FixedOp::Rescale { shift };
        let value = self.push(name, op, vec![x.value], shape, group, scale, limit)?;
        Ok(Placed { value, scale })
    }

    /// Adds a linear layer, in its group's ring or in the smallest that takes it.
    fn add_layer(&mut self, index: usize, node: usize, x: Placed) -> Result<Placed, Stop> {
        let item = &self.source.items[index];
        let value = index + 1;
        let real = RealLayer::new(self.source.draft, node, item.shape[0])?;
        let group = self.structure.group_before(value);
        let rings = &self.source.options.accumulators;
        let candidates = match self.rings[group] {
            Some(ring) => ring..ring + 1,
            None => self.least[group]..rings.len(),
        };
        let reached = to_rescales(self.source.items, self.structure, value);
        let mut tried = (0, 0);
        for ring in candidates.clone() {
            let limit = rings[ring].limit(self.widest_shift(&reached, rings[ring]));
            let room = self.room(x, &reached, limit);
            let fits = self.rings[group].is_some() || self.needs[group] <= rings[ring].limit(0);
            if fits && let Some(fitted) = real.fit(&room, self.source.options, self.slack) {
                self.rings[group] = Some(ring);
                self.errors.insert(self.nodes.len(), real.error(&fitted));
                self.weights.insert(self.nodes.len(), fitted.weights);
                let op = match item.action {
                    Action::Layer { geometry: Some(geometry), .. } => FixedOp::Conv2d(geometry),
                    _ => FixedOp::Linear { outputs: item.shape[0] },
                };
                return self.add(value, &item.name, op, &[x.value], fitted.scale * x.scale);
            }
            tried = (real.needed(&room, self.source.options).max(i128::from(self.needs[group])), limit);
        }
        let error = CompileError::RangeOverflow { node: item.name.clone(), bound: tried.0, limit: tried.1 };
        Err(Stop::Narrow { group, next: candidates.end, error })
    }

    /// What the layer that makes the first value reached must respect in a ring with this limit.
    fn room(&self, x: Placed, reached: &[Reached], limit: i64) -> Room {
        let peak = |at: &Reached| self.source.items[at.value - 1].range.magnitude() / at.unit;
        let squares = |user: &usize| matches!(self.source.items[*user].action, Action::Square);
        let is_squared = |at: &Reached| {
            !self.structure.rescaled[at.value] && self.structure.users[at.value].iter().any(squares)
        };
        Room {
            input: self.bounds[x.value][0],
            input_scale: x.scale,
            peak: reached.iter().map(peak).fold(0.0, f64::max),
            growth: reached.iter().map(|at| at.growth).fold(1.0, f64::max),
            others: self.others(reached),
            limit,
            relation: self.relation(reached),
            sparing: reached.iter().any(is_squared),
        }
    }

    /// The other inputs of the joins among the values reached, each with the value that it is joined with.
    fn partners<'s>(
        &'s self,
        reached: &'s [Reached],
    ) -> impl Iterator<Item = (&'s Reached, usize, usize)> + 's {
        let leaves = |at: &&Reached| !self.structure.rescaled[at.value];
        reached.iter().filter(leaves).flat_map(move |at| self.partners_of(at))
    }

    fn partners_of<'s>(&'s self, at: &'s Reached) -> impl Iterator<Item = (&'s Reached, usize, usize)> + 's {
        let joins =
            self.structure.users[at.value].iter().filter(|&&user| self.source.items[user].action.joins());
        joins.flat_map(move |&user| {
            let others = self.source.items[user].inputs.iter().filter(|&&input| input != at.value);
            others.map(move |&input| (at, user, input))
        })
    }

    /// The largest absolute real value of all that is added before the rescale, if all of it is lowered already.
    fn others(&self, reached: &[Reached]) -> Option<f64> {
        let added = self
            .partners(reached)
            .filter(|&(_, user, _)| matches!(self.source.items[user].action, Action::Add))
            .map(|(at, _, input)| {
                let placed = self.placed[input]?;
                Some(self.bounds[placed.value][0].magnitude() as f64 * placed.scale / at.unit)
            });
        // A value added to itself is no partner of its own, but doubles.
        let doubled = |at: &Reached| {
            let twice = |&user: &usize| {
                let item = &self.source.items[user];
                matches!(item.action, Action::Add) && item.inputs[0] == item.inputs[1]
            };
            self.structure.users[at.value].iter().any(twice)
        };
        if reached.iter().any(doubled) { None } else { added.sum() }
    }

    /// The relation to the first lowered value that the sums are joined with: before the rescale, else behind it.
    fn relation(&self, reached: &[Reached]) -> Option<Relation> {
        let before = self
            .partners(reached)
            .find_map(|(at, _, input)| Some(Relation::Multiple(self.placed[input]?.scale / at.unit)));
        before.or_else(|| {
            let rescaled = reached.iter().filter(|at| self.structure.rescaled[at.value]);
            rescaled.clone().find_map(|start| {
                let ends = ends(self.source.items, self.structure, start.value);
                ends.iter().find_map(|end| {
                    let lowered = self.partners_of(end).find_map(|(_, _, input)| self.placed[input]);
                    lowered.map(|other| Relation::PowerOfTwo(other.scale / (start.unit * end.unit)))
                })
            })
        })
    }

    /// The widest shift that any scale could ask for in this ring: the limit it leaves holds for every choice.
    fn widest_shift(&self, reached: &[Reached], ring: Accumulator) -> u32 {
        let widest = |at: &Reached| {
            let ends = ends(self.source.items, self.structure, at.value);
            let of_end = |end: &Reached| {
                let sides = if self.range(end.value).low < 0.0 { 2.0 } else { 1.0 };
                self.shift_of(sides * ring.limit(0) as f64 * end.growth, end.growth)
            };
            ends.iter().map(of_end).max().unwrap_or(0)
        };
        let rescaled = reached.iter().filter(|at| self.structure.rescaled[at.value]);
        rescaled.map(widest).max().unwrap_or(0).min(ring.bits() - 1)
    }

    /// The shift with which a value of this scale reaches the next products, joins or the output with the activation bits.
    fn shift(&self, value: usize, scale: f64) -> u32 {
        let of_end =
            |end: &Reached| self.shift_of(self.range(end.value).width() / (scale * end.unit), end.growth);
        ends(self.source.items, self.structure, value).iter().map(of_end).max().unwrap_or(0)
    }

    /// The smallest shift that brings integers of this width to the activation bits.
    ///
    /// Where a pool of k sums follows, its result may have sqrt(k) more: the k rounding errors add up to just that much less than k.
    fn shift_of(&self, width: f64, growth: f64) -> u32 {
        let bits = (width / (levels(self.source.options) * growth.sqrt())).log2().ceil();
        if bits > 0.0 { bits.min(62.0) as u32 } else { 0 }
    }

    fn range(&self, value: usize) -> Range {
        value.checked_sub(1).map_or(self.source.input, |item| self.source.items[item].range)
    }

    fn ring(&self, group: usize) -> Option<Accumulator> {
        self.rings[group].map(|ring| self.source.options.accumulators[ring])
    }

    /// What the ring allows a value of this scale, whose rescale may still lie ahead.
    fn limit(&self, value: usize, group: usize, scale: f64) -> i64 {
        let Some(ring) = self.ring(group) else { return UNBOUNDED };
        if !self.structure.wide[value] {
            return ring.limit(0);
        }
        let reached = to_rescales(self.source.items, self.structure, value);
        let rescaled = reached.iter().filter(|at| self.structure.rescaled[at.value]);
        let shift = rescaled.map(|at| self.shift(at.value, scale * at.unit)).max().unwrap_or(0);
        ring.limit(shift.min(ring.bits() - 1))
    }

    /// Appends a node and follows its bounds.
    #[expect(clippy::too_many_arguments, reason = "the parts of a node, each once")]
    fn push(
        &mut self,
        mut name: String,
        op: FixedOp,
        inputs: Vec<usize>,
        shape: Vec<usize>,
        group: usize,
        scale: f64,
        limit: i64,
    ) -> Result<usize, Stop> {
        while !self.names.insert(name.clone()) {
            name.push('\'');
        }
        let rings = &self.source.options.accumulators;
        let ring = self.rings[group].unwrap_or(rings.len() - 1);
        let mut after = [0, 1].map(|_| Bound { low: 0, high: 0, evidence: Evidence::Proved });
        for (half, layer) in [self.weights.get(&self.nodes.len()), None].into_iter().enumerate() {
            let bounds: Vec<Bound> = inputs.iter().map(|&value| self.bounds[value][half]).collect();
            after[half] =
                Bound::after(&bounds, &op, layer, limit, rings[ring]).map_err(|reason| Stop::Narrow {
                    group,
                    next: ring + 1,
                    error: CompileError::Network { place: name.clone(), reason },
                })?;
        }
        if self.rings[group].is_none() {
            // Behind a rescale both halves must fit; elsewhere the public one is cut at the limit.
            let public = if matches!(op, FixedOp::Rescale { .. }) { after[1].magnitude() } else { 0 };
            self.needs[group] = self.needs[group].max(after[0].magnitude()).max(public);
        }
        self.bounds.push(after);
        self.scales.push(scale);
        self.nodes.push(Pending { name, op, inputs, shape, group });
        Ok(self.nodes.len())
    }
}

/// Steps between the smallest and the largest activation.
fn levels(options: &QuantizationOptions) -> f64 {
    ((1_u64 << options.activation_bits) - 1) as f64
}

/// The smallest factors that bring values of these scales to one, each within 2^-9 of the exact ratio, and that scale.
fn common_scale(scales: &[f64]) -> Option<(Vec<i64>, f64)> {
    const DENOMINATORS: i64 = 256;
    const TOLERANCE: f64 = 1.0 / 512.0;
    let finest = scales.iter().copied().fold(f64::INFINITY, f64::min);
    (1..=DENOMINATORS).find_map(|denominator| {
        let unit = finest / denominator as f64;
        let factor = |&scale: &f64| {
            let factor = (scale / unit).round();
            let error = (factor * unit / scale - 1.0).abs();
            (error <= TOLERANCE && factor <= MAX_FACTOR as f64).then_some(factor as i64)
        };
        Some((scales.iter().map(factor).collect::<Option<Vec<_>>>()?, unit))
    })
}

#[cfg(test)]
mod tests {
    use super::common_scale;

    #[test]
    fn factors_are_exact_where_scales_are_multiples_and_close_elsewhere() {
        assert_eq!(common_scale(&[0.5, 0.5]), Some((vec![1, 1], 0.5)));
        assert_eq!(common_scale(&[0.75, 0.25]), Some((vec![3, 1], 0.25)));
        assert_eq!(common_scale(&[1.0, 1.5]), Some((vec![2, 3], 0.5)));
        let (factors, unit) = common_scale(&[1.0, std::f64::consts::PI, 0.77]).unwrap();
        for (factor, scale) in factors.iter().zip([1.0, std::f64::consts::PI, 0.77]) {
            assert!((*factor as f64 * unit / scale - 1.0).abs() <= 1.0 / 512.0);
        }
        assert_eq!(common_scale(&[1.0, 1e-9]), None);
    }
}
