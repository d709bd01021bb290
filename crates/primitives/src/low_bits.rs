//! The low bits of blocks, which carry choices and colours, and single bits of words.

use crate::{Block, arch};

/// Appends the low bits of `blocks` to `words`: bit `i % 64` of word `i / 64` is that of block `i`, and those behind the last are zero.
pub fn low_bits(blocks: &[Block], words: &mut Vec<u64>) {
    words.extend(blocks.chunks(64).map(|blocks| arch::kernels().low_bits(blocks)));
}

/// Bit `bit`, below 64, of each of at most 64 words, the first word's lowest.
#[must_use]
pub fn bit_of_words(words: &[u64], bit: u32) -> u64 {
    arch::kernels().bit_of_words(words, bit)
}
