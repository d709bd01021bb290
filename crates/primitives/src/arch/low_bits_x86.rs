//! Low bits, eight blocks at a time.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    _mm512_permutex2var_epi64, _mm512_set_epi64, _mm512_set1_epi64, _mm512_test_epi64_mask,
};

use super::registers::load;
use crate::Block;

/// The low bits of 64 blocks, if there are so many and the processor has the instructions.
pub(super) fn low_bits(blocks: &[Block]) -> Option<u64> {
    let blocks = blocks.try_into().ok().filter(|_| is_x86_feature_detected!("avx512f"))?;
    // SAFETY: the feature that the function needs was just detected.
    Some(unsafe { low_bits_wide(blocks) })
}

#[target_feature(enable = "avx512f")]
fn low_bits_wide(blocks: &[Block; 64]) -> u64 {
    let low_words = _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0);
    let mut bytes = [0; 8];
    for (byte, blocks) in bytes.iter_mut().zip(blocks.as_chunks::<8>().0) {
        let [a, b] = bytemuck::must_cast_ref(blocks);
        let words = _mm512_permutex2var_epi64(load(a), low_words, load(b));
        *byte = _mm512_test_epi64_mask(words, _mm512_set1_epi64(1));
    }
    u64::from_le_bytes(bytes)
}
