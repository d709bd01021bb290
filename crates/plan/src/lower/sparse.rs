//! Which block-diagonal layers transfers compute.
//!
//! A ciphertext is sent in whole for as many products of polynomials as it has room for: one of `d` groups of one channel and `p` pixels takes `d^2 p`
//! coefficients. Transfers send some bytes for each product of a weight and an element, whatever is around them. So layers of many small groups
//! are theirs, and those with many pixels, or groups that fill a ciphertext, are not: the bytes of a prediction decide, which both parties count.

use lanner_coefficient::cheetah::{Accuracy, Scheme, Stacked};
use lanner_primitives::Ring;
use lanner_step::{CotSupply, Samples, Spec, transfer_sets};
use lanner_transfers::RingSparse;

use super::{Planner, convolution, layer, ring};
use crate::PlanError;

impl Planner<'_> {
    /// For each node, the layer if it is one of groups and transfers send less, where they are taken, or if no ciphertext computes it.
    pub(super) fn find_sparse(&self, takes_transfers: bool) -> Result<Vec<Option<RingSparse>>, PlanError> {
        let nodes = self.network.nodes();
        if self.choices.mode.design().has_slots() {
            return Ok(vec![None; nodes.len()]);
        }
        (0..nodes.len()).map(|index| self.sparse_layer(index, takes_transfers)).collect()
    }

    fn sparse_layer(&self, index: usize, takes_transfers: bool) -> Result<Option<RingSparse>, PlanError> {
        let node = &self.network.nodes()[index];
        let Ring::Pow2(bits) = ring(node.accumulator) else { return Ok(None) };
        if !node.op.is_linear() {
            return Ok(None);
        }
        let shape = convolution(node, self.network.shape(node.inputs[0]))?;
        if !RingSparse::takes(&shape) {
            return Ok(None);
        }
        let samples = self.choices.samples;
        let stacked = Stacked::new(&shape, samples).map_err(|error| layer(node, error))?;
        // Most layers are guarded; of the others ciphertexts send more.
        let encrypted = [Accuracy::Guarded(1), Accuracy::Exact]
            .into_iter()
            .find_map(|accuracy| Scheme::cheapest(&stacked, bits, accuracy, &self.sets).ok());
        if encrypted.is_some() && (shape.groups == 1 || !takes_transfers) {
            return Ok(None);
        }
        let sparse = RingSparse { shape, bits, weight_bits: node.accumulator.weight_bits(), samples };
        let Ok(built) = sparse.build(&self.sets) else { return Ok(None) };
        let failed = |error| layer(node, error);
        let [transfers, _] = built.needs().map_err(failed)?.transfers;
        let cost = built.cost(&mut CotSupply::new(transfer_sets([0; 2]))).map_err(failed)?;
        // What the transfers send depends on what others leave of an iteration.
        let by_transfers =
            transfers as u64 / TRANSFERS_PER_BYTE + cost.offline.answer.bytes() + cost.online.bytes();
        let is_less = encrypted.is_none_or(|(_, scheme)| {
            let offline = scheme.offline_cost();
            by_transfers < offline.request.bytes() + offline.answer.bytes() + scheme.online_cost().bytes()
        });
        Ok(is_less.then_some(RingSparse { samples: Samples::ONE, ..sparse }))
    }
}

/// Silent transfers of the smallest set that a byte pays for.
const TRANSFERS_PER_BYTE: u64 = 3;
