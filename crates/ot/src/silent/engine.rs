//! What both parties do alike: they keep the inputs of an iteration, grow trees when outputs are asked for, and add the code.

use lanner_primitives::{Block, CorrelationRobustHash};
use lanner_wire::Channel;
use zeroize::{Zeroize, Zeroizing};

use super::code::LocalCode;
use super::parameters::{Parameters, Step, Supply};
use super::tree::TreeHash;
use crate::OtError;

/// A party's part in growing trees.
pub(super) trait Grower {
    /// Grows trees of one message: `inputs` has as many transfers for each tree as it has levels, `leaves` room for all leaves.
    fn grow(
        &mut self,
        channel: &mut dyn Channel,
        first: TreeHash<'_>,
        inputs: &[Block],
        depth: usize,
        leaves: &mut [Block],
    ) -> Result<(), OtError>;
}

/// The state of a source of silent transfers.
pub(super) struct Engine {
    supply: Supply,
    code: LocalCode,
    /// The transfers that this iteration began with: the code's inputs, then those of the trees.
    inputs: Zeroizing<Vec<Block>>,
    /// Transfers that are ready, the next ones last.
    ready: Zeroizing<Vec<Block>>,
    /// Trees of all iterations so far.
    trees: u64,
}

impl Engine {
    /// Begins with transfers from elsewhere, whose low bits are 0 for the sender and the choices for the receiver.
    pub(super) fn new(parameters: Parameters, inputs: Zeroizing<Vec<Block>>, trees: u64) -> Self {
        let (supply, code) = (Supply::new(parameters), LocalCode::new());
        Self { supply, code, inputs, ready: Zeroizing::new(Vec::new()), trees }
    }

    /// The engine of a set, bootstrapped by the smallest from [`Parameters::SMALLEST`]'s reserve of transfers.
    pub(super) fn bootstrap(
        parameters: Parameters,
        start: Zeroizing<Vec<Block>>,
        channel: &mut dyn Channel,
        hash: &CorrelationRobustHash,
        grower: &mut impl Grower,
    ) -> Result<Self, OtError> {
        let mut smallest = Self::new(Parameters::SMALLEST, start, 0);
        if parameters == Parameters::SMALLEST {
            return Ok(smallest);
        }
        let mut inputs = Zeroizing::new(Vec::new());
        smallest.take(parameters.reserve(), channel, hash, grower, &mut inputs)?;
        Ok(Self::new(parameters, inputs, smallest.trees))
    }

    /// Appends `count` transfers to `out`.
    pub(super) fn take(
        &mut self,
        mut count: usize,
        channel: &mut dyn Channel,
        hash: &CorrelationRobustHash,
        grower: &mut impl Grower,
        out: &mut Vec<Block>,
    ) -> Result<(), OtError> {
        out.reserve(count);
        while let Some(step) = self.supply.step(&mut count) {
            match step {
                Step::Take { count } => self.give(count, out),
                Step::Grow { first, count } => self.grow(first, count, channel, hash, grower)?,
                Step::Renew { first, count } => {
                    self.grow(first, count, channel, hash, grower)?;
                    let reserve = self.supply.parameters().reserve();
                    let mut inputs = Zeroizing::new(Vec::with_capacity(reserve));
                    self.give(reserve, &mut inputs);
                    self.inputs = inputs;
                }
            }
        }
        Ok(())
    }

    /// Moves the last `count` ready transfers to `out`.
    fn give(&mut self, count: usize, out: &mut Vec<Block>) {
        let left = self.ready.len() - count;
        out.extend_from_slice(&self.ready[left..]);
        self.ready[left..].zeroize();
        self.ready.truncate(left);
    }

    /// Grows `count` trees from tree `first` of the iteration on, and makes their transfers ready; none is before.
    fn grow(
        &mut self,
        first: usize,
        count: usize,
        channel: &mut dyn Channel,
        hash: &CorrelationRobustHash,
        grower: &mut impl Grower,
    ) -> Result<(), OtError> {
        let set = self.supply.parameters();
        let (code_inputs, tree_inputs) = self.inputs.split_at(set.dimension());
        let inputs = &tree_inputs[first * set.depth()..][..count * set.depth()];
        self.ready.resize(count * set.leaves(), Block::ZERO);
        grower.grow(channel, TreeHash { hash, tree: self.trees }, inputs, set.depth(), &mut self.ready)?;
        self.code.add_outputs(code_inputs, first * set.leaves(), &mut self.ready);
        self.trees += count as u64;
        Ok(())
    }
}
