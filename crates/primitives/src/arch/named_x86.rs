//! Sums of blocks at public places, compiled for AVX-512: places are made by wide multiplication.
#![allow(unsafe_code)]

use super::portable;
use crate::Block;

/// Adds, if the processor has the instructions.
pub(super) fn add_named<const N: usize>(input: &[Block], words: &mut [u32], out: &mut [Block]) -> bool {
    let available =
        u32::try_from(input.len()).is_ok_and(|count| count > 0) && is_x86_feature_detected!("avx512f");
    if available {
        // SAFETY: the feature that the function needs was just detected, and there is input, fewer than 2^32 blocks.
        unsafe { add_wide::<N>(input, words, out) };
    }
    available
}

/// # Safety
/// `input` has at least one block and fewer than `2^32`.
#[target_feature(enable = "avx512f")]
unsafe fn add_wide<const N: usize>(input: &[Block], words: &mut [u32], out: &mut [Block]) {
    portable::name(words, input.len());
    for (out, places) in out.iter_mut().zip(words.as_chunks::<N>().0) {
        for place in places {
            // SAFETY: the upper half of the product of a number below 2^32 and another is below the other.
            *out ^= unsafe { *input.get_unchecked(*place as usize) };
        }
    }
}
