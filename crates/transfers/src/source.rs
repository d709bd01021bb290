//! Transfers of one direction as moves use them: part by part, so that what is made of a part is made while it is in the processor's cache.

use std::ops::Range;

use lanner_ot::{CorrelatedReceiver, CorrelatedSender, TransferHashes};
use lanner_primitives::{Bits, Block, CorrelationRobustHash, double_and_add, parallel};
use lanner_step::{Result, Transfers};
use lanner_wire::Channel;
use zeroize::Zeroizing;

use super::lanes::Values;
use super::lookup::MAX_PLACE_BITS;

/// Values whose transfers are drawn in one go: whole words of bits.
pub(super) const PART: usize = 1 << 13;

/// Values of one item of work.
pub(super) const ITEM: usize = 1 << 10;

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
    hashes: &'p TransferHashes,
    /// The choices, where this party receives.
    choices: Bits,
    /// The index of the first.
    first: u64,
}

impl<'s> Source<'s> {
    pub(super) fn new(channel: &'s mut dyn Channel, transfers: &'s mut Transfers, sends: bool) -> Self {
        // Room for every draw, so that none moves them.
        let blocks = Zeroizing::new(Vec::with_capacity(MAX_PLACE_BITS as usize * PART));
        Self { channel, transfers, sends, blocks }
    }

    /// The next `count` transfers, those of [`PART`] values at most.
    pub(super) fn draw(&mut self, count: usize) -> Result<Part<'_>> {
        let Self { channel, transfers, sends, blocks } = self;
        blocks.clear();
        let (choices, first, hashes) = if *sends {
            let first = transfers.sender.extend_random(*channel, count, blocks)?;
            (Bits::default(), first, transfers.sender.hashes())
        } else {
            let (choices, first) = transfers.receiver.extend_random(*channel, count, blocks)?;
            (choices, first, transfers.receiver.hashes())
        };
        Ok(Part { blocks, hashes, choices, first })
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
            self.hashes.hash_to_words(blocks, offset, first, made);
        });
        made
    }

    /// The whole key of each transfer, whose block is added to `offset` before it is hashed.
    pub(super) fn hashes(&self, offset: Block) -> Zeroizing<Vec<Block>> {
        let mut made = Zeroizing::new(self.blocks.to_vec());
        let items = made.chunks_mut(ITEM).zip((self.first..).step_by(ITEM));
        parallel::for_each(items, |(made, first)| self.hashes.hash_in_place(made, offset, first));
        made
    }

    /// The low word of the key of each `width` transfers together: of the first of each `width`th part of all, of the second of each, and so on.
    pub(super) fn joint_keys(&self, width: usize) -> Values {
        let mut made = Zeroizing::new(vec![0; self.blocks.len() / width]);
        parallel::for_each(made.chunks_mut(ITEM).zip((0..).step_by(ITEM)), |(made, start)| {
            self.combine(width, 0, start..start + made.len(), |hash, first, batch, bases| {
                hash.hash_to_words(bases, Block::ZERO, first, &mut made[batch]);
            });
        });
        made
    }

    /// Of all keys of each `width` transfers together, as in [`Self::joint_keys`], which differ by `offsets`, `ROWS` low bits each.
    pub(super) fn all_joint_keys<const ROWS: usize>(
        &self,
        width: usize,
        offsets: &[Block],
        made: &mut [u16],
    ) {
        debug_assert!(offsets.len() <= 1 << width, "more strings under a key than are counted");
        let (made, _) = made.as_chunks_mut::<ROWS>();
        parallel::for_each(made.chunks_mut(ITEM).zip((0..).step_by(ITEM)), |(made, start)| {
            self.combine(width, 0, start..start + made.len(), |hash, first, batch, bases| {
                hash.hash_runs_to_bits(bases, offsets, first, &mut made[batch]);
            });
        });
    }

    /// Hashes of the strings of each `width` transfers together, to which each of `offsets` is added, for the values of a range: value by value all
    /// offsets', some at a time, with the place of the first. Hashes of one string that differ by `number` are independent.
    pub(super) fn joint_hashes(
        &self,
        width: usize,
        offsets: &[Block],
        number: u64,
        values: Range<usize>,
        mut take: impl FnMut(usize, &[Block]),
    ) {
        debug_assert!(offsets.len() <= 1 << width, "more strings under a key than are counted");
        self.combine(width, number, values, |hash, _, batch, bases| {
            hash_all(hash, bases, offsets, batch.start, &mut take);
        });
    }

    /// What each `width` transfers together combine to, as in [`Self::joint_keys`], before it is hashed.
    pub(super) fn joint(&self, width: usize) -> Joint {
        let mut strings = Zeroizing::new(vec![Block::ZERO; self.blocks.len() / width]);
        for (strings, start) in strings.chunks_mut(BATCH).zip((0..).step_by(BATCH)) {
            let sums = self.combined(width, start, strings.len());
            strings.copy_from_slice(&sums[..strings.len()]);
        }
        Joint { width, first: self.first, strings }
    }

    /// Has `take` hash what `width` transfers each combine to, for some values of a range at a time, [`BATCH`] at most: with their hash of a number, the index
    /// of the first, and their places in the range.
    fn combine(
        &self,
        width: usize,
        number: u64,
        values: Range<usize>,
        mut take: impl FnMut(&CorrelationRobustHash, u64, Range<usize>, &[Block]),
    ) {
        let first = self.first + values.start as u64;
        for (hash, run) in self.hashes.runs(width as u32, number, first, values.len()) {
            for start in run.clone().step_by(BATCH) {
                let batch = start..run.end.min(start + BATCH);
                let bases = self.combined(width, values.start + start, batch.len());
                take(&hash, first + start as u64, batch.clone(), &bases[..batch.len()]);
            }
        }
    }

    /// `sum_b g^b blocks_b` for the parts `blocks_b` of all blocks, `width` of them: so many from `start` on, [`BATCH`] at most.
    fn combined(&self, width: usize, start: usize, count: usize) -> Zeroizing<[Block; BATCH]> {
        let mut sums = Zeroizing::new([Block::ZERO; BATCH]);
        for part in self.blocks.chunks_exact(self.blocks.len() / width).rev() {
            double_and_add(&mut sums[..count], &part[start..start + count]);
        }
        sums
    }

    /// The choices from transfer `i` on, 64 of them; zeros behind the last.
    pub(super) fn choices(&self, i: usize) -> u64 {
        let (word, shift) = (i / 64, i % 64);
        let at = |word: usize| self.choices.as_words().get(word).copied().unwrap_or_default();
        at(word) >> shift | at(word + 1) << (63 - shift) << 1
    }
}

/// Strings that are combined before they are hashed together.
const BATCH: usize = 64;

/// What transfers of some values combine to, whose keys are made once it is known which are used.
pub(super) struct Joint {
    /// Transfers of each value.
    width: usize,
    /// The index of the first value.
    first: u64,
    strings: Zeroizing<Vec<Block>>,
}

impl Joint {
    /// The values.
    pub(super) fn len(&self) -> usize {
        self.strings.len()
    }

    /// Adds a block to each value's string.
    pub(super) fn add(&mut self, blocks: impl Iterator<Item = Block>) {
        self.strings.iter_mut().zip(blocks).for_each(|(string, block)| *string ^= block);
    }

    /// As [`Part::joint_hashes`], of number 0.
    pub(super) fn hashes(
        &self,
        hashes: &TransferHashes,
        offsets: &[Block],
        values: Range<usize>,
        mut take: impl FnMut(usize, &[Block]),
    ) {
        debug_assert!(offsets.len() <= 1 << self.width, "more strings under a key than are counted");
        let (first, strings) = (self.first + values.start as u64, &self.strings[values]);
        for (hash, run) in hashes.runs(self.width as u32, 0, first, strings.len()) {
            hash_all(&hash, &strings[run.clone()], offsets, run.start, &mut take);
        }
    }
}

/// Has `take` see the hashes of strings to which each of `offsets` is added, string by string all offsets', some at a time, with the place of the first,
/// where the first string is number `first`.
fn hash_all(
    hash: &CorrelationRobustHash,
    strings: &[Block],
    offsets: &[Block],
    first: usize,
    take: &mut impl FnMut(usize, &[Block]),
) {
    let mut hashes = Zeroizing::new([Block::ZERO; BATCH]);
    // As many strings at a time as fill a batch, or a part of the offsets of one.
    let at_once = (BATCH / offsets.len()).max(1);
    for (strings, value) in strings.chunks(at_once).zip((first..).step_by(at_once)) {
        for (offsets_at_once, row) in offsets.chunks(BATCH).zip((0..).step_by(BATCH)) {
            let hashes = &mut hashes[..strings.len() * offsets_at_once.len()];
            for (hashes, string) in hashes.chunks_mut(offsets_at_once.len()).zip(strings) {
                hashes.iter_mut().zip(offsets_at_once).for_each(|(hash, by)| *hash = *string ^ *by);
            }
            // Under a key of so few, random strings need no tweaks to differ.
            hash.hash_alike_in_place(hashes, 0);
            take(value * offsets.len() + row, hashes);
        }
    }
}

/// `j delta` for all numbers `j` of so many bits: what the keys of combined transfers differ by.
pub(super) fn multiples(delta: Block, bits: u32) -> Zeroizing<Vec<Block>> {
    let mut all = Zeroizing::new(vec![Block::ZERO; 1 << bits]);
    let mut power = delta;
    for half in (0..bits).map(|bit| 1 << bit) {
        for j in 0..half {
            all[half + j] = all[j] ^ power;
        }
        power = power.double();
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn multiples_are_linear_and_distinct() {
        let delta = Block(0xfedc_ba98_7654_3210_0123_4567_89ab_cdef);
        let all = multiples(delta, 4);
        for j in 0..16 {
            for k in 0..16 {
                assert!(all[j] ^ all[k] == all[j ^ k]);
                assert!(j == k || all[j] != all[k]);
            }
        }
        assert!(delta.double() ^ delta.double().double().double() == all[10]);
        // Of a difference that goes beyond the highest bit, too.
        let many: BTreeSet<u128> =
            multiples(delta, lanner_ot::MAX_WIDTH).iter().map(|block| block.0).collect();
        assert_eq!(many.len(), 1 << lanner_ot::MAX_WIDTH);
    }
}
