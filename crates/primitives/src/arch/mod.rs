//! The kernels that have accelerated twins, and the choice between them at run time.
//!
//! Every twin gives the same bytes as the portable code. `unsafe` is for calling code that needs processor features, whose
//! presence was checked, and for loads and stores whose bounds were checked.

// The portable kernels are inlined into wrappers that enable vector instructions; without it those would not apply.
#![allow(clippy::inline_always)]

#[cfg(target_arch = "x86_64")]
mod double_x86;
#[cfg(target_arch = "x86_64")]
mod gf128_x86;
#[cfg(target_arch = "x86_64")]
mod hash_x86;
#[cfg(target_arch = "x86_64")]
mod local_code_x86;
#[cfg(target_arch = "x86_64")]
mod low_bits_x86;
mod portable;
#[cfg(target_arch = "x86_64")]
mod registers;
#[cfg(target_arch = "x86_64")]
mod short_hash_x86;
#[cfg(target_arch = "x86_64")]
mod siblings_x86;
#[cfg(target_arch = "x86_64")]
mod transpose_x86;
#[cfg(target_arch = "x86_64")]
mod vaes;

#[cfg(target_arch = "x86_64")]
pub(crate) use local_code_x86::MAX_INPUTS as MAX_WIDE_INPUTS;
#[cfg(target_arch = "x86_64")]
pub(crate) use vaes::WideCipher;

use crate::Block;
#[cfg(not(target_arch = "x86_64"))]
use crate::cipher::Numbering;

/// Transposes `rows` (128 rows of `out.len() / 128` blocks) into `out`; the lengths are equal multiples of 128.
pub(crate) fn transpose(rows: &[Block], out: &mut [Block]) {
    #[cfg(target_arch = "x86_64")]
    if transpose_x86::transpose(rows, out) {
        return;
    }
    portable::transpose(rows, out);
}

/// Adds `values` at block `place` of each half of `blocks`, whose length is even, reading and writing all of them.
pub(crate) fn add_at_siblings(blocks: &mut [Block], place: usize, values: [Block; 2]) {
    #[cfg(target_arch = "x86_64")]
    if siblings_x86::add_at_siblings(blocks, place, values) {
        return;
    }
    portable::add_at_siblings(blocks, place, values);
}

/// Adds `value` to both blocks of each pair of siblings, one in each half of `blocks`, whose sum has a low bit; the length is even.
pub(crate) fn add_by_parents(blocks: &mut [Block], value: Block) {
    #[cfg(target_arch = "x86_64")]
    if siblings_x86::add_by_parents(blocks, value) {
        return;
    }
    portable::add_by_parents(blocks, value);
}

/// The low bits of at most 64 blocks.
pub(crate) fn low_bits(blocks: &[Block]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if let Some(word) = low_bits_x86::low_bits(blocks) {
        return word;
    }
    portable::low_bits(blocks)
}

/// Bit `bit` of each of at most 64 words.
pub(crate) fn bit_of_words(words: &[u64], bit: u32) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if let Some(word) = low_bits_x86::bit_of_words(words, bit) {
        return word;
    }
    portable::bit_of_words(words, bit)
}

/// Replaces every `x[j]` by the sum of `y[j]` and its double, for `j` below the shorter length.
pub(crate) fn double_and_add(x: &mut [Block], y: &[Block]) {
    #[cfg(target_arch = "x86_64")]
    if double_x86::double_and_add(x, y) {
        return;
    }
    portable::double_and_add(x, y);
}

/// The sum of the products of the elements of `GF(2^128)` at equal places, below the shorter length.
pub(crate) fn field_dot(a: &[Block], b: &[Block]) -> Block {
    #[cfg(target_arch = "x86_64")]
    if let Some(sum) = gf128_x86::field_dot(a, b) {
        return sum;
    }
    portable::field_dot(a, b)
}

/// Inputs of a code that are too many for the wide cipher.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const MAX_WIDE_INPUTS: u32 = 0;

/// The wide cipher of machines that have none: it is never made.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) enum WideCipher {}

#[cfg(not(target_arch = "x86_64"))]
impl WideCipher {
    pub(crate) const fn new(_key: &[u8; 16]) -> Option<Self> {
        None
    }

    pub(crate) fn hash(&self, _x: &mut [Block], _offset: Block, _tweaks: Numbering) {
        match *self {}
    }

    pub(crate) fn add_local(&self, _input: &[Block], _first: u64, _out: &mut [Block]) {
        match *self {}
    }

    pub(crate) fn expand(&self, _nodes: &mut [Block], _tweaks: Numbering, _keep: Block) -> Block {
        match *self {}
    }

    pub(crate) fn encrypt(&self, _bytes: &mut [u8]) {
        match *self {}
    }

    pub(crate) fn counter_mode(&self, _first: u64, _bytes: &mut [u8]) {
        match *self {}
    }

    pub(crate) fn hash_low_words(&self, _x: &[Block], _offset: Block, _first: u64, _out: &mut [u64]) {
        match *self {}
    }

    pub(crate) fn hash_runs_to_bits<const ROWS: usize>(
        &self,
        _x: &[Block],
        _multiples: &[Block],
        _first: u64,
        _out: &mut [[u16; ROWS]],
    ) {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_core::SeedableRng;

    use super::*;
    use crate::Prg;

    /// Beyond what tiles and blocks are tried: a block that is drawn takes Miri tenths of a second.
    const TILES: usize = if cfg!(miri) { 3 } else { 19 };
    const BLOCKS: usize = if cfg!(miri) { 20 } else { 70 };

    proptest! {
        #[test]
        fn transposition_equals_its_portable_twin(seed: [u8; 16], tiles in 0..TILES) {
            let mut rows = vec![Block::ZERO; 128 * tiles];
            Prg::from_seed(seed).fill_blocks(&mut rows);
            let (mut fast, mut plain) = (rows.clone(), rows.clone());
            transpose(&rows, &mut fast);
            portable::transpose(&rows, &mut plain);
            prop_assert!(fast == plain);
        }

        #[test]
        fn addition_by_parents_equals_its_portable_twin(seed: [u8; 16], half in 0..BLOCKS) {
            let mut blocks = vec![Block::ZERO; 2 * half + 1];
            Prg::from_seed(seed).fill_blocks(&mut blocks);
            let value = blocks.pop().unwrap_or_default();
            let (mut fast, mut plain) = (blocks.clone(), blocks.clone());
            add_by_parents(&mut fast, value);
            portable::add_by_parents(&mut plain, value);
            let due = |j: usize| (blocks[j % half] ^ blocks[half + j % half]).lsb();
            let direct = (0..2 * half).map(|j| if due(j) { blocks[j] ^ value } else { blocks[j] });
            prop_assert!(fast == plain && direct.eq(plain));
        }

        #[test]
        fn low_bits_equal_their_portable_twin(seed: [u8; 16], count in 0..=64_usize) {
            let mut blocks = vec![Block::ZERO; count];
            Prg::from_seed(seed).fill_blocks(&mut blocks);
            let word = low_bits(&blocks);
            prop_assert_eq!(word, portable::low_bits(&blocks));
            prop_assert!((0..64).all(|i| (word >> i & 1 == 1) == blocks.get(i).is_some_and(|block| block.lsb())));
        }

        #[test]
        fn bits_of_words_equal_their_portable_twin(words in proptest::collection::vec(any::<u64>(), 0..=64), bit in 0..64_u32) {
            let gathered = bit_of_words(&words, bit);
            prop_assert_eq!(gathered, portable::bit_of_words(&words, bit));
            prop_assert!((0..64).all(|i| gathered >> i & 1 == words.get(i).map_or(0, |word| word >> bit & 1)));
        }

        #[test]
        fn doubling_equals_its_portable_twin(seed: [u8; 16], counts in [0..BLOCKS, 0..BLOCKS]) {
            let mut blocks = vec![Block::ZERO; counts[0] + counts[1]];
            Prg::from_seed(seed).fill_blocks(&mut blocks);
            let (x, y) = blocks.split_at(counts[0]);
            let (mut fast, mut plain) = (x.to_vec(), x.to_vec());
            double_and_add(&mut fast, y);
            portable::double_and_add(&mut plain, y);
            prop_assert!(fast == plain);
            let doubled = |j: usize| y.get(j).map_or(x[j], |y| x[j].double() ^ *y);
            prop_assert!((0..x.len()).all(|j| plain[j] == doubled(j)));
        }

        #[test]
        fn sums_of_products_equal_their_portable_twin(seed: [u8; 16], counts in [0..BLOCKS, 0..BLOCKS]) {
            let mut blocks = vec![Block::ZERO; counts[0] + counts[1]];
            Prg::from_seed(seed).fill_blocks(&mut blocks);
            let (a, b) = blocks.split_at(counts[0]);
            let sum = field_dot(a, b);
            prop_assert!(sum == portable::field_dot(a, b));
            let product = |a: Block, b: Block| (0..128).rev().fold(Block::ZERO, |sum, bit| {
                sum.double() ^ (if b.0 >> bit & 1 == 1 { a } else { Block::ZERO })
            });
            prop_assert!(sum == a.iter().zip(b).fold(Block::ZERO, |sum, (a, b)| sum ^ product(*a, *b)));
        }

        #[test]
        fn addition_to_siblings_equals_its_portable_twin(seed: [u8; 16], half in 1..BLOCKS, place: usize) {
            let mut blocks = vec![Block::ZERO; 2 * half + 2];
            Prg::from_seed(seed).fill_blocks(&mut blocks);
            let values = [blocks.pop(), blocks.pop()].map(Option::unwrap_or_default);
            let (mut fast, mut plain, mut direct) = (blocks.clone(), blocks.clone(), blocks);
            let place = place % half;
            add_at_siblings(&mut fast, place, values);
            portable::add_at_siblings(&mut plain, place, values);
            direct[place] ^= values[0];
            direct[half + place] ^= values[1];
            prop_assert!(fast == direct && plain == direct);
        }
    }
}
