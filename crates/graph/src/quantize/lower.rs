//! The chain as fixed-point nodes: rings, shifts and scales, segment by segment.

use std::collections::{BTreeMap, BTreeSet};

use super::QuantizationOptions;
use super::calibrate::Range;
use super::chain::{Action, Chain, Item, Segment};
use super::layer::{FittedLayer, RealLayer, Room};
use crate::CompileError;
use crate::accumulator::Accumulator;
use crate::network::{
    Bound, Calibrated, Evidence, FixedNode, FixedOp, Head, LinearWeights, Network, NetworkInput,
    PublicNetwork,
};
use crate::pass::Draft;

/// The nodes of a network, before calibration has seen their integers.
#[derive(Debug)]
pub(super) struct Lowered {
    input: NetworkInput,
    nodes: Vec<FixedNode>,
    weights: BTreeMap<usize, LinearWeights>,
    /// The scale of each value: the input, then each node's.
    scales: Vec<f64>,
    errors: BTreeMap<usize, f64>,
}

impl Lowered {
    /// The network; without calibrated ranges they count as 0.
    pub(super) fn network(
        &self,
        head: Head,
        measured: Option<&[Calibrated]>,
    ) -> Result<Network, CompileError> {
        let output_scale = self.scales.last().copied().unwrap_or(self.input.scale);
        let public = PublicNetwork::new(self.input.clone(), self.nodes.clone(), output_scale, head)?;
        let error = |value: usize| value.checked_sub(1).and_then(|node| self.errors.get(&node)).copied();
        let unseen = |(value, &scale)| Calibrated { scale, low: 0, high: 0, weight_error: error(value) };
        let unmeasured: Vec<Calibrated> = self.scales.iter().enumerate().map(unseen).collect();
        Network::new(public, self.weights.clone(), measured.unwrap_or(&unmeasured))
    }
}

/// Chooses rings, shifts and scales for every segment.
///
/// # Errors
/// [`CompileError::RangeOverflow`] naming the layer that fits no ring offered.
pub(super) fn lower(
    chain: &Chain,
    draft: &Draft,
    options: &QuantizationOptions,
    slack: f64,
) -> Result<Lowered, CompileError> {
    let mut builder = Builder::new(chain, draft, options, slack)?;
    let mut gap = Gap { rescale: None, items: &chain.lead };
    for (index, segment) in chain.segments.iter().enumerate() {
        let last = index + 1 == chain.segments.len();
        let split = if last { segment.tail.len() } else { rescale_place(&segment.tail) };
        let (before, behind) = segment.tail.split_at(split);
        gap = builder.add_segment(segment, &gap, before, behind, last)?;
    }
    Ok(builder.lowered)
}

/// What lies between a layer's nonlinear step and the next layer, in the next layer's ring: a rescale and share-wise operators.
struct Gap<'a> {
    rescale: Option<u32>,
    items: &'a [Item],
}

/// After the first run of nonlinear operators, else at the end: there the rescale joins a circuit or serves the fewest elements.
fn rescale_place(tail: &[Item]) -> usize {
    let start = tail.iter().position(|item| item.action.is_nonlinear()).unwrap_or(tail.len());
    start + tail[start..].iter().take_while(|item| item.action.is_nonlinear()).count()
}

struct Builder<'a> {
    draft: &'a Draft,
    options: &'a QuantizationOptions,
    slack: f64,
    names: BTreeSet<String>,
    lowered: Lowered,
    /// The last value's bound by the weights, and as far as the public half shows it.
    bounds: [Bound; 2],
}

/// A ring chosen for a layer, with the layer's integers in it.
struct Choice {
    ring: Accumulator,
    fitted: FittedLayer,
}

impl<'a> Builder<'a> {
    fn new(
        chain: &Chain,
        draft: &'a Draft,
        options: &'a QuantizationOptions,
        slack: f64,
    ) -> Result<Self, CompileError> {
        let levels = ((1_u64 << options.activation_bits) - 1) as f64;
        let scale = chain.input.width() / levels;
        if scale <= f64::MIN_POSITIVE {
            let reason = "every value is 0; pass samples like those that the model will see".to_owned();
            return Err(CompileError::Calibration { reason });
        }
        let twice = |end: f64| (2.0 * end / scale).round_ties_even() as i64;
        let (low, high) = (twice(chain.input.low), twice(chain.input.high));
        let graph_input = &draft.graph.inputs[0];
        let input = NetworkInput {
            name: graph_input.name.clone(),
            shape: graph_input.shape.clone(),
            scale,
            low,
            high,
            accumulator: options.accumulators[0],
        };
        let lowered = Lowered {
            input,
            nodes: Vec::new(),
            weights: BTreeMap::new(),
            scales: vec![scale],
            errors: BTreeMap::new(),
        };
        let bounds = [Bound { low, high, evidence: Evidence::Proved }; 2];
        Ok(Self { draft, options, slack, names: BTreeSet::new(), lowered, bounds })
    }

    /// Adds the gap, the layer in the ring chosen for it, and the operators `before` its rescale; returns the gap behind.
    fn add_segment<'c>(
        &mut self,
        segment: &Segment,
        gap: &Gap<'_>,
        before: &[Item],
        behind: &'c [Item],
        last: bool,
    ) -> Result<Gap<'c>, CompileError> {
        let real = RealLayer::new(self.draft, &segment.layer)?;
        let Choice { ring, fitted } = self.choose(segment, &real, gap, before, behind, last)?;
        self.add_gap(gap, ring)?;
        let sum_scale = fitted.scale * self.scale();
        let shift = if last {
            0
        } else {
            let width =
                end_range(segment, before, behind).width() * growth(before) * growth(behind) / sum_scale;
            self.shift(width, behind).min(ring.bits() - 1)
        };
        let limit = ring.limit(shift);
        let name = &self.draft.graph.nodes[segment.layer.node].name;
        self.lowered.errors.insert(self.lowered.nodes.len(), real.error(&fitted));
        self.lowered.weights.insert(self.lowered.nodes.len(), fitted.weights);
        self.add(name, RealLayer::op(&segment.layer), &segment.layer.shape, sum_scale, ring, limit)?;
        for item in before {
            self.add_item(item, ring, limit)?;
        }
        Ok(Gap { rescale: (!last).then_some(shift), items: behind })
    }

    /// The smallest ring that takes the gap's values and gives the weights their bits.
    fn choose(
        &self,
        segment: &Segment,
        real: &RealLayer,
        gap: &Gap<'_>,
        before: &[Item],
        behind: &[Item],
        last: bool,
    ) -> Result<Choice, CompileError> {
        let mut tried = (0, 0);
        for &ring in &self.options.accumulators {
            // The widest shift that any scale could ask for: the limit it leaves holds for every choice.
            let ends = if end_range(segment, before, behind).low < 0.0 { 2.0 } else { 1.0 };
            let widest =
                self.shift(ends * ring.limit(0) as f64 * growth(behind), behind).min(ring.bits() - 1);
            let limit = ring.limit(if last { 0 } else { widest });
            let input = self.after_gap(gap, ring);
            let room = Room {
                input: input.map_or(self.bounds[0], |bounds| bounds[0]),
                input_scale: self.scale_after(gap),
                peak: peak(segment, before),
                growth: growth(before),
                limit,
            };
            if input.is_some()
                && let Some(fitted) = real.fit(&room, self.options, self.slack)
            {
                return Ok(Choice { ring, fitted });
            }
            tried = (real.needed(&room, self.options).max(i128::from(room.input.magnitude())), limit);
        }
        let node = self.draft.graph.nodes[segment.layer.node].name.clone();
        Err(CompileError::RangeOverflow { node, bound: tried.0, limit: tried.1 })
    }

    /// The bounds behind a gap in `ring`, or `None` if a value does not fit there.
    fn after_gap(&self, gap: &Gap<'_>, ring: Accumulator) -> Option<[Bound; 2]> {
        let limit = ring.limit(0);
        let mut bounds = self.bounds;
        for bound in &mut bounds {
            *bound =
                bound.after(FixedOp::Rescale { shift: gap.rescale.unwrap_or(0) }, None, limit, ring).ok()?;
        }
        let mut scale = self.scale();
        for item in gap.items {
            let (op, item_scale) = fixed_op(item, scale, ring);
            scale = item_scale;
            if bounds[0].magnitude() as f64 * item.action.growth() > limit as f64 {
                return None;
            }
            for bound in &mut bounds {
                *bound = bound.after(op, None, limit, ring).ok()?;
            }
        }
        Some(bounds)
    }

    fn scale_after(&self, gap: &Gap<'_>) -> f64 {
        self.scale() * f64::from(2.0_f32).powi(gap.rescale.unwrap_or(0) as i32) / growth(gap.items)
    }

    /// The smallest shift that brings integers of this width to the activation bits.
    ///
    /// Where a pool of k sums follows, its result may have sqrt(k) more: the k rounding errors add up to just that much less than k.
    fn shift(&self, width: f64, behind: &[Item]) -> u32 {
        let levels = ((1_u64 << self.options.activation_bits) - 1) as f64 * growth(behind).sqrt();
        let bits = (width / levels).log2().ceil();
        if bits > 0.0 { bits.min(62.0) as u32 } else { 0 }
    }

    fn add_gap(&mut self, gap: &Gap<'_>, ring: Accumulator) -> Result<(), CompileError> {
        if self.lowered.nodes.is_empty() {
            self.lowered.input.accumulator = ring;
        }
        let limit = ring.limit(0);
        if let (Some(shift), Some(previous)) = (gap.rescale, self.lowered.nodes.last()) {
            let (name, shape) = (format!("{}/rescale", previous.name), previous.shape.clone());
            let scale = self.scale() * f64::from(2.0_f32).powi(shift as i32);
            self.add(&name, FixedOp::Rescale { shift }, &shape, scale, ring, limit)?;
        }
        gap.items.iter().try_for_each(|item| self.add_item(item, ring, limit))
    }

    fn add_item(&mut self, item: &Item, ring: Accumulator, limit: i64) -> Result<(), CompileError> {
        let (op, scale) = fixed_op(item, self.scale(), ring);
        self.add(&item.name, op, &item.shape, scale, ring, limit)
    }

    /// Appends a node and follows its bounds.
    fn add(
        &mut self,
        name: &str,
        op: FixedOp,
        shape: &[usize],
        scale: f64,
        ring: Accumulator,
        limit: i64,
    ) -> Result<(), CompileError> {
        let index = self.lowered.nodes.len();
        let mut name = name.to_owned();
        while !self.names.insert(name.clone()) {
            name.push('\'');
        }
        let layers = [self.lowered.weights.get(&index), None];
        for (bound, layer) in self.bounds.iter_mut().zip(layers) {
            *bound = bound
                .after(op, layer, limit, ring)
                .map_err(|reason| CompileError::Network { place: name.clone(), reason })?;
        }
        self.lowered.scales.push(scale);
        let node = FixedNode { name, op, inputs: vec![index], shape: shape.to_vec(), accumulator: ring };
        self.lowered.nodes.push(node);
        Ok(())
    }

    /// The scale of the last value.
    fn scale(&self) -> f64 {
        self.lowered.scales.last().copied().unwrap_or(self.lowered.input.scale)
    }
}

/// The operator of an item on values of `scale`, and the scale behind it.
fn fixed_op(item: &Item, scale: f64, ring: Accumulator) -> (FixedOp, f64) {
    match item.action {
        Action::Mean(window) => (FixedOp::SumPool(window), scale / window.area() as f64),
        Action::Max(window) => (FixedOp::MaxPool(window), scale),
        Action::Relu => (FixedOp::Relu, scale),
        // A bound beyond the ring never binds.
        Action::ClipAbove(max) => {
            let high = (f64::from(max) / scale).round_ties_even() as i64;
            (FixedOp::Clip { high: high.clamp(0, ring.limit(0)) }, scale)
        }
        Action::Reshape => (FixedOp::Reshape, scale),
    }
}

/// The calibrated range at the segment's end.
fn end_range(segment: &Segment, before: &[Item], behind: &[Item]) -> Range {
    behind.last().or(before.last()).map_or(segment.layer.range, |item| item.range)
}

/// The largest calibrated absolute sum before the rescale, in real units of the layer's sums.
fn peak(segment: &Segment, before: &[Item]) -> f64 {
    let mut growth = 1.0;
    before.iter().fold(segment.layer.range.magnitude(), |peak, item| {
        growth *= item.action.growth();
        peak.max(item.range.magnitude() * growth)
    })
}

/// How much the pools among the items enlarge integers.
fn growth(items: &[Item]) -> f64 {
    items.iter().map(|item| item.action.growth()).product()
}
