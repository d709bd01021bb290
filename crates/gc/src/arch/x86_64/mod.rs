//! The vectors of x86-64 and the kernels compiled for them.
#![allow(
    unsafe_code,
    reason = "vector intrinsics and functions compiled for more than the base instruction set"
)]

use std::arch::x86_64::{
    __m128i, __m512i, __mmask16, _MM_HINT_T0, _mm_aesenc_si128, _mm_aesenclast_si128, _mm_and_si128,
    _mm_loadu_si128, _mm_prefetch, _mm_set_epi8, _mm_set_epi64x, _mm_set1_epi32, _mm_shuffle_epi8,
    _mm_shuffle_epi32, _mm_slli_epi32, _mm_slli_si128, _mm_srai_epi32, _mm_storeu_si128, _mm_xor_si128,
    _mm512_aesenc_epi128, _mm512_aesenclast_epi128, _mm512_broadcast_i32x4, _mm512_bslli_epi128,
    _mm512_loadu_si512, _mm512_mask_xor_epi32, _mm512_mask_xor_epi64, _mm512_set1_epi32, _mm512_shuffle_epi8,
    _mm512_shuffle_epi32, _mm512_storeu_si512, _mm512_ternarylogic_epi64, _mm512_test_epi32_mask,
    _mm512_xor_si512,
};

use lanner_primitives::Block;

use super::steps::{self, EvaluatedGroup, GarbledGroup};
use super::vector::{Vector, Vectorized};
use super::{Kernels, ROW};
use crate::circuit::Step;
use crate::half_gates::Row;

/// The tables of this machine, the fastest first.
pub(super) fn available() -> impl Iterator<Item = &'static Kernels> {
    let vaes512 = is_x86_feature_detected!("aes")
        && is_x86_feature_detected!("vaes")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw");
    let aes_ni = is_x86_feature_detected!("aes") && is_x86_feature_detected!("avx");
    [vaes512.then_some(&VAES512), aes_ni.then_some(&AES_NI)].into_iter().flatten()
}

/// Declares the table of kernels over vectors, compiled with the instructions that these need.
macro_rules! kernels {
    ($(#[$doc:meta])* $table:ident = $name:literal, $vector:ty, $features:literal) => {
        $(#[$doc])*
        const $table: Kernels = {
            #[target_feature(enable = $features)]
            fn garble(group: &mut GarbledGroup<'_>, steps: &[Step], rows: &mut [Row]) -> usize {
                // SAFETY: this function is compiled with the vector's instructions.
                let mut engine = unsafe { Vectorized::<$vector>::new(group.delta) };
                steps::garble(&mut engine, group, steps, rows)
            }
            #[target_feature(enable = $features)]
            fn evaluate(group: &mut EvaluatedGroup<'_>, steps: &[Step], rows: &[[u8; ROW]]) -> usize {
                // SAFETY: this function is compiled with the vector's instructions.
                let mut engine = unsafe { Vectorized::<$vector>::new(Block::ZERO) };
                steps::evaluate(&mut engine, group, steps, rows)
            }
            Kernels { name: $name, garble, evaluate }
        };
    };
}

kernels!(
    /// One block to an instruction.
    AES_NI = "AesNi", __m128i, "aes,avx"
);
kernels!(
    /// Four blocks to an instruction.
    VAES512 = "Vaes512", __m512i, "aes,vaes,avx512f,avx512bw"
);

/// `_MM_SHUFFLE(1, 0, 3, 2)`: swaps the halves of a block.
const SWAP_HALVES: i32 = 0x4e;
/// The truth table of `a xor b xor c`.
const XOR3: i32 = 0x96;

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
