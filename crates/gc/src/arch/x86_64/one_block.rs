//! Registers of 128 bits.
#![allow(unsafe_code, reason = "vector intrinsics")]

use std::arch::x86_64::{
    __m128i, _MM_HINT_T0, _mm_aesenc_si128, _mm_aesenclast_si128, _mm_and_si128, _mm_loadu_si128,
    _mm_prefetch, _mm_set_epi8, _mm_set_epi64x, _mm_set1_epi32, _mm_shuffle_epi8, _mm_shuffle_epi32,
    _mm_slli_epi32, _mm_slli_si128, _mm_srai_epi32, _mm_storeu_si128, _mm_xor_si128,
};

use lanner_primitives::Block;

use super::SWAP_HALVES;
use crate::arch::vector::Vector;

// SAFETY: loads and stores are unaligned and of 16 bytes.
unsafe impl Vector for __m128i {
    const BLOCKS: usize = 1;
    /// All ones or zero in every 32 bits of the block.
    type Colours = Self;

    #[inline(always)]
    unsafe fn load(from: *const Block) -> Self {
        // SAFETY: the caller vouches for the instructions and the pointer.
        unsafe { _mm_loadu_si128(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut Block) {
        // SAFETY: the caller vouches for the instructions and the pointer.
        unsafe { _mm_storeu_si128(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn broadcast(from: *const Block) -> Self {
        // SAFETY: the caller vouches for the instructions and the pointer.
        unsafe { Self::load(from) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm_xor_si128(self, other) }
    }

    #[inline(always)]
    unsafe fn xor3(self, b: Self, c: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { self.xor(b).xor(c) }
    }

    #[inline(always)]
    unsafe fn sigma(self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm_shuffle_epi32::<SWAP_HALVES>(self).xor(_mm_and_si128(self, _mm_set_epi64x(-1, 0))) }
    }

    #[inline(always)]
    unsafe fn colours(self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm_srai_epi32::<31>(_mm_slli_epi32::<31>(_mm_shuffle_epi32::<0>(self))) }
    }

    #[inline(always)]
    unsafe fn xor_where(self, colours: Self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { self.xor(_mm_and_si128(colours, other)) }
    }

    #[inline(always)]
    unsafe fn aes_round(self, key: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm_aesenc_si128(self, key) }
    }

    #[inline(always)]
    unsafe fn aes_last_round(self, key: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm_aesenclast_si128(self, key) }
    }

    #[inline(always)]
    unsafe fn prefetch(from: *const Block) {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
    }

    /// With the last word, rotated, in every column, `ShiftRows` changes nothing, and the last round is `SubWord` plus
    /// the constant.
    #[inline(always)]
    unsafe fn next_round_key(self, constant: u32) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let rotate = _mm_set_epi8(12, 15, 14, 13, 12, 15, 14, 13, 12, 15, 14, 13, 12, 15, 14, 13);
            let word = _mm_aesenclast_si128(_mm_shuffle_epi8(self, rotate), _mm_set1_epi32(constant as i32));
            let pairs = self.xor(_mm_slli_si128::<4>(self));
            pairs.xor(_mm_slli_si128::<8>(pairs)).xor(word)
        }
    }
}
