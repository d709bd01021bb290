//! Registers of 512 bits, four blocks to each.

use std::arch::x86_64::*;

use super::shuffles::{OTHER_HIGH, SWAP};
use crate::Block;
use crate::arch::registers::{Registers, Rounds};

/// AVX-512 with vector AES.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    /// # Safety
    /// The machine has `avx512f` and `vaes`.
    #[inline(always)]
    pub(super) const unsafe fn new() -> Self {
        Self(())
    }
}

/// A bit for each word of at most four blocks.
#[inline(always)]
fn words_of(blocks: &[Block]) -> u8 {
    ((1_u32 << (2 * blocks.len().min(Avx512::LANES))) - 1) as u8
}

// SAFETY of all that is unsafe: `Avx512` shows that the machine has the instructions. Loads and stores may be unaligned, and leave out what
// lies beyond slices.
impl Registers for Avx512 {
    type Register = __m512i;
    const LANES: usize = 4;

    #[inline(always)]
    fn spread(self, block: Block) -> __m512i {
        unsafe { _mm512_broadcast_i32x4(bytemuck::must_cast(block)) }
    }

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> __m512i {
        match blocks {
            [_, _, _, _, ..] => unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) },
            // Not masked: that would read 64 bytes, often of two lines of the cache.
            [one] => unsafe { _mm512_zextsi128_si512(bytemuck::must_cast(*one)) },
            _ => unsafe { _mm512_maskz_loadu_epi64(words_of(blocks), blocks.as_ptr().cast()) },
        }
    }

    #[inline(always)]
    fn store(self, blocks: &mut [Block], register: __m512i) {
        match blocks {
            [_, _, _, _, ..] => unsafe { _mm512_storeu_si512(blocks.as_mut_ptr().cast(), register) },
            [one] => *one = bytemuck::must_cast(unsafe { _mm512_castsi512_si128(register) }),
            _ => unsafe { _mm512_mask_storeu_epi64(blocks.as_mut_ptr().cast(), words_of(blocks), register) },
        }
    }

    #[inline(always)]
    fn load_words(self, words: &[u64]) -> __m512i {
        match words.first_chunk::<8>() {
            Some(words) => unsafe { _mm512_loadu_si512(words.as_ptr().cast()) },
            None => self.spread(Block::ZERO),
        }
    }

    #[inline(always)]
    fn store_words(self, words: &mut [u64], register: __m512i) {
        if let Some(words) = words.first_chunk_mut::<8>() {
            unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), register) }
        }
    }

    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_xor_si512(a, b) }
    }

    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_and_si512(a, b) }
    }

    #[inline(always)]
    fn add(self, a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_add_epi64(a, b) }
    }

    #[inline(always)]
    fn sigma(self, x: __m512i) -> __m512i {
        unsafe {
            let upper = _mm512_set_epi64(-1, 0, -1, 0, -1, 0, -1, 0);
            _mm512_xor_si512(_mm512_shuffle_epi32::<SWAP>(x), _mm512_and_si512(x, upper))
        }
    }

    #[inline(always)]
    fn where_odd(self, x: __m512i) -> __m512i {
        unsafe { _mm512_srai_epi32::<31>(_mm512_slli_epi32::<31>(_mm512_shuffle_epi32::<0>(x))) }
    }

    #[inline(always)]
    fn where_other_is_high(self, x: __m512i) -> __m512i {
        unsafe { _mm512_shuffle_epi32::<OTHER_HIGH>(_mm512_srai_epi32::<31>(x)) }
    }

    #[inline(always)]
    fn where_equal(self, a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_maskz_set1_epi64(_mm512_cmpeq_epi64_mask(a, b), -1) }
    }

    #[inline(always)]
    fn low_words(self, a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_permutex2var_epi64(a, _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), b) }
    }

    #[inline(always)]
    fn bits_of(self, words: __m512i, bit: u32) -> u64 {
        unsafe { u64::from(_mm512_test_epi64_mask(words, _mm512_set1_epi64(1_i64 << bit))) }
    }

    #[inline(always)]
    fn byte_places(self, integers: __m512i, count: u32) -> __m512i {
        unsafe {
            let count = _mm512_set1_epi64(i64::from(count));
            let even = _mm512_srli_epi64::<32>(_mm512_mul_epu32(integers, count));
            let odd = _mm512_mul_epu32(_mm512_srli_epi64::<32>(integers), count);
            _mm512_slli_epi32::<4>(_mm512_mask_blend_epi32(0xaaaa, even, odd))
        }
    }
}

impl Rounds for Avx512 {
    #[inline(always)]
    fn round(self, state: __m512i, key: __m512i) -> __m512i {
        unsafe { _mm512_aesenc_epi128(state, key) }
    }

    #[inline(always)]
    fn last_round(self, state: __m512i, key: __m512i) -> __m512i {
        unsafe { _mm512_aesenclast_epi128(state, key) }
    }
}
