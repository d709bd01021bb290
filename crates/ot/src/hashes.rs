//! The hashes of one direction, under a key of the cipher for each block of work.
//!
//! Whoever evaluates the cipher once tries one guess of delta at all hashes under its key that have delta in them. These are
//!
//! - for `2^w` strings of which a receiver knows one, all others, whatever transfers they are combined of;
//! - for a silent tree, that of the unknown node of each level, a tag for the last.
//!
//! So a key serves few of them: the transfers of so many strings as [`STRINGS`] says, or one tree.

use std::ops::Range;

use lanner_primitives::{Block, CorrelationRobustHash, HashGroups};

/// Bits of computational security of what is hashed: those of delta that are secret, less what one guess is tried at.
pub const SECURITY_BITS: u32 = 127 - STRINGS.ilog2();

/// Strings that a sender hashes under one key, all of each of the transfers.
const STRINGS: u64 = 1 << 11;

/// The most bits of a choice among strings that share a transfer's index.
pub const MAX_WIDTH: u32 = 10;

/// The hashes of one direction of a session's transfers.
pub struct TransferHashes {
    groups: HashGroups,
}

impl TransferHashes {
    /// Of a fresh public salt.
    pub(crate) fn new(salt: Block) -> Self {
        Self { groups: HashGroups::new(salt) }
    }

    /// The hash of a silent tree, by its number in its source's life.
    pub(crate) fn tree(&self, tree: u64) -> CorrelationRobustHash {
        self.groups.group(TREES | tree)
    }

    /// The hashes of `count` consecutive indices from `first` on, and which of them are hashed with each: of indices that choose one of
    /// `2^width` strings each, the hash of a given number of each string.
    ///
    /// # Panics
    /// If there are more bits than [`MAX_WIDTH`], or numbers than four.
    pub fn runs(
        &self,
        width: u32,
        number: u64,
        first: u64,
        count: usize,
    ) -> impl Iterator<Item = (CorrelationRobustHash, Range<usize>)> {
        assert!(width <= MAX_WIDTH && number < 4, "keys of hashes would come twice");
        let indices = STRINGS >> width;
        let mut start = 0_usize;
        std::iter::from_fn(move || {
            let index = first + start as u64;
            let run = start..count.min(start + (indices - index % indices) as usize);
            start = run.end;
            let block = number << NUMBER | u64::from(width) << WIDTH | (index / indices);
            (!run.is_empty()).then(|| (self.groups.group(block), run))
        })
    }

    /// Replaces every `x[j]` by the hash of `x[j] xor offset` of index `first + j`: a key of each transfer.
    pub fn hash_in_place(&self, x: &mut [Block], offset: Block, first: u64) {
        for (hash, run) in self.runs(1, 0, first, x.len()) {
            let first = first + run.start as u64;
            hash.hash_masked_in_place(&mut x[run], offset, first);
        }
    }

    /// Writes the low word of each such hash to `out`, which is as long.
    pub fn hash_to_words(&self, x: &[Block], offset: Block, first: u64, out: &mut [u64]) {
        for (hash, run) in self.runs(1, 0, first, x.len()) {
            let first = first + run.start as u64;
            hash.hash_to_words(&x[run.clone()], offset, first, &mut out[run]);
        }
    }
}

/// Set in the numbers of all trees' keys and in none of a transfer's.
const TREES: u64 = 1 << 63;
/// Where the number of a hash is, of two bits.
const NUMBER: u32 = 60;
/// Where the bits of a choice are, of four bits: indices stay below.
const WIDTH: u32 = 56;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::silent::Parameters;

    /// What a key of the cipher hashes a given string to: as good as the key.
    fn mark(hash: &CorrelationRobustHash) -> u128 {
        hash.hash(Block(3), 0).0
    }

    /// One evaluation of the cipher tries one guess of delta, of which 127 bits are unknown, at all hashes under its key with delta in them.
    #[test]
    fn strength_follows_from_the_hashes_under_one_key() {
        let hashes = TransferHashes::new(Block(1));
        let mut most = Parameters::ALL.map(|set| set.depth() as u64).into_iter().max().unwrap_or_default();
        for width in 1..=MAX_WIDTH {
            // From within a block on.
            for (_, run) in hashes.runs(width, 0, 12_345, 5000) {
                most = most.max(run.len() as u64 * ((1 << width) - 1));
            }
        }
        assert_eq!(127 - most.next_power_of_two().ilog2(), SECURITY_BITS);
    }

    #[test]
    fn every_block_and_tree_has_a_key_of_its_own() {
        let hashes = TransferHashes::new(Block(1));
        let mut marks = BTreeSet::new();
        let mut blocks = 0;
        for width in 0..=MAX_WIDTH {
            for number in 0..4 {
                for (hash, _) in hashes.runs(width, number, 0, 5000) {
                    blocks += 1;
                    marks.insert(mark(&hash));
                }
            }
        }
        marks.extend((0..1000).map(|tree| mark(&hashes.tree(tree))));
        assert_eq!(marks.len(), blocks + 1000);
    }

    #[test]
    fn an_index_has_one_key_however_it_is_reached() {
        let hashes = TransferHashes::new(Block(1));
        for width in [1, 4, 8, 10] {
            let whole: Vec<u128> = hashes
                .runs(width, 1, 0, 3000)
                .flat_map(|(hash, run)| std::iter::repeat_n(mark(&hash), run.len()))
                .collect();
            assert_eq!(whole.len(), 3000);
            for start in [0, 1, 1000, 1024, 2999] {
                let mut next = 0;
                for (hash, run) in hashes.runs(width, 1, start as u64, 3000 - start) {
                    assert_eq!(run.start, next);
                    next = run.end;
                    assert!(run.clone().all(|index| whole[start + index] == mark(&hash)));
                }
                assert_eq!(next, 3000 - start);
            }
        }
    }

    #[test]
    fn keys_of_transfers_are_those_of_their_indices() {
        let hashes = TransferHashes::new(Block(9));
        let x: Vec<Block> = (0..3000).map(|i| Block(i * i + 1)).collect();
        let (offset, first) = (Block(1 << 90), 777);
        let mut all = x.clone();
        hashes.hash_in_place(&mut all, offset, first);
        let mut words = vec![0; x.len()];
        hashes.hash_to_words(&x, offset, first, &mut words);
        // Two strings of each.
        for (hash, run) in hashes.runs(1, 0, first, x.len()) {
            for j in run {
                let key = hash.hash(x[j] ^ offset, first + j as u64);
                assert!(all[j] == key && words[j] == key.0 as u64);
            }
        }
    }
}
