//! Low bits, eight blocks at a time.

use super::registers::{bits_of, load, low_words};
use crate::Block;
use crate::arch::portable;

/// The low bits of at most 64 blocks.
#[target_feature(enable = "avx512f")]
pub(super) fn low_bits(blocks: &[Block]) -> u64 {
    match blocks.try_into() {
        Ok(blocks) => low_bits_wide(blocks),
        Err(_) => portable::low_bits(blocks),
    }
}

/// As [`low_bits`], of a bit of at most 64 words.
#[target_feature(enable = "avx512f")]
pub(super) fn bit_of_words(words: &[u64], bit: u32) -> u64 {
    match words.try_into() {
        Ok(words) => bit_of_words_wide(words, bit),
        Err(_) => portable::bit_of_words(words, bit),
    }
}

#[target_feature(enable = "avx512f")]
fn bit_of_words_wide(words: &[u64; 64], bit: u32) -> u64 {
    let mut bytes = [0; 8];
    for (byte, words) in bytes.iter_mut().zip(words.as_chunks::<8>().0) {
        *byte = bits_of(load(&bytemuck::must_cast(*words)), bit as usize);
    }
    u64::from_le_bytes(bytes)
}

#[target_feature(enable = "avx512f")]
fn low_bits_wide(blocks: &[Block; 64]) -> u64 {
    let mut bytes = [0; 8];
    for (byte, blocks) in bytes.iter_mut().zip(blocks.as_chunks::<8>().0) {
        let [a, b] = bytemuck::must_cast_ref(blocks);
        *byte = bits_of(low_words(load(a), load(b)), 0);
    }
    u64::from_le_bytes(bytes)
}
