//! Which linear layers are computed with the step function in front of them, whose bits choose among their weights.
//!
//! A layer of bits that comparisons leave needs no values of them: a transfer for each comparison has the products with all weights that it multiplies, some
//! bytes each. A ciphertext has room for thousands of products, and takes tens of kilobytes. So layers of few outputs for each comparison, or many
//! groups, go with their comparisons, and large matrices are layers of their own: the bytes of a prediction decide, which both parties count.

use lanner_coefficient::cheetah::Accuracy;
use lanner_network::FixedOp;
use lanner_primitives::Ring;
use lanner_step::{CotSupply, Function, Spec, Windows, transfer_sets};
use lanner_transfers::{RingActivation, RingChosen, RingSparse, Rounding};

use super::by_transfers::{ByTransfers, ENCRYPTED_BITS};
use super::{Chosen, Planner, Run, convolution, layer, ring};
use crate::mode::{Between, Kind};
use crate::{PlanError, Samples};

impl Planner<'_> {
    /// For each node that begins a step function, that with the layer behind it where one step computes both.
    pub(super) fn find_chosen(&self) -> Result<Vec<Option<Chosen>>, PlanError> {
        let nodes = self.network.nodes();
        let (mut found, mut inside) = (vec![None; nodes.len()], vec![false; nodes.len()]);
        for first in (0..nodes.len()).filter(|node| Kind::of(&nodes[*node].op) == Kind::Between) {
            if inside[first] || self.function_run(first).is_some() {
                continue;
            }
            let run = self.run(first);
            run.nodes.iter().for_each(|node| inside[*node] = true);
            found[first] = self.chosen_layer(first, run)?;
        }
        Ok(found)
    }

    fn chosen_layer(&self, first: usize, run: Run) -> Result<Option<Chosen>, PlanError> {
        let Run { mut nodes, fused } = run;
        let is_step = fused.function == Function::STEP && fused.windows.are_elements();
        if !is_step {
            return Ok(None);
        }
        nodes.remove(0);
        let mut last = nodes.last().copied().unwrap_or(first);
        let layer = loop {
            // What is compared with its bound is a value of the plan.
            let is_bound = self.bounds.iter().any(|bound| bound.value == last + 1);
            let Some(user) = self.only_users[last + 1].filter(|_| !is_bound) else { return Ok(None) };
            nodes.push(user);
            match self.network.nodes()[user].op {
                FixedOp::Reshape => last = user,
                FixedOp::Conv2d(_) | FixedOp::Linear { picks: false, .. } => break user,
                _ => return Ok(None),
            }
        };
        let is_encrypted = ENCRYPTED_BITS.contains(&ring(self.network.nodes()[layer].accumulator).bits());
        // In mode tabula a step drops no bits, so that transfers compute it there as well.
        let by_circuit = self.rules(first).between == Between::Circuits;
        if is_encrypted && (by_circuit || self.rules(layer).layer.has_slots()) {
            return Ok(None);
        }
        let Some(spec) = self.spec(first, layer)? else { return Ok(None) };
        let spec = self.is_less(layer, &spec)?.then_some(RingChosen { samples: Samples::ONE, ..spec });
        Ok(spec.map(|spec| Chosen { behind: nodes, spec }))
    }

    /// The step for a step function that a node begins and a layer, if there is one.
    fn spec(&self, first: usize, index: usize) -> Result<Option<RingChosen>, PlanError> {
        let (network, node) = (self.network, &self.network.nodes()[index]);
        let rings = [network.accumulator(network.nodes()[first].inputs[0]), node.accumulator].map(ring);
        let [Ring::Pow2(from), Ring::Pow2(to)] = rings else { return Ok(None) };
        let shape = convolution(node, network.shape(node.inputs[0]))?;
        let spec = RingChosen { shape, from, to, samples: self.choices.samples };
        Ok((RingChosen::takes(&spec.shape) && spec.build(&self.sets).is_ok()).then_some(spec))
    }

    /// Whether both together send less than each by itself.
    fn is_less(&self, index: usize, spec: &RingChosen) -> Result<bool, PlanError> {
        let (samples, &RingChosen { ref shape, from, to, .. }) = (self.choices.samples, spec);
        let failed = |error| layer(&self.network.nodes()[index], error);
        // What transfers send depends on what others leave of an iteration.
        let by_transfers = |spec: &dyn Spec| -> Result<[u64; 2], PlanError> {
            let built = spec.build(&self.sets).map_err(failed)?;
            let transfers: usize = built.needs().map_err(failed)?.transfers.iter().sum();
            let cost = built.cost(&mut CotSupply::new(transfer_sets([0; 2]))).map_err(failed)?;
            let online = transfers as u64 / TRANSFERS_PER_BYTE + cost.online.bytes();
            Ok([online, cost.offline.answer.bytes()])
        };
        let layer_alone = if let Some(ByTransfers::Blocks(sparse)) = self.sparse[index].clone() {
            let [online, answer] = by_transfers(&RingSparse { samples, ..sparse })?;
            online + answer
        } else {
            // Most layers are guarded; of the others ciphertexts send more.
            let (node, accuracies) = (&self.network.nodes()[index], [Accuracy::Guarded(1), Accuracy::Exact]);
            let Some(encrypted) = self.encrypted(node, shape, to, &accuracies)? else { return Ok(true) };
            encrypted.bytes()
        };
        let windows = Windows::each(samples.times(shape.inputs()));
        let steps = RingActivation { function: Function::STEP, windows, from, to, rounding: Rounding::Exact };
        let [[together, _], [apart, _]] = [by_transfers(spec)?, by_transfers(&steps)?];
        Ok(together < apart + layer_alone)
    }

    /// Adds the step of the step function that a node begins and the layer behind; returns whether there is one.
    pub(super) fn add_chosen(&mut self, first: usize, input: usize) -> Result<bool, PlanError> {
        let Some(Chosen { behind, spec }) = self.chosen[first].take() else { return Ok(false) };
        let Some(layer) = behind.last().copied() else { return Ok(false) };
        let name = &self.network.nodes()[layer].name;
        self.values[layer + 1] = Some(self.push(name, vec![input], spec)?);
        for node in behind {
            self.inside[node] = true;
        }
        Ok(true)
    }
}

/// Silent transfers of the smallest set that a byte pays for.
const TRANSFERS_PER_BYTE: u64 = 3;
