//! Registers of 256 bits.
#![allow(unsafe_code, reason = "vector intrinsics")]

use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm256_aesenc_epi128, _mm256_aesenclast_epi128,
    _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_bslli_epi128, _mm256_loadu_si256,
    _mm256_set_epi64x, _mm256_set1_epi32, _mm256_shuffle_epi8, _mm256_shuffle_epi32, _mm256_slli_epi32,
    _mm256_srai_epi32, _mm256_storeu_si256, _mm256_xor_si256,
};

use lanner_primitives::Block;

use super::SWAP_HALVES;
use crate::arch::vector::Vector;

// SAFETY: loads and stores are unaligned and of 32 bytes, a broadcast's of 16.
unsafe impl Vector for __m256i {
    const BLOCKS: usize = 2;
    /// All ones or zero in every 32 bits of the block.
    type Colours = Self;

    #[inline(always)]
    unsafe fn load(from: *const Block) -> Self {
        // SAFETY: the caller vouches for the instructions and the pointer.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut Block) {
        // SAFETY: the caller vouches for the instructions and the pointer.
        unsafe { _mm256_storeu_si256(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn broadcast(from: *const Block) -> Self {
        // SAFETY: the caller vouches for the instructions and the pointer.
        unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm256_xor_si256(self, other) }
    }

    #[inline(always)]
    unsafe fn xor3(self, b: Self, c: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { self.xor(b).xor(c) }
    }

    #[inline(always)]
    unsafe fn sigma(self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            _mm256_shuffle_epi32::<SWAP_HALVES>(self)
                .xor(_mm256_and_si256(self, _mm256_set_epi64x(-1, 0, -1, 0)))
        }
    }

    #[inline(always)]
    unsafe fn colours(self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm256_srai_epi32::<31>(_mm256_slli_epi32::<31>(_mm256_shuffle_epi32::<0>(self))) }
    }

    #[inline(always)]
    unsafe fn xor_where(self, colours: Self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { self.xor(_mm256_and_si256(colours, other)) }
    }

    #[inline(always)]
    unsafe fn aes_round(self, key: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm256_aesenc_epi128(self, key) }
    }

    #[inline(always)]
    unsafe fn aes_last_round(self, key: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm256_aesenclast_epi128(self, key) }
    }

    #[inline(always)]
    unsafe fn prefetch(from: *const Block) {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
    }

    /// As for one block: see there.
    #[inline(always)]
    unsafe fn next_round_key(self, constant: u32) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let rotated = _mm256_shuffle_epi8(self, _mm256_set1_epi32(0x0c0f_0e0d));
            let word = _mm256_aesenclast_epi128(rotated, _mm256_set1_epi32(constant as i32));
            let pairs = self.xor(_mm256_bslli_epi128::<4>(self));
            pairs.xor3(_mm256_bslli_epi128::<8>(pairs), word)
        }
    }
}
