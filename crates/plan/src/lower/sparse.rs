//! Which layers transfers compute: block-diagonal ones, and those that pick elements.
//!
//! A ciphertext is sent in whole for as many products of polynomials as it has room for: one of `d` groups of one channel and `p` pixels takes `d^2 p`
//! coefficients. Transfers send some bytes for each product of a weight and an element, whatever is around them. So layers of many small groups
//! are theirs, and those with many pixels, or groups that fill a ciphertext, are not: the bytes of a prediction decide, which both parties count.
//!
//! A layer that picks elements is dense for ciphertexts, with a product for each of its zeros; transfers send an element for each. They need no answer, which is as long as
//! the outputs are many.

use lanner_coefficient::cheetah::Accuracy;
use lanner_network::{FixedNode, FixedOp};
use lanner_primitives::Ring;
use lanner_step::{Convolution, CotSupply, Samples, Spec, transfer_sets};
use lanner_transfers::{RingSelect, RingSparse};

use super::by_transfers::{ByTransfers, ENCRYPTED_BITS};
use super::encrypted::{self, Encrypted};
use super::{Planner, convolution, layer, ring};
use crate::PlanError;

impl Planner<'_> {
    /// For each node, the layer if transfers can compute it and send less, where they are taken, or if no ciphertext computes it.
    pub(super) fn find_sparse(&self, takes_transfers: bool) -> Result<Vec<Option<ByTransfers>>, PlanError> {
        let nodes = self.network.nodes();
        if self.choices.mode.design().has_slots() {
            return Ok(vec![None; nodes.len()]);
        }
        (0..nodes.len()).map(|index| self.sparse_layer(index, takes_transfers)).collect()
    }

    fn sparse_layer(&self, index: usize, takes_transfers: bool) -> Result<Option<ByTransfers>, PlanError> {
        let node = &self.network.nodes()[index];
        let Ring::Pow2(bits) = ring(node.accumulator) else { return Ok(None) };
        if !node.op.is_linear() {
            return Ok(None);
        }
        let shape = convolution(node, self.network.shape(node.inputs[0]))?;
        if let FixedOp::Linear { outputs, picks: true } = node.op
            && RingSelect::takes(shape.inputs())
        {
            let samples = self.choices.samples;
            let select = RingSelect { elements: shape.inputs(), outputs, bits, samples };
            // A step behind it drops no bits, and so no guard.
            let accuracies = [self.accuracy(index)];
            let is_less = self.are_for_transfers(node, &shape, (&select, &accuracies), takes_transfers)?;
            return Ok(is_less.then_some(ByTransfers::Picks(RingSelect { samples: Samples::ONE, ..select })));
        }
        // A dense matrix is for ciphertexts wherever there are any.
        let is_dense = shape.groups == 1 && ENCRYPTED_BITS.contains(&bits);
        if is_dense || !RingSparse::takes(&shape) {
            return Ok(None);
        }
        let (samples, weight_bits) = (self.choices.samples, node.accumulator.weight_bits());
        let sparse = RingSparse { shape: shape.clone(), bits, weight_bits, samples };
        // Most layers are guarded; of the others ciphertexts send more.
        let accuracies = [Accuracy::Guarded(1), Accuracy::Exact];
        let is_less = self.are_for_transfers(node, &shape, (&sparse, &accuracies), takes_transfers)?;
        Ok(is_less.then_some(ByTransfers::Blocks(RingSparse { samples: Samples::ONE, ..sparse })))
    }

    /// Whether transfers compute a node's layer: where there is no set for ciphertexts of any of these accuracies, or transfers are taken and send fewer bytes than those of
    /// the first that there is a set for.
    fn are_for_transfers(
        &self,
        node: &FixedNode,
        shape: &Convolution,
        (spec, accuracies): (&dyn Spec, &[Accuracy]),
        takes_transfers: bool,
    ) -> Result<bool, PlanError> {
        let Ok(built) = spec.build(&self.sets) else { return Ok(false) };
        let bits = ring(node.accumulator).bits();
        let Some(encrypted) = self.encrypted(node, shape, bits, accuracies)? else { return Ok(true) };
        if !takes_transfers {
            return Ok(false);
        }
        let failed = |error| layer(node, error);
        let [transfers, _] = built.needs().map_err(failed)?.transfers;
        let cost = built.cost(&mut CotSupply::new(transfer_sets([0; 2]))).map_err(failed)?;
        // What the transfers send depends on what others leave of an iteration.
        let by_transfers =
            transfers as u64 / TRANSFERS_PER_BYTE + cost.offline.answer.bytes() + cost.online.bytes();
        Ok(by_transfers < encrypted.bytes())
    }

    /// What a node's layer takes in ciphertexts of the first of these accuracies that there is a set for; none if there is none for any.
    pub(super) fn encrypted(
        &self,
        node: &FixedNode,
        shape: &Convolution,
        bits: u32,
        accuracies: &[Accuracy],
    ) -> Result<Option<Encrypted>, PlanError> {
        for accuracy in accuracies {
            let found = encrypted::apart(shape, self.choices.samples, bits, *accuracy, &self.sets);
            if let Some(found) = found.map_err(|error| layer(node, error))? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// Silent transfers of the smallest set that a byte pays for.
const TRANSFERS_PER_BYTE: u64 = 3;
