use lanner_primitives::{Bits, Block, CorrelationRobustHash, TRANSPOSE_ROWS, transpose};
use lanner_wire::Channel;
use rand_core::CryptoRng;
use zeroize::{Zeroize, Zeroizing};

use super::messages::{Choices, Chunks, PUNCTURE_LENGTH};
use super::punctured::{self, PUNCTURE_BLOCKS};
use super::small_field::{STRIPE, Scratch, Tree};
use super::{FIELD_BITS, TREES};
use crate::{CorrelatedSender, OtError, base, kind};

/// The sender of correlated transfers: it holds `delta` and gets `q[i]`.
pub struct CotSender {
    delta: Block,
    hash: CorrelationRobustHash,
    trees: Vec<Tree>,
    /// The block of every leaf's stream that comes next.
    position: u64,
    /// The transfers so far: the index of the next one.
    index: u64,
}

impl Drop for CotSender {
    fn drop(&mut self) {
        self.delta.zeroize();
    }
}

impl CotSender {
    /// Sets up a direction: 128 base OTs whose choices are the bits of `delta`, then the trees. Two rounds.
    ///
    /// # Errors
    /// [`OtError::Delta`] if the lowest bit of `delta` is zero; any failure of the channel or of the base OT.
    pub fn setup<R: CryptoRng + ?Sized>(
        channel: &mut dyn Channel,
        delta: Block,
        rng: &mut R,
    ) -> Result<Self, OtError> {
        if !delta.lsb() {
            return Err(OtError::Delta);
        }
        let choices = Bits::from_words(128, vec![delta.0 as u64, (delta.0 >> 64) as u64]);
        let keys = base::receive(channel, &choices, rng)?;
        let salt = Block::random(rng);
        channel.send(kind::SALT, &salt.to_bytes())?;
        let mut puncture = [Block::ZERO; PUNCTURE_LENGTH];
        channel.receive_into(kind::PUNCTURE, Block::slice_as_bytes_mut(&mut puncture))?;

        let mut trees = Vec::with_capacity(TREES);
        for (tree, blocks) in puncture.as_chunks::<PUNCTURE_BLOCKS>().0.iter().enumerate() {
            let alpha = Zeroizing::new(std::array::from_fn(|b| choices.get(FIELD_BITS * tree + b)));
            let keys = Zeroizing::new(std::array::from_fn(|b| keys[FIELD_BITS * tree + b]));
            trees.push(Tree::punctured(&punctured::complete(&keys, &alpha, blocks)));
        }
        Ok(Self { delta, hash: CorrelationRobustHash::new(salt), trees, position: 0, index: 0 })
    }

    fn run(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
        choices: Choices,
        out: &mut Vec<Block>,
    ) -> Result<u64, OtError> {
        let end = out.len() + count;
        out.reserve(count);
        let mut stripes = Stripes::new();
        let mut corrections = Vec::new();
        for chunk in Chunks::of(count) {
            corrections.resize(chunk * choices.trees(), Block::ZERO);
            channel.receive_into(kind::CORRECTIONS, Block::slice_as_bytes_mut(&mut corrections))?;
            for part in corrections.chunks(STRIPE * choices.trees()) {
                let stripe = part.len() / choices.trees();
                self.stripe(&mut stripes, stripe, choices, part);
                stripes.transpose(stripe, end, out)?;
                self.position += stripe as u64;
            }
        }
        let first = self.index;
        self.index += count as u64;
        Ok(first)
    }

    /// The rows of one stripe of `stripe` blocks of columns: `w + c * delta_g` for each tree.
    fn stripe(&self, room: &mut Stripes, stripe: usize, choices: Choices, corrections: &[Block]) {
        let rows = &mut room.rows[..TRANSPOSE_ROWS * stripe];
        for (g, (tree, sums)) in self.trees.iter().zip(rows.chunks_exact_mut(FIELD_BITS * stripe)).enumerate()
        {
            tree.expand(self.position, &mut room.scratch, &mut room.u[..stripe], sums);
            if let Some(g) = g.checked_sub(choices.first_tree()) {
                let c = &corrections[g * stripe..][..stripe];
                let first_bit = FIELD_BITS * (g + choices.first_tree());
                for (b, row) in sums.chunks_exact_mut(stripe).enumerate() {
                    let mask = Block::mask(self.delta.0 >> (first_bit + b) & 1 == 1);
                    for (q, c) in row.iter_mut().zip(c) {
                        *q ^= *c & mask;
                    }
                }
            }
        }
    }
}

impl CorrelatedSender for CotSender {
    fn delta(&self) -> Block {
        self.delta
    }

    fn hash(&self) -> &CorrelationRobustHash {
        &self.hash
    }

    fn extend(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
        out: &mut Vec<Block>,
    ) -> Result<u64, OtError> {
        self.run(channel, count, Choices::Given, out)
    }

    fn extend_random(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
        out: &mut Vec<Block>,
    ) -> Result<u64, OtError> {
        self.run(channel, count, Choices::Random, out)
    }
}

/// Room for one stripe of all trees.
pub(super) struct Stripes {
    pub(super) scratch: Scratch,
    pub(super) u: Zeroizing<[Block; STRIPE]>,
    /// The 128 rows of bits.
    pub(super) rows: Zeroizing<Vec<Block>>,
    columns: Zeroizing<Vec<Block>>,
}

impl Stripes {
    pub(super) fn new() -> Self {
        let bits = || Zeroizing::new(vec![Block::ZERO; TRANSPOSE_ROWS * STRIPE]);
        Self {
            scratch: Scratch::default(),
            u: Zeroizing::new([Block::ZERO; STRIPE]),
            rows: bits(),
            columns: bits(),
        }
    }

    /// Transposes the first `stripe` blocks of columns and appends them to `out`, up to a length of `end`: the rest is
    /// padding.
    pub(super) fn transpose(
        &mut self,
        stripe: usize,
        end: usize,
        out: &mut Vec<Block>,
    ) -> Result<(), OtError> {
        let bits = TRANSPOSE_ROWS * stripe;
        transpose(&self.rows[..bits], &mut self.columns[..bits])?;
        out.extend_from_slice(&self.columns[..bits.min(end - out.len())]);
        Ok(())
    }
}
