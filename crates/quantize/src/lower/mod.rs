//! The items as fixed-point nodes: rings, shifts and scales, in the order of the items.
//!
//! A group of values that share a ring (see [`Structure`]) gets its ring from its first linear layer. Where a later member of the
//! group does not fit, all is lowered again with a larger ring for the group.

mod function;
mod layer;
mod operators;
mod scale;
mod shift;

use std::collections::{BTreeMap, BTreeSet};

use lanner_graph::pass::Draft;
use lanner_network::grid::GridFactor;
use lanner_network::{
    Accumulator, Bound, Calibrated, CompileError, Ending, Evidence, FixedNode, FixedOp, FunctionFit, Head,
    LinearWeights, Network, NetworkInput,
};

use super::QuantizationOptions;
use super::bits::LayerBits;
use super::calibrate::Range;
use super::compared::Compared;
use super::features::Coding;
use super::fits::Fits;
use super::item::Item;
use super::normalised::FINER_BITS;
use super::reach::{Reached, ends, to_rescales};
use super::structure::Structure;
use crate::fit;

/// What a ring not chosen yet allows: more than any ring, far from overflow.
const UNBOUNDED: i128 = 1 << 100;

/// How many times what is needed of the largest ring must have room before a value keeps more bits.
const SPARE: f64 = 4.0;

/// How many bits more a ring may have for a proof than for what calibration saw: behind many layers without an upper bound no ring has enough.
const MOST_BITS_FOR_A_PROOF: u32 = 5;

/// How much coarser scales become than a join needs, which itself rounds them.
const COARSER: f64 = 1.01;

/// How often the scales of a join become coarser before it counts as not to be proved.
const MOST_COARSER: u32 = 8;

/// What is lowered.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) draft: &'a Draft,
    pub(super) items: &'a [Item<'a>],
    /// Its linear layers.
    pub(super) fits: &'a Fits<'a>,
    /// The calibrated input.
    pub(super) input: Range,
    /// The smallest and the largest value of it, whether or not 0 lies between them.
    pub(super) input_ends: [f64; 2],
    /// What comparisons ask of its unit.
    pub(super) compared: Option<&'a Compared>,
    /// How features become that input, where they differ.
    pub(super) coding: Option<&'a Coding>,
    pub(super) options: &'a QuantizationOptions,
    pub(super) bits: &'a LayerBits,
    /// Whether weights get no more bits than they must.
    pub(super) sparing: bool,
    /// Polynomials found before.
    pub(super) functions: &'a fit::FitCache,
}

impl Source<'_> {
    /// Steps between the smallest and the largest activation where a way to products, joins or the output ends, whatever takes it.
    fn usual_levels(&self, structure: &Structure, end: usize) -> f64 {
        if let Some(unit) = self.options.output_unit.filter(|_| end == self.items.len()) {
            // A shift makes a unit of this or of half as much.
            return (2.0 * self.range(end).width() / unit).max(1.0);
        }
        let users = structure.users[end].iter();
        let products = || users.clone().filter(|&&user| self.items[user].action.takes_few_bits());
        let squared = products().next().is_some() && products().all(|&user| structure.squared[user]);
        let bits = products().map(|&user| self.bits.activations[user]).max();
        let bits = bits.unwrap_or(self.options.activation_bits);
        let bits = if squared { bits.min(structure.square_bits.activations) } else { bits };
        let finer = if structure.normalised[end] { self.finer_bits(structure, end, bits) } else { 0 };
        ((1_u64 << (bits + finer)) - 1) as f64
    }

    /// How many bits more than `bits` a value keeps that is multiplied with an inverse power: as far as the largest ring has room for its squares' sums and
    /// for its products with values of `bits` bits.
    fn finer_bits(&self, structure: &Structure, end: usize, bits: u32) -> u32 {
        let limit = self.options.accumulators.last().map_or(0, |ring| ring.limit(0)) as f64 / SPARE;
        let levels = |range: f64| (range > 0.0).then_some(range);
        let most = |&user: &usize| {
            let item = &self.items[user];
            let reached = to_rescales(self.items, structure, user + 1);
            let peak = |at: &Reached| self.items[at.value - 1].seen.range.magnitude() / at.unit;
            let peak = levels(2.0 * reached.iter().map(peak).fold(0.0, f64::max))?;
            let width = self.range(end).width();
            if item.action.is_square() {
                return Some(width * (limit / peak).sqrt());
            }
            let other = item.inputs.iter().copied().find(|&input| input != end)?;
            let unit = self.range(other).width() / f64::from(bits).exp2();
            item.action.is_product().then_some(width * limit * unit / peak)
        };
        let most = structure.users[end].iter().filter_map(most).fold(f64::INFINITY, f64::min);
        FINER_BITS.min((most.log2() - f64::from(bits)).clamp(0.0, f64::from(FINER_BITS)) as u32)
    }

    /// The real value of a unit of an input with so many steps between its ends; none for a range without width.
    pub(super) fn input_unit(&self, levels: f64) -> Option<f64> {
        scale::of_input(self, levels).map(|(scale, _)| scale.unit())
    }

    /// How many bits more a ring may have for a proof than for what calibration saw.
    const fn bits_for_a_proof(&self) -> u32 {
        if self.options.proves { u32::BITS } else { MOST_BITS_FOR_A_PROOF }
    }

    /// The calibrated range that a value's bits are spread over.
    fn range(&self, value: usize) -> Range {
        value.checked_sub(1).map_or(self.input, |item| self.items[item].seen.typical)
    }
}

/// The nodes of a network, before calibration has seen their integers.
#[derive(Debug)]
pub(super) struct Lowered {
    input: NetworkInput,
    nodes: Vec<FixedNode>,
    /// The group of each node.
    groups: Vec<usize>,
    weights: BTreeMap<usize, LinearWeights>,
    /// The scale of each value: the input, then each node's.
    scales: Vec<f64>,
    errors: BTreeMap<usize, f64>,
    fitted: BTreeMap<usize, FunctionFit>,
    saturating: BTreeSet<usize>,
    /// Over the input's.
    output_scale: GridFactor,
    /// See [`PublicNetwork::limit`].
    fills_rings: bool,
}

impl Lowered {
    /// The group whose ring a node has.
    pub(super) fn group(&self, node: usize) -> usize {
        self.groups[node]
    }

    /// A node's ring.
    pub(super) fn ring(&self, node: usize) -> Accumulator {
        self.nodes[node].accumulator
    }

    /// The network; without calibrated ranges they count as 0.
    pub(super) fn network(
        &self,
        head: Head,
        measured: Option<&[Calibrated]>,
    ) -> Result<Network, CompileError> {
        let unseen = |(value, &scale): (usize, &f64)| {
            let node = value.checked_sub(1);
            let weight_error = node.and_then(|node| self.errors.get(&node)).copied();
            let function = node.and_then(|node| self.fitted.get(&node)).copied();
            let saturates = node.is_some_and(|node| self.saturating.contains(&node));
            Calibrated { scale, low: 0, high: 0, weight_error, function, saturates }
        };
        let seen =
            measured.map_or_else(|| self.scales.iter().enumerate().map(unseen).collect(), <[_]>::to_vec);
        let output_scale = Some(self.output_scale);
        let ending = Ending { output_scale, head, fills_rings: self.fills_rings };
        Network::repeating(self.input.clone(), self.nodes.clone(), ending, self.weights.clone(), seen)
    }
}

/// Chooses rings, shifts and scales; `least` is the first ring that each group may take.
///
/// # Errors
/// [`CompileError::RangeOverflow`] naming the layer that fits no ring offered.
pub(super) fn lower(
    source: &Source<'_>,
    structure: &Structure,
    slack: f64,
    least: &[usize],
) -> Result<Lowered, CompileError> {
    let mut builder = Builder::new(*source, structure, slack, least.to_vec())?;
    // The ring of each group in which a proof was missed first.
    let mut began = BTreeMap::new();
    loop {
        match builder.build() {
            Ok(()) => {
                let uneven = builder.uneven();
                if uneven.is_empty() {
                    return builder.finish();
                }
                for (group, ring) in uneven {
                    builder.least[group] = builder.least[group].max(ring);
                    // Nothing depends on a ring that no item chose.
                    if builder.rings[group].is_some() {
                        builder.go_back(group);
                    }
                }
            }
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::Narrow { group, next, error }) => {
                if next >= source.options.accumulators.len() {
                    return Err(error);
                }
                builder.least[group] = next;
                builder.go_back(group);
            }
            Err(Stop::Unproved { group, floor: Some((value, floor)), .. })
                if source.options.commits && builder.coarser(value, floor) =>
            {
                builder.go_back(group);
            }
            Err(Stop::Unproved { index, group, next, .. }) => {
                let rings = &source.options.accumulators;
                let began = *began.entry(group).or_insert(next.saturating_sub(1));
                let is_near =
                    |ring: &Accumulator| ring.bits() <= rings[began].bits() + source.bits_for_a_proof();
                if rings.get(next).is_some_and(is_near) {
                    builder.least[group] = next;
                    builder.go_back(group);
                } else {
                    // The first that has room for what calibration saw must do, for all that are quantised as one.
                    let class = source.items[index].class;
                    let all = source.items.iter().enumerate().filter(|(_, item)| item.class == class);
                    builder.unproved.extend(all.map(|(index, _)| index));
                    for group in structure.alike(source.items, group) {
                        builder.least[group] = least[group];
                        builder.go_back(group);
                    }
                }
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
    /// The ring of a group holds what calibration saw of an item, but not what is possible; `next` is the first that may.
    Unproved {
        index: usize,
        group: usize,
        next: usize,
        /// A value where sums are joined, and the least scale of these with which the join may be proved in the ring that there is.
        floor: Option<(usize, f64)>,
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

/// How many nodes there were before an item, and how many entries of [`Builder::enlarged`].
#[derive(Clone, Copy, Debug)]
struct Mark {
    nodes: usize,
    enlarged: usize,
}

struct Builder<'a> {
    source: Source<'a>,
    structure: &'a Structure,
    slack: f64,
    /// The first ring that each group may take.
    least: Vec<usize>,
    /// The number of each group's ring, once chosen.
    rings: Vec<Option<usize>>,
    /// The largest absolute value of each group while its ring is not chosen.
    needs: Vec<i128>,
    /// What there was before each item.
    marks: Vec<Mark>,
    /// The groups whose rings were chosen, each with the item that chose it, in order.
    chosen: Vec<(usize, usize)>,
    /// The groups whose needs were enlarged, each with what it was, in order.
    enlarged: Vec<(usize, i128)>,
    /// Each item's value as its users take it: the input first.
    placed: Vec<Option<Placed>>,
    input: NetworkInput,
    names: BTreeSet<String>,
    nodes: Vec<Pending>,
    weights: BTreeMap<usize, LinearWeights>,
    /// For each item's value that reaches the output without a layer on the way, the grid that its scale must lie on for the output's to lie
    /// on the input's: one scale of it.
    origins: Vec<Option<f64>>,
    scales: Vec<f64>,
    errors: BTreeMap<usize, f64>,
    fitted: BTreeMap<usize, FunctionFit>,
    /// The nodes that are upper bounds of the compiler's own.
    saturating: BTreeSet<usize>,
    /// The items for which no ring has room for a proof.
    unproved: BTreeSet<usize>,
    /// For values where sums are joined, the least scale of these, and how often it grew.
    floors: BTreeMap<usize, f64>,
    coarsened: BTreeMap<usize, u32>,
    /// Each value's bound by the weights, and as far as the public half shows it.
    bounds: Vec<[Bound; 2]>,
}

impl<'a> Builder<'a> {
    fn new(
        source: Source<'a>,
        structure: &'a Structure,
        slack: f64,
        least: Vec<usize>,
    ) -> Result<Self, CompileError> {
        let ends = ends(source.items, structure, 0);
        let usual = ends.iter().map(|end| source.levels(structure, end.value)).fold(1.0, f64::max);
        let levels = source.bits.input.unwrap_or(usual);
        let (scale, [low, high]) = scale::of_input(&source, levels).ok_or_else(|| {
            let reason = "every value is 0".to_owned();
            let fix = "pass samples like those that the model will see".to_owned();
            CompileError::Calibration { reason, fix }
        })?;
        let unit = scale.unit();
        let graph_input = &source.draft.graph.inputs[0];
        let input = NetworkInput {
            name: graph_input.name.clone(),
            shape: graph_input.shape.clone(),
            scale,
            features: source.coding.map(|coding| coding.features(&graph_input.shape, levels)),
            low,
            high,
            accumulator: source.options.accumulators[0],
        };
        let mut needs = vec![0; structure.groups];
        needs[structure.group_behind(0)] = high.max(-low).into();
        let mut placed = vec![None; source.items.len() + 1];
        placed[0] = Some(Placed { value: 0, scale: unit });
        Ok(Self {
            source,
            structure,
            slack,
            least,
            rings: vec![None; structure.groups],
            needs,
            marks: Vec::new(),
            chosen: Vec::new(),
            enlarged: Vec::new(),
            placed,
            input,
            names: BTreeSet::new(),
            nodes: Vec::new(),
            weights: BTreeMap::new(),
            origins: scale::origins(source.items, unit),
            scales: vec![unit],
            errors: BTreeMap::new(),
            fitted: BTreeMap::new(),
            saturating: BTreeSet::new(),
            unproved: BTreeSet::new(),
            floors: BTreeMap::new(),
            coarsened: BTreeMap::new(),
            bounds: vec![[Bound { low: low.into(), high: high.into(), evidence: Evidence::Proved }; 2]],
        })
    }

    /// Adds the items that are left.
    fn build(&mut self) -> Result<(), Stop> {
        for index in self.marks.len()..self.source.items.len() {
            self.marks.push(Mark { nodes: self.nodes.len(), enlarged: self.enlarged.len() });
            if let Some(placed) = self.add_behind_rescale(index)? {
                self.placed[index + 1] = Some(placed);
                continue;
            }
            let mut placed = self.add_item(index)?;
            // An output that is coarse enough as it is stays so.
            let is_coarse = index + 1 == self.source.items.len() && self.shift(index + 1, placed.scale) == 0;
            if self.structure.rescaled[index + 1] && !is_coarse {
                placed = self.add_rescale(index + 1, placed)?;
            }
            self.placed[index + 1] = Some(placed);
        }
        self.add_output()
    }

    /// The groups of values that are quantised as one with others of larger rings, with the ring that all of them must have.
    fn uneven(&self) -> BTreeMap<usize, usize> {
        let items = self.source.items;
        let of =
            |index: usize| [self.structure.group_before(index + 1), self.structure.group_behind(index + 1)];
        let mut largest = BTreeMap::new();
        for (index, item) in items.iter().enumerate() {
            for (place, group) in of(index).into_iter().enumerate() {
                let ring: &mut Option<usize> = largest.entry((item.class, place)).or_default();
                *ring = (*ring).max(self.ring_number(group));
            }
        }
        let mut uneven = BTreeMap::new();
        for (index, item) in items.iter().enumerate() {
            for (place, group) in of(index).into_iter().enumerate() {
                let Some(largest) = largest[&(item.class, place)] else { continue };
                let is_smaller = self.ring_number(group).is_some_and(|ring| ring < largest);
                if is_smaller && self.least[group] < largest {
                    let ring = uneven.entry(group).or_insert(largest);
                    *ring = largest.max(*ring);
                }
            }
        }
        uneven
    }

    /// Takes back the item that chose a group's ring and all behind it: nothing before depends on the ring.
    fn go_back(&mut self, group: usize) {
        let chooser = self.chosen.iter().find(|&&(_, chosen)| chosen == group);
        let item = chooser.map_or(0, |&(item, _)| item);
        let Some(&Mark { nodes, enlarged }) = self.marks.get(item) else { return };
        self.marks.truncate(item);
        for node in self.nodes.drain(nodes..) {
            self.names.remove(&node.name);
        }
        self.weights.split_off(&nodes);
        self.errors.split_off(&nodes);
        self.fitted.split_off(&nodes);
        self.saturating.split_off(&nodes);
        self.scales.truncate(nodes + 1);
        self.bounds.truncate(nodes + 1);
        self.placed[item + 1..].fill(None);
        while let Some((_, group)) = self.chosen.pop_if(|(chooser, _)| *chooser >= item) {
            self.rings[group] = None;
        }
        for (group, need) in self.enlarged.drain(enlarged..).rev() {
            self.needs[group] = need;
        }
    }

    /// Notes the least scale of sums that are joined; whether another try may do.
    fn coarser(&mut self, value: usize, floor: f64) -> bool {
        let times = self.coarsened.entry(value).or_default();
        *times += 1;
        let old = self.floors.get(&value).copied().unwrap_or(0.0);
        self.floors.insert(value, (COARSER * floor).max(COARSER * old));
        *times <= MOST_COARSER
    }

    /// Notes an absolute value that a group must have room for.
    fn enlarge(&mut self, group: usize, need: i128) {
        if need > self.needs[group] {
            self.enlarged.push((group, self.needs[group]));
            self.needs[group] = need;
        }
    }

    /// Chooses the rings that no layer has chosen, and fills them in.
    fn finish(mut self) -> Result<Lowered, CompileError> {
        let output = self.place(self.source.items.len())?;
        self.input.accumulator = self.ring_or_smallest(self.structure.group_behind(0), "the input")?;
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for pending in &self.nodes {
            let accumulator = self.ring_or_smallest(pending.group, &pending.name)?;
            let confined = pending.op.confined(accumulator);
            let Pending { name, inputs, shape, .. } = pending;
            nodes.push(FixedNode {
                name: name.clone(),
                op: confined.unwrap_or_else(|| pending.op.clone()),
                inputs: inputs.clone(),
                shape: shape.clone(),
                accumulator,
            });
        }
        let groups = self.nodes.iter().map(|pending| pending.group).collect();
        let fills_rings = self.source.options.fills_rings();
        let Self { input, weights, mut scales, errors, fitted, saturating, .. } = self;
        let unit = input.scale.unit();
        let output_scale = GridFactor::exactly(output.scale / unit).ok_or_else(|| CompileError::Network {
            place: "the output".to_owned(),
            reason: format!("its scale of {} is beyond what a network may have", output.scale),
        })?;
        // Both parties' value, without the rounding errors on the way.
        scales[output.value] = unit * output_scale.value();
        Ok(Lowered {
            input,
            nodes,
            groups,
            weights,
            scales,
            errors,
            fitted,
            saturating,
            output_scale,
            fills_rings,
        })
    }

    fn ring_or_smallest(&self, group: usize, name: &str) -> Result<Accumulator, CompileError> {
        let rings = &self.source.options.accumulators;
        let ring = self.ring_number(group).map(|ring| rings[ring]);
        ring.ok_or_else(|| CompileError::RangeOverflow {
            node: name.to_owned(),
            bound: self.needs[group],
            limit: rings.last().map_or(0, |ring| ring.limit(0)),
        })
    }

    /// The number of the ring that a group has, or will have if nothing else chooses one.
    fn ring_number(&self, group: usize) -> Option<usize> {
        let (rings, need) = (&self.source.options.accumulators, self.needs[group]);
        let smallest = || (self.least[group]..rings.len()).find(|ring| need <= rings[*ring].limit(0));
        self.rings[group].or_else(smallest)
    }

    /// The place of a value; items use only earlier values.
    fn place(&self, value: usize) -> Result<Placed, CompileError> {
        let missing = || CompileError::Network {
            place: format!("value {value}"),
            reason: "it is used before it is made".to_owned(),
        };
        self.placed[value].ok_or_else(missing)
    }

    fn ring(&self, group: usize) -> Option<Accumulator> {
        self.rings[group].map(|ring| self.source.options.accumulators[ring])
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
        limit: i128,
    ) -> Result<usize, Stop> {
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
            // What enters a ring must fit it in both halves; elsewhere the public one is cut at the limit. What a function gives must fit
            // beside what a rescale behind it takes, too, which is less than half of all.
            let need = match &op {
                FixedOp::Rescale { .. } => after[0].magnitude().max(after[1].magnitude()),
                op if op.changes_ring() => 2 * after[0].magnitude().max(after[1].magnitude()) + 4,
                _ => after[0].magnitude(),
            };
            self.enlarge(group, need);
        }
        while !self.names.insert(name.clone()) {
            name.push('\'');
        }
        self.bounds.push(after);
        self.scales.push(scale);
        self.nodes.push(Pending { name, op, inputs, shape, group });
        Ok(self.nodes.len())
    }
}
