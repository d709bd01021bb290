//! Bits of blocks and words, gathered.

use crate::Block;
use crate::arch::portable;
use crate::arch::registers::Registers;

/// The low bits of at most 64 blocks.
#[inline(always)]
pub(in crate::arch) fn low_bits<S: Registers>(set: S, blocks: &[Block]) -> u64 {
    let Ok(blocks) = <&[Block; 64]>::try_from(blocks) else { return portable::low_bits(blocks) };
    gather(S::LANES, |at| {
        let (a, b) = blocks[at..at + 2 * S::LANES].split_at(S::LANES);
        set.bits_of(set.low_words(set.load(a), set.load(b)), 0)
    })
}

/// Bit `bit` of each of at most 64 words.
#[inline(always)]
pub(in crate::arch) fn bit_of_words<S: Registers>(set: S, words: &[u64], bit: u32) -> u64 {
    let Ok(words) = <&[u64; 64]>::try_from(words) else { return portable::bit_of_words(words, bit) };
    gather(S::LANES, |at| set.bits_of(set.load_words(&words[at..at + 2 * S::LANES]), bit))
}

/// A word of what `bits` gives of the `2 lanes` that begin at each of their multiples.
#[inline(always)]
fn gather(lanes: usize, bits: impl Fn(usize) -> u64) -> u64 {
    let mut word = 0;
    for at in (0..64).step_by(2 * lanes) {
        word |= bits(at) << at;
    }
    word
}
