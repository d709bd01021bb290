//! Sums of blocks at public places.

use crate::{Block, arch};

/// Adds to each of `out` the `N` blocks of `input` that its words name: of `n` blocks, fewer than `2^32`, word `w` names number
/// `w n / 2^32`, so that a random word names each with the same chance to within `2^-32`. A block that is named twice cancels.
///
/// Words are replaced by those numbers. There are at least `N` for each of `out`, and `input` is not empty.
pub fn add_named<const N: usize>(input: &[Block], words: &mut [u32], out: &mut [Block]) {
    debug_assert!(!input.is_empty() && words.len() >= N * out.len());
    arch::add_named::<N>(input, words, out);
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng, SeedableRng};

    use super::*;
    use crate::Prg;

    #[test]
    fn named_blocks_are_all_of_the_input_and_nothing_beyond() {
        let mut prg = Prg::from_seed([2; 16]);
        let count = 9 << 7;
        let mut words: Vec<u32> = (0..64 * count).map(|_| prg.next_u32()).collect();
        words.extend([0, u32::MAX]);
        let given = words.clone();
        let input: Vec<Block> = (0..count).map(|_| Block::random(&mut prg)).collect();
        let mut out = vec![Block::ZERO; words.len()];
        add_named::<1>(&input, &mut words, &mut out);
        let mut hits = vec![0; count];
        for ((word, place), sum) in given.iter().zip(&words).zip(&out) {
            assert_eq!(u64::from(*place), u64::from(*word) * count as u64 >> 32);
            assert!(*sum == input[*place as usize]);
            hits[*place as usize] += 1;
        }
        assert_eq!(words[64 * count..], [0, count as u32 - 1]);
        // 64 hits are expected of each place, with a deviation of 8.
        assert!(hits.iter().all(|hits| (16..112).contains(hits)));
    }
}
