//! What both parties do alike: they keep the inputs of an iteration, grow trees when outputs are asked for, and add the code.

use lanner_primitives::{Block, CorrelationRobustHash, LocalCode, Prg, Seed, parallel};
use lanner_wire::Channel;
use zeroize::{Zeroize, Zeroizing};

use super::check::{self, DIGEST_BYTES, Hash};
use super::parameters::{Parameters, Step, Supply};
use crate::{OtError, TransferHashes};

/// A party's part in growing trees.
pub(super) trait Grower {
    /// Appends the transfers of the trees of one message to `out`, which has room for them. There is a tag for each leaf, of any value.
    fn grow(
        &mut self,
        channel: &mut dyn Channel,
        trees: &Trees<'_>,
        tags: &mut [Block],
        out: &mut Vec<Block>,
    ) -> Result<(), OtError>;
}

/// The trees of one message.
pub(super) struct Trees<'e> {
    hashes: &'e TransferHashes,
    /// The number of the first in its source's life.
    first: u64,
    depth: usize,
    /// As many transfers for each tree as it has levels.
    inputs: &'e [Block],
    code: &'e LocalCode,
    code_inputs: &'e [Block],
    /// The number of the first output of the code.
    first_output: usize,
}

impl Trees<'_> {
    /// An empty message: blocks for each level of each tree and the sum of its tags, then the digest.
    pub(super) fn message(&self) -> Message {
        Message { blocks: vec![Block::ZERO; self.count() * (self.depth + 1) + DIGEST_BLOCKS] }
    }

    fn count(&self) -> usize {
        self.inputs.len() / self.depth
    }

    /// The digest of these tags under a message that is whole but for it.
    pub(super) fn digest(&self, message: &Message, tags: &[Block]) -> Hash {
        check::digest(self.first, message.trees(), tags, 1 << self.depth)
    }

    /// Fresh roots.
    pub(super) fn roots(&self, rng: &mut Prg) -> Vec<Block> {
        (0..self.count()).map(|_| Block::random(rng)).collect()
    }

    /// The parts of a message and of tags, one for each tree: the blocks of its levels, then the sum of its tags.
    pub(super) fn parts<'m>(
        &self,
        message: &'m mut Message,
        tags: &'m mut [Block],
    ) -> impl Iterator<Item = (&'m mut [Block], &'m mut [Block])> + use<'m> {
        message.trees_mut().chunks_mut(self.depth + 1).zip(tags.chunks_mut(1 << self.depth))
    }

    /// Has `make` fill the leaves of every tree, given its part of the message, its hash and its transfers, adds the code to them and
    /// appends them to `out`: tree after tree, so that leaves and the code's inputs stay in the cache.
    pub(super) fn each<M: Send>(
        &self,
        mut messages: impl Iterator<Item = M>,
        out: &mut Vec<Block>,
        make: impl Fn(M, CorrelationRobustHash, &[Block], &mut [Block]) + Send + Sync,
    ) {
        let (leaves, count) = (1 << self.depth, self.count());
        // What one thread clears is still in its cache when a tree grows there.
        let at_once = if parallel::threads() == 1 { 1 } else { count.max(1) };
        for (group, inputs) in self.inputs.chunks(self.depth * at_once).enumerate() {
            let (start, count) = (out.len(), inputs.len() / self.depth);
            out.resize(start + count * leaves, Block::ZERO);
            let parts = inputs.chunks(self.depth).zip(out[start..].chunks_mut(leaves));
            let trees = messages.by_ref().take(count).zip(parts).zip(group * at_once..);
            parallel::for_each(trees, |((message, (inputs, out)), number)| {
                make(message, self.hashes.tree(self.first + number as u64), inputs, out);
                self.code.add_outputs(self.code_inputs, self.first_output + number * leaves, out);
            });
        }
    }
}

/// A message of trees.
pub(super) struct Message {
    blocks: Vec<Block>,
}

impl Message {
    pub(super) fn as_bytes(&self) -> &[u8] {
        Block::slice_as_bytes(&self.blocks)
    }

    pub(super) fn as_bytes_mut(&mut self) -> &mut [u8] {
        Block::slice_as_bytes_mut(&mut self.blocks)
    }

    /// All but the digest.
    fn trees(&self) -> &[Block] {
        &self.blocks[..self.blocks.len() - DIGEST_BLOCKS]
    }

    fn trees_mut(&mut self) -> &mut [Block] {
        let end = self.blocks.len() - DIGEST_BLOCKS;
        &mut self.blocks[..end]
    }

    pub(super) fn digest(&self) -> &[u8] {
        &self.as_bytes()[self.as_bytes().len() - DIGEST_BYTES..]
    }

    pub(super) fn set_digest(&mut self, digest: &Hash) {
        let bytes = self.as_bytes_mut();
        let start = bytes.len() - DIGEST_BYTES;
        bytes[start..].copy_from_slice(digest);
    }
}

const DIGEST_BLOCKS: usize = DIGEST_BYTES / Block::BYTES;

/// The state of a source of silent transfers.
pub(super) struct Engine {
    supply: Supply,
    code: LocalCode,
    /// The transfers that this iteration began with: the code's inputs, then those of the trees.
    inputs: Zeroizing<Vec<Block>>,
    /// Those of the iteration before, whose place those of the next take.
    spare: Zeroizing<Vec<Block>>,
    /// Transfers that are ready, the next ones last.
    ready: Zeroizing<Vec<Block>>,
    /// Room for the tags of a message's leaves.
    tags: Zeroizing<Vec<Block>>,
    /// Trees of all iterations so far.
    trees: u64,
}

impl Engine {
    /// Begins with transfers from elsewhere, whose low bits are 0 for the sender and the choices for the receiver.
    pub(super) fn new(parameters: Parameters, inputs: Zeroizing<Vec<Block>>, trees: u64) -> Self {
        let spare = Zeroizing::new(Vec::with_capacity(parameters.reserve() + parameters.leaves()));
        let ready = Zeroizing::new(Vec::with_capacity(parameters.leaves()));
        // The code of every session: nothing about it need be fresh.
        let code = LocalCode::new(&Seed::from_bytes(*b"lanner LPN code1"));
        Self {
            supply: Supply::new(parameters),
            code,
            inputs,
            spare,
            ready,
            tags: Zeroizing::default(),
            trees,
        }
    }

    /// The engine of a set, bootstrapped by the smallest from [`Parameters::SMALLEST`]'s reserve of transfers.
    pub(super) fn bootstrap(
        parameters: Parameters,
        start: Zeroizing<Vec<Block>>,
        channel: &mut dyn Channel,
        hashes: &TransferHashes,
        grower: &mut impl Grower,
    ) -> Result<Self, OtError> {
        let mut smallest = Self::new(Parameters::SMALLEST, start, 0);
        if parameters == Parameters::SMALLEST {
            return Ok(smallest);
        }
        let mut inputs = Zeroizing::new(Vec::new());
        smallest.take(parameters.reserve(), channel, hashes, grower, &mut inputs, |_| {})?;
        Ok(Self::new(parameters, inputs, smallest.trees))
    }

    /// Appends `count` transfers to `out`, and calls `made` with all that were appended so far whenever there are more.
    pub(super) fn take(
        &mut self,
        mut count: usize,
        channel: &mut dyn Channel,
        hashes: &TransferHashes,
        grower: &mut impl Grower,
        out: &mut Vec<Block>,
        mut made: impl FnMut(&[Block]),
    ) -> Result<(), OtError> {
        let start = out.len();
        // The last tree may give more than is wanted.
        out.reserve(count + self.supply.parameters().leaves());
        while let Some(step) = self.supply.step(&mut count) {
            match step {
                Step::Take { count } => self.give(count, out),
                Step::Grow { first, count: trees } => {
                    self.grow(first, trees, channel, hashes, grower, out)?;
                    let mut made = trees * self.supply.parameters().leaves();
                    let wanted = made.min(count);
                    self.keep(made - wanted, out);
                    made = wanted;
                    self.supply.step(&mut made);
                    count -= wanted;
                }
                Step::Renew { first, count } => {
                    let mut inputs = std::mem::take(&mut self.spare);
                    inputs.clear();
                    self.grow(first, count, channel, hashes, grower, &mut inputs)?;
                    self.keep(inputs.len() - self.supply.parameters().reserve(), &mut inputs);
                    self.spare = std::mem::replace(&mut self.inputs, inputs);
                }
            }
            made(&out[start..]);
        }
        Ok(())
    }

    /// Wipes all that transfers are made of.
    pub(super) fn forget(&mut self) {
        self.inputs.zeroize();
        self.spare.zeroize();
        self.ready.zeroize();
        self.tags.zeroize();
    }

    /// Whether it has forgotten what transfers are made of.
    pub(super) fn is_forgotten(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Moves the last `count` ready transfers to `out`.
    fn give(&mut self, count: usize, out: &mut Vec<Block>) {
        move_last(count, &mut self.ready, out);
    }

    /// Makes the last `count` transfers of `made` ready; none is before, and they are fewer than the leaves of a tree.
    fn keep(&mut self, count: usize, made: &mut Vec<Block>) {
        move_last(count, made, &mut self.ready);
    }

    /// Grows `count` trees from tree `first` of the iteration on, and appends their transfers to `out`.
    fn grow(
        &mut self,
        first: usize,
        count: usize,
        channel: &mut dyn Channel,
        hashes: &TransferHashes,
        grower: &mut impl Grower,
        out: &mut Vec<Block>,
    ) -> Result<(), OtError> {
        let set = self.supply.parameters();
        let (code_inputs, tree_inputs) = self.inputs.split_at(set.dimension());
        let trees = Trees {
            hashes,
            first: self.trees,
            depth: set.depth(),
            inputs: &tree_inputs[first * set.depth()..][..count * set.depth()],
            code: &self.code,
            code_inputs,
            first_output: first * set.leaves(),
        };
        let leaves = count * set.leaves();
        if self.tags.len() < leaves {
            self.tags = Zeroizing::new(vec![Block::ZERO; leaves]);
        }
        grower.grow(channel, &trees, &mut self.tags[..leaves], out)?;
        self.trees += count as u64;
        Ok(())
    }
}

/// Moves the last `count` blocks of `from` to `to`, which has room for them.
fn move_last(count: usize, from: &mut Vec<Block>, to: &mut Vec<Block>) {
    let left = from.len() - count;
    to.extend_from_slice(&from[left..]);
    from[left..].zeroize();
    from.truncate(left);
}
