use lanner_primitives::{Bits, Block, TRANSPOSE_ROWS};
use lanner_wire::Channel;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::check::{self, Batch, ROWS};
use super::leaves::{Context, Hash, Tags};
use super::messages::{CHUNK_STRIPES, Choices, Chunks, PUNCTURE_BYTES};
use super::punctured;
use super::sender::{Stripes, in_rooms, to_columns};
use super::small_field::{STRIPE, Tree, add};
use super::{FIELD_BITS, TREES};
use crate::{CorrelatedReceiver, OtError, TransferHashes, base, kind};

/// The receiver of correlated transfers: for choices `x[i]` it gets `t[i] = q[i] xor x[i] * delta`.
pub struct CotReceiver {
    hashes: TransferHashes,
    context: Context,
    pub(super) trees: Vec<Tree>,
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
        let mut whole = Vec::with_capacity(TREES);
        let (mut tags, mut sums) = (Tags::new(), Vec::with_capacity(TREES));
        let mut message = Vec::with_capacity(PUNCTURE_BYTES);
        for keys in pairs.as_chunks::<FIELD_BITS>().0 {
            let (leaves, blocks) = punctured::build(keys);
            sums.push(tags.whole(&leaves));
            whole.push(leaves);
            message.extend_from_slice(Block::slice_as_bytes(&blocks));
        }
        message.extend_from_slice(sums.as_flattened());
        message.extend(tags.digest());
        channel.send(kind::PUNCTURE, &message)?;
        let mut salt = [0; Block::BYTES];
        channel.receive_into(kind::SALT, &mut salt)?;
        let context = Context::new(Block::from_bytes(salt), &message);
        let trees = whole.iter().enumerate();
        let trees = trees.map(|(tree, leaves)| Tree::whole(&context.seeds(tree, leaves))).collect();
        let hashes = TransferHashes::new(context.salt());
        Ok(Self { hashes, context, trees, position: 0, index: 0 })
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
        let first = self.index;
        let mut chunks = Chunks::of(count).peekable();
        let Some(most) = chunks.peek().map(|blocks| blocks.div_ceil(STRIPE)) else { return Ok(first) };
        let start = out.len();
        out.resize(start + count, Block::ZERO);
        let mut columns = out[start..].chunks_mut(STRIPE * TRANSPOSE_ROWS);
        let mut words = words.chunks_mut(2 * STRIPE);
        let mut rooms = Stripes::rooms();
        // The rows of a chunk are kept until its challenge follows from all of its corrections.
        let mut rows = Zeroizing::new(vec![Block::ZERO; ROWS * STRIPE * most]);
        let mut sums = Zeroizing::new(vec![Block::ZERO; ROWS * CHUNK_STRIPES]);
        let mut digests = [Hash::default(); CHUNK_STRIPES];

        let mut batch = Batch::new(&self.context, self.position, count, choices);
        let mut corrections = vec![Block::ZERO; Choices::Random.trees()];
        self.stripe(
            &mut rooms[0],
            self.position,
            Choices::Random,
            &mut [],
            &mut rows[..ROWS],
            &mut corrections,
        );
        batch.hide(&corrections, &rows[..ROWS]);
        self.position += 1;
        // R -> S: corrections of what hides the proof
        channel.send(kind::CORRECTIONS, Block::slice_as_bytes(&corrections))?;
        for chunk in chunks {
            corrections.resize(chunk * choices.trees(), Block::ZERO);
            let stripes = chunk.div_ceil(STRIPE);
            let parts = corrections.chunks_mut(STRIPE * choices.trees());
            let ends = rows.chunks_mut(ROWS * STRIPE).zip(words.by_ref()).zip(&mut digests);
            let made = (self.position..).step_by(STRIPE).zip(parts).zip(ends);
            in_rooms(&mut rooms, chunk, made, |room, ((position, part), ((rows, words), digest))| {
                let rows = &mut rows[..ROWS * (part.len() / choices.trees())];
                self.stripe(room, position, choices, words, rows, part);
                *digest = check::digest(part);
                Ok(())
            })?;
            self.position += chunk as u64;
            // R -> S: corrections of a chunk
            channel.send(kind::CORRECTIONS, Block::slice_as_bytes(&corrections))?;

            let powers = batch.challenge(&digests[..stripes], chunk);
            let ends = sums.chunks_exact_mut(ROWS).zip(columns.by_ref());
            let made = powers.chunks(STRIPE).zip(rows.chunks(ROWS * STRIPE)).zip(ends);
            in_rooms(&mut rooms, chunk, made, |room, ((powers, rows), (sums, out))| {
                sums.copy_from_slice(&check::sums(powers, &rows[..ROWS * powers.len()])[..]);
                to_columns(&rows[..TRANSPOSE_ROWS * powers.len()], &mut room.columns, out)
            })?;
            sums.chunks_exact(ROWS).take(stripes).for_each(|sums| batch.add(sums));
        }
        // R -> S: the proof of the batch
        channel.send(kind::PROOF, &batch.prove())?;
        channel.flush()?;
        self.index += count as u64;
        Ok(first)
    }

    /// The stripe that begins at `position`: `v` of each tree, then the choices, and `c = u xor x`.
    fn stripe(
        &self,
        room: &mut Stripes,
        position: u64,
        choices: Choices,
        words: &mut [u64],
        rows: &mut [Block],
        corrections: &mut [Block],
    ) {
        let stripe = corrections.len() / choices.trees();
        let (rows, x) = rows.split_at_mut(TRANSPOSE_ROWS * stripe);
        x.fill(Block::ZERO);
        bytemuck::must_cast_slice_mut::<_, u64>(x)[..words.len()].copy_from_slice(words);
        for (g, (tree, sums)) in self.trees.iter().zip(rows.chunks_exact_mut(FIELD_BITS * stripe)).enumerate()
        {
            let u = &mut room.u[..stripe];
            tree.expand(position, &mut room.scratch, u, sums);
            if let Some(sent) = g.checked_sub(choices.first_tree()) {
                let c = &mut corrections[sent * stripe..][..stripe];
                c.copy_from_slice(u);
                add(c, x);
            } else {
                x.copy_from_slice(u);
            }
        }
        words.copy_from_slice(&bytemuck::must_cast_slice::<_, u64>(x)[..words.len()]);
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
