//! Registers of 128 bits, one block to each.

use std::arch::x86_64::*;

use super::shuffles::{OTHER_HIGH, SWAP};
use crate::Block;
use crate::arch::registers::{Registers, Rounds};

/// AVX2 and AES on single blocks.
#[derive(Clone, Copy)]
pub(super) struct Aes(());

impl Aes {
    /// # Safety
    /// The machine has `avx2` and `aes`.
    #[inline(always)]
    pub(super) const unsafe fn new() -> Self {
        Self(())
    }
}

// SAFETY of all that is unsafe: `Aes` shows that the machine has the instructions. Loads and stores may be unaligned, and leave out what
// lies beyond slices.
impl Registers for Aes {
    type Register = __m128i;
    const LANES: usize = 1;

    #[inline(always)]
    fn spread(self, block: Block) -> __m128i {
        bytemuck::must_cast(block)
    }

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> __m128i {
        bytemuck::must_cast(blocks.first().copied().unwrap_or_default())
    }

    #[inline(always)]
    fn store(self, blocks: &mut [Block], register: __m128i) {
        if let Some(block) = blocks.first_mut() {
            *block = bytemuck::must_cast(register);
        }
    }

    #[inline(always)]
    fn load_words(self, words: &[u64]) -> __m128i {
        words.first_chunk::<2>().map_or(self.spread(Block::ZERO), |words| bytemuck::must_cast(*words))
    }

    #[inline(always)]
    fn store_words(self, words: &mut [u64], register: __m128i) {
        if let Some(words) = words.first_chunk_mut::<2>() {
            *words = bytemuck::must_cast(register);
        }
    }

    #[inline(always)]
    fn xor(self, a: __m128i, b: __m128i) -> __m128i {
        unsafe { _mm_xor_si128(a, b) }
    }

    #[inline(always)]
    fn and(self, a: __m128i, b: __m128i) -> __m128i {
        unsafe { _mm_and_si128(a, b) }
    }

    #[inline(always)]
    fn add(self, a: __m128i, b: __m128i) -> __m128i {
        unsafe { _mm_add_epi64(a, b) }
    }

    #[inline(always)]
    fn sigma(self, x: __m128i) -> __m128i {
        unsafe {
            let upper = _mm_set_epi64x(-1, 0);
            _mm_xor_si128(_mm_shuffle_epi32::<SWAP>(x), _mm_and_si128(x, upper))
        }
    }

    #[inline(always)]
    fn where_odd(self, x: __m128i) -> __m128i {
        unsafe { _mm_srai_epi32::<31>(_mm_slli_epi32::<31>(_mm_shuffle_epi32::<0>(x))) }
    }

    #[inline(always)]
    fn where_other_is_high(self, x: __m128i) -> __m128i {
        unsafe { _mm_shuffle_epi32::<OTHER_HIGH>(_mm_srai_epi32::<31>(x)) }
    }

    #[inline(always)]
    fn where_equal(self, a: __m128i, b: __m128i) -> __m128i {
        unsafe { _mm_cmpeq_epi64(a, b) }
    }

    #[inline(always)]
    fn low_words(self, a: __m128i, b: __m128i) -> __m128i {
        unsafe { _mm_unpacklo_epi64(a, b) }
    }

    #[inline(always)]
    fn bits_of(self, words: __m128i, bit: u32) -> u64 {
        unsafe {
            let highest = _mm_sll_epi64(words, _mm_cvtsi32_si128(63 - bit as i32));
            _mm_movemask_pd(_mm_castsi128_pd(highest)) as u64
        }
    }

    #[inline(always)]
    fn byte_places(self, integers: __m128i, count: u32) -> __m128i {
        unsafe {
            let count = _mm_set1_epi64x(i64::from(count));
            let even = _mm_srli_epi64::<32>(_mm_mul_epu32(integers, count));
            let odd = _mm_mul_epu32(_mm_srli_epi64::<32>(integers), count);
            _mm_slli_epi32::<4>(_mm_blend_epi32::<0b1010>(even, odd))
        }
    }
}

impl Rounds for Aes {
    #[inline(always)]
    fn round(self, state: __m128i, key: __m128i) -> __m128i {
        unsafe { _mm_aesenc_si128(state, key) }
    }

    #[inline(always)]
    fn last_round(self, state: __m128i, key: __m128i) -> __m128i {
        unsafe { _mm_aesenclast_si128(state, key) }
    }
}
