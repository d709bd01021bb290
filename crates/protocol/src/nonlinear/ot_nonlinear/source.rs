//! Transfers of one direction as moves use them: part by part, so that what is made of a part is made while it is in the processor's cache.

use lanner_ot::{CorrelatedReceiver, CorrelatedSender};
use lanner_primitives::{Bits, Block, CorrelationRobustHash, parallel};
use lanner_wire::Channel;
use zeroize::Zeroizing;

use super::lanes::Values;
use super::transfers::Transfers;
use crate::ProtocolError;

/// Values whose transfers are drawn in one go: whole words of bits.
pub(super) const PART: usize = 1 << 13;

/// Values of one item of work.
const ITEM: usize = 1 << 10;

/// The sizes of the parts that a number of values is taken in.
pub(super) fn parts(values: usize) -> impl Iterator<Item = usize> {
    (0..values).step_by(PART).map(move |start| PART.min(values - start))
}

/// One direction of a session's transfers.
pub(super) struct Source<'s> {
    channel: &'s mut dyn Channel,
    transfers: &'s mut Transfers,
    /// Whether this party sends them.
    sends: bool,
    /// The last part.
    blocks: Zeroizing<Vec<Block>>,
}

/// Transfers of some values.
pub(super) struct Part<'p> {
    blocks: &'p [Block],
    hash: &'p CorrelationRobustHash,
    /// The choices, where this party receives.
    choices: Bits,
    /// The index of the first.
    first: u64,
}

impl<'s> Source<'s> {
    pub(super) fn new(channel: &'s mut dyn Channel, transfers: &'s mut Transfers, sends: bool) -> Self {
        Self { channel, transfers, sends, blocks: Zeroizing::new(Vec::new()) }
    }

    /// The next `count` transfers.
    pub(super) fn draw(&mut self, count: usize) -> Result<Part<'_>, ProtocolError> {
        let Self { channel, transfers, sends, blocks } = self;
        blocks.clear();
        let (choices, first, hash) = if *sends {
            let first = transfers.sender.extend_random(*channel, count, blocks)?;
            (Bits::default(), first, transfers.sender.hash())
        } else {
            let (choices, first) = transfers.receiver.extend_random(*channel, count, blocks)?;
            (choices, first, transfers.receiver.hash())
        };
        Ok(Part { blocks, hash, choices, first })
    }

    /// What the sender's second keys differ by.
    pub(super) fn delta(&self) -> Block {
        self.transfers.sender.delta()
    }
}

impl Part<'_> {
    /// The low word of the key of each transfer, whose block is added to `offset` before it is hashed.
    pub(super) fn keys(&self, offset: Block) -> Values {
        let mut made = Zeroizing::new(vec![0; self.blocks.len()]);
        let items = made.chunks_mut(ITEM).zip(self.blocks.chunks(ITEM)).zip((self.first..).step_by(ITEM));
        parallel::for_each(items, |((made, blocks), first)| {
            self.hash.hash_to_words(blocks, offset, first, made);
        });
        made
    }

    /// The low word of the key of each `width` transfers together.
    pub(super) fn joint_keys(&self, width: usize) -> Values {
        let mut made = Zeroizing::new(vec![0; self.blocks.len() / width]);
        let items = made.chunks_mut(ITEM).zip(self.blocks.chunks(ITEM * width));
        parallel::for_each(items.zip((self.first..).step_by(ITEM)), |((made, blocks), first)| {
            each_batch(blocks, width, first, |bases, first| {
                let (now, _) = made.split_at_mut(bases.len());
                self.hash.hash_to_words(bases, Block::ZERO, first, now);
                made = &mut made[now.len()..];
            });
        });
        made
    }

    /// Of all keys of each `width` transfers together, which differ by `offsets`, `ROWS` low bits each.
    pub(super) fn all_joint_keys<const ROWS: usize>(&self, width: usize, offsets: &[Block], made: &mut [u16]) {
        let items = made.chunks_mut(ITEM * ROWS).zip(self.blocks.chunks(ITEM * width));
        parallel::for_each(items.zip((self.first..).step_by(ITEM)), |((made, blocks), first)| {
            let mut made = made.as_chunks_mut::<ROWS>().0.iter_mut();
            each_batch(blocks, width, first, |bases, first| {
                let mut bits = Zeroizing::new([[0; ROWS]; BATCH]);
                self.hash.hash_runs_to_bits(bases, offsets, first, &mut bits[..bases.len()]);
                made.by_ref().zip(bits.iter()).take(bases.len()).for_each(|(made, bits)| *made = *bits);
            });
        });
    }

    /// The choices from transfer `i` on, 64 of them; zeros behind the last.
    pub(super) fn choices(&self, i: usize) -> u64 {
        let (word, shift) = (i / 64, i % 64);
        let at = |word: usize| self.choices.as_words().get(word).copied().unwrap_or_default();
        at(word) >> shift | at(word + 1) << (63 - shift) << 1
    }
}
