//! Low bits, eight blocks at a time.
#![allow(unsafe_code)]

use super::registers::{bits_of, load, low_words};
use crate::Block;

/// The low bits of 64 blocks, if there are so many and the processor has the instructions.
pub(super) fn low_bits(blocks: &[Block]) -> Option<u64> {
    let blocks = blocks.try_into().ok().filter(|_| is_x86_feature_detected!("avx512f"))?;
    // SAFETY: the feature that the function needs was just detected.
    Some(unsafe { low_bits_wide(blocks) })
}

/// As [`low_bits`], of a bit of 64 words.
pub(super) fn bit_of_words(words: &[u64], bit: u32) -> Option<u64> {
    let words = words.try_into().ok().filter(|_| is_x86_feature_detected!("avx512f"))?;
    // SAFETY: the feature that the function needs was just detected.
    Some(unsafe { bit_of_words_wide(words, bit) })
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
