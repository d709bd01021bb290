//! How many bits what is rescaled has, and how few it can do with.

use std::collections::BTreeMap;

use super::rebuilt::Rebuilt;
use super::{Calibrated, Evidence, FixedNode, FixedOp, Network, PublicNetwork};
use crate::CompileError;
use crate::accumulator::Accumulator;

/// A run of operators with a rescale modulo a power of two, which mode `tabula` looks up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The run's first node.
    pub first: usize,
    /// The node that rescales.
    pub rescale: usize,
    /// Bits of a value that are kept, its sign among them: what the ring of what enters has room for.
    pub kept: u32,
    /// Bits that are dropped.
    pub dropped: u32,
}

impl PublicNetwork {
    /// The runs that mode `tabula` looks up, in order: rescales, with the maxima, `ReLUs` and bounds before each that nothing else reads.
    pub fn lookups(&self) -> impl Iterator<Item = Lookup> + '_ {
        let of_node = |(rescale, node): (usize, &FixedNode)| {
            let FixedOp::Rescale { shift: dropped @ 1.. } = node.op else { return None };
            let first = self.first_before(rescale)?;
            let value = self.nodes()[first].inputs[0];
            let (ring, spare) = (self.accumulator(value), u32::from(!self.fills(value, dropped)));
            let kept = ring.bits().checked_sub(spare + dropped)?;
            ring.is_power_of_two().then_some(Lookup { first, rescale, kept, dropped })
        };
        self.nodes().iter().enumerate().filter_map(of_node)
    }

    /// Whether value `value`, in front of a rescale by `shift` bits, may be more than differences leave room for in its ring.
    #[must_use]
    pub fn fills(&self, value: usize, shift: u32) -> bool {
        self.limit(value) > self.accumulator(value).limit(shift)
    }

    /// The first node of the run that ends in a rescale; none where a slope is part of it, which no lookup has.
    fn first_before(&self, rescale: usize) -> Option<usize> {
        let mut first = rescale;
        loop {
            let value = self.nodes()[first].inputs[0];
            let alone = self.users(value).count() == 1;
            let Some(before) = value.checked_sub(1).filter(|_| alone) else { return Some(first) };
            match self.nodes()[before].op {
                FixedOp::MaxPool(_) | FixedOp::Relu | FixedOp::Clip(_) => first = before,
                FixedOp::LeakyRelu(_) => return None,
                _ => return Some(first),
            }
        }
    }
}

impl Network {
    /// The network in which each lookup takes its values in the smallest ring with room for what they can be: twice what calibration saw and,
    /// unless `calibrated` is all that counts, what is proved or implied where that is so.
    ///
    /// # Errors
    /// [`CompileError::Network`]; never for a checked network.
    pub fn narrowed(&self, calibrated: bool) -> Result<Self, CompileError> {
        let old = &self.public;
        let rings: BTreeMap<usize, Accumulator> = old
            .lookups()
            .filter_map(|lookup| Some((lookup.first, self.narrowest(&lookup, calibrated)?)))
            .collect();
        if rings.is_empty() {
            return Ok(self.clone());
        }
        let mut made = Rebuilt::new(self.seen(0));
        let mut places = vec![0];
        for (index, node) in old.nodes().iter().enumerate() {
            let mut inputs: Vec<usize> = node.inputs.iter().map(|&value| places[value]).collect();
            if let Some(ring) = rings.get(&index) {
                let (value, shape) = (node.inputs[0], old.shape(node.inputs[0]).to_vec());
                let name = format!("{}/narrow", node.name);
                let seen =
                    Calibrated { weight_error: None, function: None, saturates: false, ..self.seen(value) };
                let narrow = FixedNode { name, op: FixedOp::Narrow, inputs, shape, accumulator: *ring };
                inputs = vec![made.push(narrow, seen)];
            }
            // What comes before the rescale is in the narrow ring, too.
            let before = inputs[0].checked_sub(1).map(|node| made.nodes[node].accumulator);
            let accumulator = before.filter(|_| !node.op.changes_ring()).unwrap_or(node.accumulator);
            if let Some(weights) = self.weights.get(&index) {
                made.weights.insert(made.nodes.len(), weights.clone());
            }
            let confined = node.op.confined(accumulator);
            let op = confined.unwrap_or_else(|| node.op.clone());
            let (name, shape) = (node.name.clone(), node.shape.clone());
            places.push(made.push(FixedNode { name, op, inputs, shape, accumulator }, self.seen(index + 1)));
        }
        Self::repeating(old.input().clone(), made.nodes, old.ending(), made.weights, made.seen)
    }

    /// The ring for what a lookup takes, if it is smaller than the one that it is in.
    fn narrowest(&self, lookup: &Lookup, calibrated: bool) -> Option<Accumulator> {
        let value = self.public.nodes()[lookup.first].inputs[0];
        let (report, ring) = (&self.values[value], self.public.accumulator(value));
        let [low, high] = report.calibrated;
        let twice = 2 * high.max(-low);
        let proved = report.high.max(-report.low);
        let need = if calibrated || report.evidence == Evidence::Calibrated { twice } else { proved };
        let fills = self.public.fills(value, lookup.dropped);
        let limit = |ring: &Accumulator| {
            if fills { ring.limit_without_differences(lookup.dropped) } else { ring.limit(lookup.dropped) }
        };
        let fitting = Accumulator::powers_of_two().find(|ring| limit(ring) >= need);
        fitting.filter(|fitting| fitting.bits() < ring.bits())
    }

    /// What calibration saw of a value, and what else its report has that is not computed again.
    pub(super) fn seen(&self, value: usize) -> Calibrated {
        let value = &self.values[value];
        Calibrated {
            scale: value.scale,
            low: value.calibrated[0],
            high: value.calibrated[1],
            weight_error: value.weights.map(|weights| weights.error),
            function: value.function,
            saturates: value.saturates,
        }
    }
}
