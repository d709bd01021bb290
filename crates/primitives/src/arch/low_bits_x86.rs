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

#[target_feature(enable = "avx512f")]
fn low_bits_wide(blocks: &[Block; 64]) -> u64 {
    let mut bytes = [0; 8];
    for (byte, blocks) in bytes.iter_mut().zip(blocks.as_chunks::<8>().0) {
        let [a, b] = bytemuck::must_cast_ref(blocks);
        *byte = bits_of(low_words(load(a), load(b)), 0);
    }
    u64::from_le_bytes(bytes)
}
