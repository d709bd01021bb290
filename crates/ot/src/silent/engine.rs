//! What both parties do alike: they keep the inputs of an iteration, grow trees when outputs are asked for, and add the code.

use lanner_primitives::{Block, CorrelationRobustHash, Prg, parallel};
use lanner_wire::Channel;
use zeroize::{Zeroize, Zeroizing};

use super::code::LocalCode;
use super::parameters::{Parameters, Step, Supply};
use super::tree::TreeHash;
use crate::OtError;

/// A party's part in growing trees.
pub(super) trait Grower {
    /// Makes the transfers of the trees of one message, in `out`.
    fn grow(
        &mut self,
        channel: &mut dyn Channel,
        trees: &Trees<'_>,
        out: &mut [Block],
    ) -> Result<(), OtError>;
}

/// The trees of one message.
pub(super) struct Trees<'e> {
    first: TreeHash<'e>,
    depth: usize,
    /// As many transfers for each tree as it has levels.
    inputs: &'e [Block],
    code: &'e LocalCode,
    code_inputs: &'e [Block],
    /// The number of the first output of the code.
    first_output: usize,
}

impl Trees<'_> {
    /// Blocks of a message: one for each level of each tree.
    pub(super) fn message_len(&self) -> usize {
        self.inputs.len()
    }

    /// Fresh roots.
    pub(super) fn roots(&self, rng: &mut Prg) -> Vec<Block> {
        (0..self.inputs.len() / self.depth).map(|_| Block::random(rng)).collect()
    }

    /// The parts of a message, one for each tree.
    pub(super) fn parts<'m>(&self, message: &'m [Block]) -> impl Iterator<Item = &'m [Block]> + use<'m> {
        message.chunks(self.depth)
    }

    /// As [`Self::parts`], to be written.
    pub(super) fn parts_mut<'m>(
        &self,
        message: &'m mut [Block],
    ) -> impl Iterator<Item = &'m mut [Block]> + use<'m> {
        message.chunks_mut(self.depth)
    }

    /// Has `make` fill the leaves of every tree, given its part of the message, its hash and its transfers, and adds the code to them: tree
    /// after tree, so that leaves and the code's inputs stay in the cache.
    pub(super) fn each<M: Send>(
        &self,
        messages: impl Iterator<Item = M>,
        out: &mut [Block],
        make: impl Fn(M, TreeHash<'_>, &[Block], &mut [Block]) + Send + Sync,
    ) {
        let leaves = 1 << self.depth;
        let trees = messages.zip(self.inputs.chunks(self.depth)).zip(out.chunks_mut(leaves)).enumerate();
        parallel::for_each(trees, |(number, ((message, inputs), out))| {
            make(message, TreeHash { tree: self.first.tree + number as u64, ..self.first }, inputs, out);
            self.code.add_outputs(self.code_inputs, self.first_output + number * leaves, out);
        });
    }
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
                Step::Grow { first, count: trees } => {
                    let made = trees * self.supply.parameters().leaves();
                    if made <= count {
                        // All will be taken: they need not be kept.
                        let start = out.len();
                        out.resize(start + made, Block::ZERO);
                        self.grow(first, trees, channel, hash, grower, &mut out[start..])?;
                        self.supply.step(&mut { made });
                        count -= made;
                    } else {
                        self.keep(first, trees, channel, hash, grower)?;
                    }
                }
                Step::Renew { first, count } => {
                    self.keep(first, count, channel, hash, grower)?;
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

    /// Grows trees, and makes their transfers ready; none is before.
    fn keep(
        &mut self,
        first: usize,
        count: usize,
        channel: &mut dyn Channel,
        hash: &CorrelationRobustHash,
        grower: &mut impl Grower,
    ) -> Result<(), OtError> {
        let mut ready = std::mem::take(&mut self.ready);
        ready.resize(count * self.supply.parameters().leaves(), Block::ZERO);
        self.grow(first, count, channel, hash, grower, &mut ready)?;
        self.ready = ready;
        Ok(())
    }

    /// Grows `count` trees from tree `first` of the iteration on, and makes their transfers.
    fn grow(
        &mut self,
        first: usize,
        count: usize,
        channel: &mut dyn Channel,
        hash: &CorrelationRobustHash,
        grower: &mut impl Grower,
        out: &mut [Block],
    ) -> Result<(), OtError> {
        let set = self.supply.parameters();
        let (code_inputs, tree_inputs) = self.inputs.split_at(set.dimension());
        let trees = Trees {
            first: TreeHash { hash, tree: self.trees },
            depth: set.depth(),
            inputs: &tree_inputs[first * set.depth()..][..count * set.depth()],
            code: &self.code,
            code_inputs,
            first_output: first * set.leaves(),
        };
        grower.grow(channel, &trees, out)?;
        self.trees += count as u64;
        Ok(())
    }
}
