//! Registers of 512 bits.
#![allow(unsafe_code, reason = "vector intrinsics")]

use std::arch::x86_64::{
    __m512i, __mmask16, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm512_aesenc_epi128,
    _mm512_aesenclast_epi128, _mm512_broadcast_i32x4, _mm512_bslli_epi128, _mm512_loadu_si512,
    _mm512_mask_xor_epi32, _mm512_mask_xor_epi64, _mm512_set1_epi32, _mm512_shuffle_epi8,
    _mm512_shuffle_epi32, _mm512_storeu_si512, _mm512_ternarylogic_epi64, _mm512_test_epi32_mask,
    _mm512_xor_si512,
};

use lanner_primitives::Block;

use super::SWAP_HALVES;
use crate::arch::vector::Vector;

/// The truth table of `a xor b xor c`.
const XOR3: i32 = 0x96;

// SAFETY: loads and stores are unaligned and of 64 bytes, a broadcast's of 16.
unsafe impl Vector for __m512i {
    const BLOCKS: usize = 4;
    /// Four equal bits to a block.
    type Colours = __mmask16;

    #[inline(always)]
    unsafe fn load(from: *const Block) -> Self {
        // SAFETY: the caller vouches for the instructions and the pointer.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut Block) {
        // SAFETY: the caller vouches for the instructions and the pointer.
        unsafe { _mm512_storeu_si512(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn broadcast(from: *const Block) -> Self {
        // SAFETY: the caller vouches for the instructions and the pointer.
        unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm512_xor_si512(self, other) }
    }

    #[inline(always)]
    unsafe fn xor3(self, b: Self, c: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm512_ternarylogic_epi64::<XOR3>(self, b, c) }
    }

    #[inline(always)]
    unsafe fn sigma(self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let swapped = _mm512_shuffle_epi32::<SWAP_HALVES>(self);
            // The upper 64 bits of each block.
            _mm512_mask_xor_epi64(swapped, 0b1010_1010, swapped, self)
        }
    }

    #[inline(always)]
    unsafe fn colours(self) -> __mmask16 {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm512_test_epi32_mask(_mm512_shuffle_epi32::<0>(self), _mm512_set1_epi32(1)) }
    }

    #[inline(always)]
    unsafe fn xor_where(self, colours: __mmask16, other: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm512_mask_xor_epi32(self, colours, self, other) }
    }

    #[inline(always)]
    unsafe fn aes_round(self, key: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm512_aesenc_epi128(self, key) }
    }

    #[inline(always)]
    unsafe fn aes_last_round(self, key: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm512_aesenclast_epi128(self, key) }
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
            let rotate = _mm512_set1_epi32(0x0c0f_0e0d);
            let word = _mm512_aesenclast_epi128(
                _mm512_shuffle_epi8(self, rotate),
                _mm512_set1_epi32(constant as i32),
            );
            let pairs = self.xor(_mm512_bslli_epi128::<4>(self));
            pairs.xor3(_mm512_bslli_epi128::<8>(pairs), word)
        }
    }
}
