//! Blocks in 512-bit registers.

use std::arch::x86_64::{
    __m512i, _mm512_broadcast_i32x4, _mm512_loadu_si512, _mm512_mask_storeu_epi64, _mm512_maskz_loadu_epi64,
    _mm512_permutex2var_epi64, _mm512_set_epi64, _mm512_set1_epi64, _mm512_storeu_si512,
    _mm512_test_epi64_mask,
};

use crate::Block;

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn spread(block: Block) -> __m512i {
    _mm512_broadcast_i32x4(bytemuck::must_cast(block.0))
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(blocks: &[Block; LANES]) -> __m512i {
    // SAFETY: reads the four blocks; unaligned loads are allowed.
    unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store(blocks: &mut [Block; LANES], register: __m512i) {
    // SAFETY: writes the four blocks; unaligned stores are allowed.
    unsafe { _mm512_storeu_si512(blocks.as_mut_ptr().cast(), register) }
}

/// Fewer than four blocks, and zeros.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_few(blocks: &[Block]) -> __m512i {
    // SAFETY: reads the halves that the slice has and no others.
    unsafe { _mm512_maskz_loadu_epi64(halves_of(blocks), blocks.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store_few(blocks: &mut [Block], register: __m512i) {
    // SAFETY: writes the halves that the slice has and no others.
    unsafe { _mm512_mask_storeu_epi64(blocks.as_mut_ptr().cast(), halves_of(blocks), register) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store_words(words: &mut [u64; 2 * LANES], register: __m512i) {
    // SAFETY: writes the eight words; unaligned stores are allowed.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), register) }
}

/// The low words of the blocks of `a`, then of those of `b`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn low_words(a: __m512i, b: __m512i) -> __m512i {
    _mm512_permutex2var_epi64(a, _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), b)
}

/// Bit `row` of each of eight words.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn bits_of(words: __m512i, row: usize) -> u8 {
    _mm512_test_epi64_mask(words, _mm512_set1_epi64(1 << row))
}

/// A bit for each half of at most four blocks.
pub(super) const fn halves_of(blocks: &[Block]) -> u8 {
    ((1_u32 << (2 * if blocks.len() < LANES { blocks.len() } else { LANES })) - 1) as u8
}

/// Blocks of a register.
pub(super) const LANES: usize = 4;
