//! Which products of two values' matrices are computed by encryption.
//!
//! Transfers send a correction for each bit of each number of one matrix and each column of the other; ciphertexts some bytes for each element of
//! either, whatever it is multiplied by. So the larger the matrices, the more ciphertexts win: the bytes of a prediction decide, which both count. Ciphertexts
//! give sums with bits of guard, so it takes a rescale behind them.

use lanner_bfv::ParameterSet;
use lanner_coefficient::matrices::{MatrixProduct, Scheme, Shape};
use lanner_network::{FixedNode, FixedOp};
use lanner_primitives::Ring;
use lanner_protocol::Protocol;
use lanner_step::{CotSupply, Spec, transfer_sets};
use lanner_transfers::RingMatrixProduct;

use super::{Planner, layer, ring, unsupported};
use crate::PlanError;

impl Planner<'_> {
    /// For each node, whether it is a product of matrices that ciphertexts compute for fewer bytes than transfers, if what follows drops bits of guard.
    pub(super) fn find_matrices(&self) -> Result<Vec<bool>, PlanError> {
        self.network.nodes().iter().map(|node| self.is_for_ciphertexts(node)).collect()
    }

    fn is_for_ciphertexts(&self, node: &FixedNode) -> Result<bool, PlanError> {
        let (FixedOp::MatrixProduct { .. }, Ring::Pow2(bits)) = (&node.op, ring(node.accumulator)) else {
            return Ok(false);
        };
        let Some((_, scheme)) = self.encrypted_matrices(node, 1)? else { return Ok(false) };
        let transfers = self.by_transfers(node, bits)?;
        let samples = self.choices.samples;
        let together = RingMatrixProduct { groups: samples.times(transfers.groups), ..transfers };
        let Ok(built) = together.build(&self.sets) else { return Ok(true) };
        let cost =
            built.cost(&mut CotSupply::new(transfer_sets([0; 2]))).map_err(|error| layer(node, error))?;
        Ok((scheme.bytes() as u64) < cost.online.bytes())
    }

    /// The set in which ciphertexts compute a product with bits of guard, and how; none where none has room.
    pub(super) fn encrypted_matrices(
        &self,
        node: &FixedNode,
        guard: u32,
    ) -> Result<Option<(ParameterSet, Scheme)>, PlanError> {
        let RingMatrixProduct { groups, rows, inner, columns, bits } =
            self.by_transfers(node, node.accumulator.bits())?;
        let shape = Shape { groups: self.choices.samples.times(groups), rows, inner, columns };
        Ok(Scheme::cheapest(shape, bits, guard, &self.sets).ok())
    }

    /// The product of matrices that node `index` is, modulo `2^bits`: by encryption where its sums have a guard.
    pub(super) fn matrix_product(&self, index: usize, bits: u32) -> Result<Protocol, PlanError> {
        let by_transfers = self.by_transfers(&self.network.nodes()[index], bits)?;
        let Some(set) = self.guards.set(index + 1) else { return Ok(by_transfers.into()) };
        let RingMatrixProduct { groups, rows, inner, columns, bits } = by_transfers;
        let guard = self.guards.of(index + 1);
        Ok(MatrixProduct { groups, rows, inner, columns, bits, guard, set }.into())
    }

    fn by_transfers(&self, node: &FixedNode, bits: u32) -> Result<RingMatrixProduct, PlanError> {
        match (self.network.shape(node.inputs[0]), node.shape.as_slice()) {
            (&[groups, rows, inner], &[.., columns]) => {
                Ok(RingMatrixProduct { groups, rows, inner, columns, bits })
            }
            (shape, _) => Err(unsupported(
                node,
                format!("its input has shape {shape:?}, which does not fit a matrix product"),
            )),
        }
    }
}
