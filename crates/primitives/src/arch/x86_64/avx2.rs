//! Registers of 256 bits, two blocks to each.

use std::arch::x86_64::*;

use super::shuffles::{OTHER_HIGH, SWAP};
use crate::Block;
use crate::arch::registers::{Registers, Rounds};

/// AVX2 with vector AES.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// # Safety
    /// The machine has `avx2` and `vaes`.
    #[inline(always)]
    pub(super) const unsafe fn new() -> Self {
        Self(())
    }
}

// SAFETY of all that is unsafe: `Avx2` shows that the machine has the instructions. Loads and stores may be unaligned, and leave out what
// lies beyond slices.
impl Registers for Avx2 {
    type Register = __m256i;
    const LANES: usize = 2;

    #[inline(always)]
    fn spread(self, block: Block) -> __m256i {
        unsafe { _mm256_broadcastsi128_si256(bytemuck::must_cast(block)) }
    }

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> __m256i {
        match blocks {
            [_, _, ..] => unsafe { _mm256_loadu_si256(blocks.as_ptr().cast()) },
            [one] => unsafe { _mm256_zextsi128_si256(bytemuck::must_cast(*one)) },
            [] => unsafe { _mm256_setzero_si256() },
        }
    }

    #[inline(always)]
    fn store(self, blocks: &mut [Block], register: __m256i) {
        match blocks {
            [_, _, ..] => unsafe { _mm256_storeu_si256(blocks.as_mut_ptr().cast(), register) },
            [one] => *one = bytemuck::must_cast(unsafe { _mm256_castsi256_si128(register) }),
            [] => {}
        }
    }

    #[inline(always)]
    fn load_words(self, words: &[u64]) -> __m256i {
        match words.first_chunk::<4>() {
            Some(words) => unsafe { _mm256_loadu_si256(words.as_ptr().cast()) },
            None => self.spread(Block::ZERO),
        }
    }

    #[inline(always)]
    fn store_words(self, words: &mut [u64], register: __m256i) {
        if let Some(words) = words.first_chunk_mut::<4>() {
            unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), register) }
        }
    }

    #[inline(always)]
    fn xor(self, a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_xor_si256(a, b) }
    }

    #[inline(always)]
    fn and(self, a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_and_si256(a, b) }
    }

    #[inline(always)]
    fn add(self, a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_add_epi64(a, b) }
    }

    #[inline(always)]
    fn sigma(self, x: __m256i) -> __m256i {
        unsafe {
            let upper = _mm256_set_epi64x(-1, 0, -1, 0);
            _mm256_xor_si256(_mm256_shuffle_epi32::<SWAP>(x), _mm256_and_si256(x, upper))
        }
    }

    #[inline(always)]
    fn where_odd(self, x: __m256i) -> __m256i {
        unsafe { _mm256_srai_epi32::<31>(_mm256_slli_epi32::<31>(_mm256_shuffle_epi32::<0>(x))) }
    }

    #[inline(always)]
    fn where_other_is_high(self, x: __m256i) -> __m256i {
        unsafe { _mm256_shuffle_epi32::<OTHER_HIGH>(_mm256_srai_epi32::<31>(x)) }
    }

    #[inline(always)]
    fn where_equal(self, a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_cmpeq_epi64(a, b) }
    }

    #[inline(always)]
    fn low_words(self, a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_unpacklo_epi64(a, b)) }
    }

    #[inline(always)]
    fn bits_of(self, words: __m256i, bit: u32) -> u64 {
        unsafe {
            let highest = _mm256_sll_epi64(words, _mm_cvtsi32_si128(63 - bit as i32));
            _mm256_movemask_pd(_mm256_castsi256_pd(highest)) as u64
        }
    }

    #[inline(always)]
    fn byte_places(self, integers: __m256i, count: u32) -> __m256i {
        unsafe {
            let count = _mm256_set1_epi64x(i64::from(count));
            let even = _mm256_srli_epi64::<32>(_mm256_mul_epu32(integers, count));
            let odd = _mm256_mul_epu32(_mm256_srli_epi64::<32>(integers), count);
            _mm256_slli_epi32::<4>(_mm256_blend_epi32::<0b1010_1010>(even, odd))
        }
    }
}

impl Rounds for Avx2 {
    #[inline(always)]
    fn round(self, state: __m256i, key: __m256i) -> __m256i {
        unsafe { _mm256_aesenc_epi128(state, key) }
    }

    #[inline(always)]
    fn last_round(self, state: __m256i, key: __m256i) -> __m256i {
        unsafe { _mm256_aesenclast_epi128(state, key) }
    }
}
