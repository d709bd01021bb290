//! The kernels that have accelerated twins, and the choice between them at run time.
//!
//! Every twin gives the same bytes as the portable code. `unsafe` is for calling code that needs processor features, whose
//! presence was checked, and for loads and stores whose bounds were checked.
#![allow(unsafe_code)]
// The portable kernels are inlined into wrappers that enable vector instructions; without it those would not apply.
#![allow(clippy::inline_always)]
// The instructions of a set of registers are all of one module's.
#![allow(clippy::wildcard_imports)]
// Tables of functions.
#![allow(clippy::type_complexity)]

#[cfg(any(target_arch = "aarch64", target_arch = "x86_64", target_feature = "simd128"))]
#[macro_use]
mod generic;
#[cfg(target_arch = "aarch64")]
mod aarch64;
mod portable;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64", target_feature = "simd128"))]
mod registers;
mod table;
#[cfg(target_feature = "simd128")]
mod wasm32;
mod wide;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use std::sync::OnceLock;

use table::Kernels;
pub(crate) use wide::{Numbering, ONES, WORDS, WideCipher};

/// The table of this machine.
pub(crate) fn kernels() -> &'static Kernels {
    static CHOSEN: OnceLock<Kernels> = OnceLock::new();
    CHOSEN.get_or_init(|| available().pop().unwrap_or(portable::KERNELS))
}

/// A key for the cipher of this machine that takes many blocks at a time, if there is one.
pub(crate) fn wide_cipher(key: &[u8; 16]) -> Option<WideCipher> {
    kernels().cipher.map(|kernels| WideCipher::new(kernels, key))
}

/// A key for every such cipher.
#[cfg(test)]
pub(crate) fn every_wide_cipher(key: [u8; 16]) -> impl Iterator<Item = WideCipher> {
    available()
        .into_iter()
        .filter_map(|table| table.cipher)
        .map(move |kernels| WideCipher::new(kernels, &key))
}

/// Every table of this machine, the slowest first.
fn available() -> Vec<Kernels> {
    let tables = vec![portable::KERNELS];
    #[cfg(target_arch = "aarch64")]
    let tables = aarch64::available(tables);
    #[cfg(target_feature = "simd128")]
    let tables = wasm32::available(tables);
    #[cfg(target_arch = "x86_64")]
    let tables = x86_64::available(tables);
    tables
}

/// The instructions that this machine's kernels are compiled for, by what they compute; `portable` where there are no others.
#[must_use]
pub fn instructions() -> [(&'static str, &'static str); 3] {
    let chosen = kernels().instructions;
    [
        ("hashes", chosen.hashes),
        ("transposition", chosen.transposition),
        ("field products", chosen.field_products),
    ]
}

/// Features of the processor that kernels look for, and whether this machine has them; none where no kernel does.
#[must_use]
pub fn features() -> Vec<(&'static str, bool)> {
    let features = std::iter::empty();
    #[cfg(target_arch = "aarch64")]
    let features = features.chain(aarch64::features());
    #[cfg(target_arch = "x86_64")]
    let features = features.chain(x86_64::features());
    features.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_core::SeedableRng;

    use super::*;
    use crate::{Block, Prg};

    #[test]
    fn faster_tables_say_what_they_are_compiled_for() {
        for pair in available().windows(2) {
            let [before, after] = [0, 1].map(|at| pair[at].instructions);
            let changed = |name: fn(table::Instructions) -> &'static str| name(before) != name(after);
            assert!(changed(|i| i.hashes) || changed(|i| i.transposition) || changed(|i| i.field_products));
            assert_eq!(pair[1].cipher.is_some(), after.hashes != "portable");
        }
        assert_eq!(instructions()[0].1, kernels().instructions.hashes);
    }

    /// Beyond what tiles and blocks are tried: a block that is drawn takes Miri tenths of a second.
    const TILES: usize = if cfg!(miri) { 3 } else { 19 };
    const BLOCKS: usize = if cfg!(miri) { 20 } else { 70 };

    proptest! {
        #[test]
        fn transposition_is_the_same_in_every_table(seed: [u8; 16], tiles in 0..TILES) {
            let mut rows = vec![Block::ZERO; 128 * tiles];
            Prg::from_seed(seed).fill_blocks(&mut rows);
            let mut plain = rows.clone();
            portable::transpose(&rows, &mut plain);
            for kernels in available() {
                let mut fast = rows.clone();
                kernels.transpose(&rows, &mut fast);
                prop_assert!(fast == plain);
            }
        }

        #[test]
        fn addition_by_parents_is_the_same_in_every_table(seed: [u8; 16], half in 0..BLOCKS) {
            let mut blocks = vec![Block::ZERO; 2 * half + 1];
            Prg::from_seed(seed).fill_blocks(&mut blocks);
            let value = blocks.pop().unwrap_or_default();
            let due = |j: usize| (blocks[j % half] ^ blocks[half + j % half]).lsb();
            let direct = |j: usize| if due(j) { blocks[j] ^ value } else { blocks[j] };
            for kernels in available() {
                let mut added = blocks.clone();
                kernels.add_by_parents(&mut added, value);
                prop_assert!((0..2 * half).map(direct).eq(added));
            }
        }

        #[test]
        fn low_bits_are_the_same_in_every_table(seed: [u8; 16], count in 0..=64_usize) {
            let mut blocks = vec![Block::ZERO; count];
            Prg::from_seed(seed).fill_blocks(&mut blocks);
            for kernels in available() {
                let word = kernels.low_bits(&blocks);
                prop_assert!((0..64).all(|i| (word >> i & 1 == 1) == blocks.get(i).is_some_and(|block| block.lsb())));
            }
        }

        #[test]
        fn bits_of_words_are_the_same_in_every_table(words in proptest::collection::vec(any::<u64>(), 0..=64), bit in 0..64_u32) {
            for kernels in available() {
                let gathered = kernels.bit_of_words(&words, bit);
                prop_assert!((0..64).all(|i| gathered >> i & 1 == words.get(i).map_or(0, |word| word >> bit & 1)));
            }
        }

        #[test]
        fn doubling_is_the_same_in_every_table(seed: [u8; 16], counts in [0..BLOCKS, 0..BLOCKS]) {
            let mut blocks = vec![Block::ZERO; counts[0] + counts[1]];
            Prg::from_seed(seed).fill_blocks(&mut blocks);
            let (x, y) = blocks.split_at(counts[0]);
            let doubled = |j: usize| y.get(j).map_or(x[j], |y| x[j].double() ^ *y);
            for kernels in available() {
                let mut added = x.to_vec();
                kernels.double_and_add(&mut added, y);
                prop_assert!((0..x.len()).map(doubled).eq(added));
            }
        }

        #[test]
        fn sums_of_products_are_the_same_in_every_table(seed: [u8; 16], counts in [0..BLOCKS, 0..BLOCKS]) {
            let mut blocks = vec![Block::ZERO; counts[0] + counts[1]];
            Prg::from_seed(seed).fill_blocks(&mut blocks);
            let (a, b) = blocks.split_at(counts[0]);
            let product = |a: Block, b: Block| (0..128).rev().fold(Block::ZERO, |sum, bit| {
                sum.double() ^ (if b.0 >> bit & 1 == 1 { a } else { Block::ZERO })
            });
            let direct = a.iter().zip(b).fold(Block::ZERO, |sum, (a, b)| sum ^ product(*a, *b));
            prop_assert!(available().iter().all(|kernels| kernels.field_dot(a, b) == direct));
        }

        #[test]
        fn addition_to_siblings_is_the_same_in_every_table(seed: [u8; 16], half in 1..BLOCKS, place: usize) {
            let mut blocks = vec![Block::ZERO; 2 * half + 2];
            Prg::from_seed(seed).fill_blocks(&mut blocks);
            let values = [blocks.pop(), blocks.pop()].map(Option::unwrap_or_default);
            let mut direct = blocks.clone();
            let place = place % half;
            direct[place] ^= values[0];
            direct[half + place] ^= values[1];
            for kernels in available() {
                let mut added = blocks.clone();
                kernels.add_at_siblings(&mut added, place, values);
                prop_assert!(added == direct);
            }
        }
    }
}
