use lanner_primitives::{Bits, Block, TRANSPOSE_ROWS};
use lanner_wire::Channel;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::messages::{CHUNK_STRIPES, Choices, Chunks, PUNCTURE_LENGTH};
use super::punctured;
use super::sender::{Stripes, in_rooms};
use super::small_field::{STRIPE, Tree, add};
use super::{FIELD_BITS, TREES};
use crate::{CorrelatedReceiver, OtError, TransferHashes, base, kind};

/// The receiver of correlated transfers: for choices `x[i]` it gets `t[i] = q[i] xor x[i] * delta`.
pub struct CotReceiver {
    hashes: TransferHashes,
    trees: Vec<Tree>,
    /// The block of every leaf's stream that comes next.
    position: u64,
    /// The transfers so far: the index of the next one.
    index: u64,
}

impl CotReceiver {
    /// Sets up a direction against [`crate::CotSender::setup`].
    ///
    /// # Errors
    /// Any failure of the channel or of the base OT.
    pub fn setup<R: CryptoRng + ?Sized>(channel: &mut dyn Channel, rng: &mut R) -> Result<Self, OtError> {
        let pairs = base::send(channel, 128, rng)?;
        let mut trees = Vec::with_capacity(TREES);
        let mut puncture = Vec::with_capacity(PUNCTURE_LENGTH);
        for keys in pairs.as_chunks::<FIELD_BITS>().0 {
            let (leaves, blocks) = punctured::build(keys);
            trees.push(Tree::whole(&leaves));
            puncture.extend(blocks);
        }
        channel.send(kind::PUNCTURE, Block::slice_as_bytes(&puncture))?;
        let mut salt = [0; Block::BYTES];
        channel.receive_into(kind::SALT, &mut salt)?;
        let hashes = TransferHashes::new(Block::from_bytes(salt));
        Ok(Self { hashes, trees, position: 0, index: 0 })
    }

    /// Runs an extension of `count` transfers; `words` has the packed choices, or gets them if they are random.
    fn run(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
        choices: Choices,
        words: &mut [u64],
        out: &mut Vec<Block>,
    ) -> Result<u64, OtError> {
        let start = out.len();
        out.resize(start + count, Block::ZERO);
        let mut columns = out[start..].chunks_mut(STRIPE * TRANSPOSE_ROWS);
        let mut words = words.chunks_mut(2 * STRIPE);
        let mut rooms = Stripes::rooms();
        let mut corrections = Vec::with_capacity(CHUNK_STRIPES * STRIPE * choices.trees());
        for chunk in Chunks::of(count) {
            corrections.resize(chunk * choices.trees(), Block::ZERO);
            let parts = corrections.chunks_mut(STRIPE * choices.trees());
            let ends = words.by_ref().zip(columns.by_ref());
            let stripes = (self.position..).step_by(STRIPE).zip(parts).zip(ends);
            in_rooms(&mut rooms, chunk, stripes, |room, ((position, part), (words, out))| {
                let stripe = part.len() / choices.trees();
                self.stripe(room, position, choices, words, part);
                room.transpose(stripe, out)
            })?;
            self.position += chunk as u64;
            channel.send(kind::CORRECTIONS, Block::slice_as_bytes(&corrections))?;
        }
        channel.flush()?;
        let first = self.index;
        self.index += count as u64;
        Ok(first)
    }

    /// The stripe that begins at `position`: `v` of each tree, and `c = u xor x`.
    fn stripe(
        &self,
        room: &mut Stripes,
        position: u64,
        choices: Choices,
        words: &mut [u64],
        corrections: &mut [Block],
    ) {
        let stripe = corrections.len() / choices.trees();
        let mut x = Zeroizing::new([Block::ZERO; STRIPE]);
        let x_words: &mut [u64] = bytemuck::must_cast_slice_mut(&mut x[..]);
        x_words[..words.len()].copy_from_slice(words);
        let rows = &mut room.rows[..TRANSPOSE_ROWS * stripe];
        for (g, (tree, sums)) in self.trees.iter().zip(rows.chunks_exact_mut(FIELD_BITS * stripe)).enumerate()
        {
            let u = &mut room.u[..stripe];
            tree.expand(position, &mut room.scratch, u, sums);
            if let Some(sent) = g.checked_sub(choices.first_tree()) {
                let c = &mut corrections[sent * stripe..][..stripe];
                c.copy_from_slice(u);
                add(c, &x[..]);
            } else {
                x[..stripe].copy_from_slice(u);
            }
        }
        let x_words: &[u64] = bytemuck::must_cast_slice(&x[..]);
        words.copy_from_slice(&x_words[..words.len()]);
    }
}

impl CorrelatedReceiver for CotReceiver {
    fn hashes(&self) -> &TransferHashes {
        &self.hashes
    }

    fn extend(
        &mut self,
        channel: &mut dyn Channel,
        choices: &Bits,
        out: &mut Vec<Block>,
    ) -> Result<u64, OtError> {
        let mut words = Zeroizing::new(choices.as_words().to_vec());
        self.run(channel, choices.len(), Choices::Given, &mut words, out)
    }

    fn extend_random(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
        out: &mut Vec<Block>,
    ) -> Result<(Bits, u64), OtError> {
        let mut words = vec![0; count.div_ceil(64)];
        let first = self.run(channel, count, Choices::Random, &mut words, out)?;
        Ok((Bits::from_words(count, words), first))
    }
}
