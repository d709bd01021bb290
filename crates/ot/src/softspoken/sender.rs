use lanner_primitives::{Bits, Block, TRANSPOSE_ROWS, parallel, transpose};
use lanner_wire::Channel;
use rand_core::CryptoRng;
use zeroize::{Zeroize, Zeroizing};

use super::check::{self, Batch, PROOF_BYTES, ROWS};
use super::leaves::{Context, Hash, Tags};
use super::messages::{CHUNK_STRIPES, Choices, Chunks, PUNCTURE_BYTES, SUMS_BYTES};
use super::punctured::{self, PUNCTURE_BLOCKS};
use super::small_field::{STRIPE, Scratch, Tree};
use super::{FIELD_BITS, TREES};
use crate::{CorrelatedSender, OtError, TransferHashes, base, kind};

/// The sender of correlated transfers: it holds `delta` and gets `q[i]`.
pub struct CotSender {
    delta: Block,
    hashes: TransferHashes,
    context: Context,
    /// None once the receiver cheated: delta is gone, too.
    pub(super) trees: Vec<Tree>,
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
    /// [`OtError::Delta`] if the lowest bit of `delta` is zero; [`OtError::Dishonest`] if the receiver's trees fail their check; any failure of the channel or of the base OT.
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
        let mut message = vec![0; PUNCTURE_BYTES];
        channel.receive_into(kind::PUNCTURE, &mut message)?;
        let context = Context::new(salt, &message);
        let (puncture, proof) = message.split_at(SUMS_BYTES);
        let (sums, digest) = proof.split_at(TREES * size_of::<Hash>());

        let mut trees = Vec::with_capacity(TREES);
        let mut tags = Tags::new();
        let parts = puncture.chunks_exact(PUNCTURE_BLOCKS * Block::BYTES).zip(sums.as_chunks().0);
        for (tree, (bytes, sum)) in parts.enumerate() {
            let mut blocks = [Block::ZERO; PUNCTURE_BLOCKS];
            Block::slice_as_bytes_mut(&mut blocks).copy_from_slice(bytes);
            let alpha = Zeroizing::new(std::array::from_fn(|b| choices.get(FIELD_BITS * tree + b)));
            let keys = Zeroizing::new(std::array::from_fn(|b| keys[FIELD_BITS * tree + b]));
            let leaves = punctured::complete(&keys, &alpha, &blocks);
            tags.punctured(&leaves, *alpha, sum);
            trees.push(Tree::punctured(&context.seeds(tree, &leaves)));
        }
        if !tags.equal(digest) {
            return Err(OtError::Dishonest { what: "trees of a set-up" });
        }
        let hashes = TransferHashes::new(context.salt());
        Ok(Self { delta, hashes, context, trees, position: 0, index: 0 })
    }

    fn run(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
        choices: Choices,
        out: &mut Vec<Block>,
    ) -> Result<u64, OtError> {
        let start = out.len();
        let result = self.checked(channel, count, choices, out);
        if result.is_err() {
            out[start..].zeroize();
            out.truncate(start);
        }
        if matches!(result, Err(OtError::Dishonest { .. })) {
            self.trees.clear();
            self.delta.zeroize();
        }
        result
    }

    /// One batch: what is appended to `out` is of use only if it ends well.
    fn checked(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
        choices: Choices,
        out: &mut Vec<Block>,
    ) -> Result<u64, OtError> {
        if self.trees.is_empty() {
            return Err(DISHONEST);
        }
        let first = self.index;
        if count == 0 {
            return Ok(first);
        }
        let start = out.len();
        out.resize(start + count, Block::ZERO);
        let mut columns = out[start..].chunks_mut(STRIPE * TRANSPOSE_ROWS);
        let mut rooms = Stripes::rooms();
        let mut sums = Zeroizing::new(vec![Block::ZERO; ROWS * CHUNK_STRIPES]);
        let mut digests = [Hash::default(); CHUNK_STRIPES];

        let mut batch = Batch::new(&self.context, self.position, count, choices);
        let mut corrections = vec![Block::ZERO; Choices::Random.trees()];
        channel.receive_into(kind::CORRECTIONS, Block::slice_as_bytes_mut(&mut corrections))?;
        self.stripe(&mut rooms[0], self.position, 1, Choices::Random, &corrections);
        batch.hide(&corrections, &rooms[0].rows[..TRANSPOSE_ROWS]);
        self.position += 1;
        for chunk in Chunks::of(count) {
            corrections.resize(chunk * choices.trees(), Block::ZERO);
            channel.receive_into(kind::CORRECTIONS, Block::slice_as_bytes_mut(&mut corrections))?;
            let parts = || corrections.chunks(STRIPE * choices.trees());
            let digests = &mut digests[..chunk.div_ceil(STRIPE)];
            parallel::for_each(parts().zip(&mut *digests), |(part, digest)| *digest = check::digest(part));
            let powers = batch.challenge(digests, chunk);
            let ends = powers.chunks(STRIPE).zip(sums.chunks_exact_mut(ROWS)).zip(columns.by_ref());
            let stripes = (self.position..).step_by(STRIPE).zip(parts()).zip(ends);
            in_rooms(&mut rooms, chunk, stripes, |room, ((position, part), ((powers, sums), out))| {
                self.stripe(room, position, powers.len(), choices, part);
                let rows = &room.rows[..TRANSPOSE_ROWS * powers.len()];
                sums.copy_from_slice(&check::sums(powers, rows)[..]);
                to_columns(rows, &mut room.columns, out)
            })?;
            sums.chunks_exact(ROWS).take(digests.len()).for_each(|sums| batch.add(sums));
            self.position += chunk as u64;
        }
        let mut proof = [0; PROOF_BYTES];
        channel.receive_into(kind::PROOF, &mut proof)?;
        if !batch.verify(self.delta, &proof) {
            return Err(DISHONEST);
        }
        self.index += count as u64;
        Ok(first)
    }

    /// The rows of the stripe of `stripe` blocks of columns that begins at `position`: `w + c * delta_g` for each tree.
    fn stripe(
        &self,
        room: &mut Stripes,
        position: u64,
        stripe: usize,
        choices: Choices,
        corrections: &[Block],
    ) {
        let rows = &mut room.rows[..TRANSPOSE_ROWS * stripe];
        for (g, (tree, sums)) in self.trees.iter().zip(rows.chunks_exact_mut(FIELD_BITS * stripe)).enumerate()
        {
            tree.expand(position, &mut room.scratch, &mut room.u[..stripe], sums);
            if let Some(g) = g.checked_sub(choices.first_tree()) {
                let c = &corrections[g * stripe..][..stripe];
                let first_bit = FIELD_BITS * (g + choices.first_tree());
                for (b, row) in sums.chunks_exact_mut(stripe).enumerate() {
                    // Or a compiler that knows the mask for one of two would branch on it.
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

    fn hashes(&self) -> &TransferHashes {
        &self.hashes
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

/// What is wrong with a receiver that is caught.
const DISHONEST: OtError = OtError::Dishonest { what: "corrections of transfers" };

/// Room for one stripe of all trees.
pub(super) struct Stripes {
    pub(super) scratch: Scratch,
    pub(super) u: Zeroizing<[Block; STRIPE]>,
    /// The 128 rows of bits.
    pub(super) rows: Zeroizing<Vec<Block>>,
    pub(super) columns: Zeroizing<Vec<Block>>,
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

    /// One for each stripe that is worked on at once.
    pub(super) fn rooms() -> Vec<Self> {
        (0..parallel::threads()).map(|_| Self::new()).collect()
    }
}

/// Transposes the rows of a stripe into `out`, which is shorter where the last columns are padding; `room` is overwritten then.
pub(super) fn to_columns(rows: &[Block], room: &mut [Block], out: &mut [Block]) -> Result<(), OtError> {
    if out.len() == rows.len() {
        return Ok(transpose(rows, out)?);
    }
    transpose(rows, &mut room[..rows.len()])?;
    out.copy_from_slice(&room[..out.len()]);
    Ok(())
}

/// Works on the stripes of a chunk of a given number of blocks of columns, each in one of the rooms.
pub(super) fn in_rooms<T: Send>(
    rooms: &mut [Stripes],
    chunk: usize,
    stripes: impl Iterator<Item = T>,
    work: impl Fn(&mut Stripes, T) -> Result<(), OtError> + Send + Sync,
) -> Result<(), OtError> {
    let each = chunk.div_ceil(STRIPE).div_ceil(rooms.len()).max(1);
    let mut stripes = stripes.take(chunk.div_ceil(STRIPE));
    let shares: Vec<_> = rooms.iter_mut().map(|room| (room, stripes.by_ref().take(each).collect())).collect();
    let work = |(room, stripes): (&mut Stripes, Vec<T>)| {
        stripes.into_iter().try_for_each(|stripe| work(room, stripe))
    };
    parallel::map(shares, work).into_iter().collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn every_stripe_of_a_chunk_is_worked_on_once_however_many_rooms() {
        parallel::set_threads(3);
        for rooms in [1, 2, 3, 9] {
            let mut rooms: Vec<_> = (0..rooms).map(|_| Stripes::new()).collect();
            let mut left = 0..20;
            for (blocks, expected) in [(8 * STRIPE, 0..8), (8 * STRIPE, 8..16), (2 * STRIPE + 1, 16..19)] {
                let seen = Mutex::new(Vec::new());
                let note = |_: &mut Stripes, stripe| {
                    seen.lock().unwrap().push(stripe);
                    Ok(())
                };
                in_rooms(&mut rooms, blocks, left.by_ref(), note).unwrap();
                let mut seen = seen.into_inner().unwrap();
                seen.sort_unstable();
                assert_eq!(seen, expected.collect::<Vec<_>>());
            }
        }
    }
}
