//! The local code with AVX-512: the places of the next columns are made while those of the last are read.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_aesenc_epi128, _mm512_aesenclast_epi128, _mm512_mask_blend_epi32,
    _mm512_mul_epu32, _mm512_set_epi64, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_slli_epi32,
    _mm512_srli_epi64, _mm512_storeu_si512, _mm512_xor_si512,
};

use super::registers::spread;
use super::vaes::broadcast;
use crate::Block;
use crate::arch::wide::{ONES, RoundKeys, WORDS};

/// Adds to each of `out` the `ONES` blocks of `input`, of at least one and fewer than [`MAX_INPUTS`], that words of the stream from block
/// `first` on name.
#[target_feature(enable = "avx512f,vaes")]
pub(super) fn add_local(keys: &RoundKeys, input: &[Block], first: u64, out: &mut [Block]) {
    if let Ok(count) = u32::try_from(input.len())
        && (1..MAX_INPUTS).contains(&count)
    {
        // SAFETY: there are `count` blocks.
        unsafe { add_counted(keys, input, count, first, out) }
    }
}

/// # Safety
/// `input` has `count` blocks, at least one and fewer than [`MAX_INPUTS`].
#[target_feature(enable = "avx512f,vaes")]
unsafe fn add_counted(keys: &RoundKeys, input: &[Block], count: u32, first: u64, out: &mut [Block]) {
    let mut names = Names { keys: broadcast(keys), count, next: counters(first) };
    let mut turns = [Places([0; COLUMNS * ONES]), Places([0; COLUMNS * ONES])];
    let [mut places, mut next] = turns.each_mut();
    names.next(places);
    for out in out.chunks_mut(COLUMNS) {
        // Made before they are needed, so that the cipher's latency and that of the reads pass at the same time.
        names.next(next);
        for (out, places) in out.iter_mut().zip(places.0.as_chunks::<ONES>().0) {
            for place in places {
                // SAFETY: every place is where a block begins.
                *out ^= unsafe { *input.as_ptr().byte_add(*place as usize) };
            }
        }
        std::mem::swap(&mut places, &mut next);
    }
}

/// Places of some columns, in bytes from the first block: each in one line of the cache with those that are written together.
#[repr(align(64))]
struct Places([u32; COLUMNS * ONES]);

/// The places that the words of a stream name.
struct Names {
    keys: [__m512i; 11],
    /// Places there are.
    count: u32,
    /// The numbers of the stream's next four blocks.
    next: __m512i,
}

impl Names {
    /// Writes the places of the next columns, those of all blocks below `count`.
    #[inline]
    #[target_feature(enable = "avx512f,vaes")]
    fn next(&mut self, places: &mut Places) {
        let mut state = [_mm512_setzero_si512(); REGISTERS];
        for state in &mut state {
            *state = _mm512_xor_si512(self.next, self.keys[0]);
            self.next = _mm512_add_epi64(self.next, spread(Block(WORDS as u128)));
        }
        for key in &self.keys[1..10] {
            for state in &mut state {
                *state = _mm512_aesenc_epi128(*state, *key);
            }
        }
        let count = _mm512_set1_epi64(i64::from(self.count));
        for (state, places) in state.iter().zip(places.0.as_chunks_mut::<16>().0) {
            let words = _mm512_aesenclast_epi128(*state, self.keys[10]);
            // The upper halves of the products of even and of odd words.
            let even = _mm512_srli_epi64::<32>(_mm512_mul_epu32(words, count));
            let odd = _mm512_mul_epu32(_mm512_srli_epi64::<32>(words), count);
            let named = _mm512_slli_epi32::<BLOCK_SHIFT>(_mm512_mask_blend_epi32(0xaaaa, even, odd));
            // SAFETY: writes the 64 bytes of the array; unaligned stores are allowed.
            unsafe { _mm512_storeu_si512(places.as_mut_ptr().cast(), named) };
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn counters(first: u64) -> __m512i {
    let at = |block: u64| first.wrapping_add(block).cast_signed();
    _mm512_set_epi64(0, at(3), 0, at(2), 0, at(1), 0, at(0))
}

/// Inputs whose places would not fit 32 bits.
pub(super) const MAX_INPUTS: u32 = 1 << (32 - BLOCK_SHIFT);
/// The binary logarithm of a block's bytes.
const BLOCK_SHIFT: u32 = Block::BYTES.trailing_zeros();
/// Columns whose places fill whole registers. They are few, so that the processor sees the next ones' while it reads.
const COLUMNS: usize = 8;
const REGISTERS: usize = COLUMNS * ONES / 16;
