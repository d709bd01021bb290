//! The hash `H(x, i) = AES(sigma(x) xor i) xor sigma(x)` where a few low bits of each are of use: they are taken from the registers.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm_set_epi64x, _mm512_broadcast_i32x4, _mm512_loadu_si512, _mm512_maskz_mov_epi64,
    _mm512_permutex2var_epi64, _mm512_set_epi64, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_shuffle_epi32, _mm512_storeu_si512, _mm512_test_epi64_mask, _mm512_xor_si512,
};

use super::vaes::{REGISTERS, WideCipher, broadcast, rounds};
use crate::Block;
use crate::hash::sigma;

/// Blocks that are hashed at once.
const BATCH: usize = 4 * REGISTERS;

impl WideCipher {
    /// Writes the low word of `H(x[j] xor offset, first + j)` to `out[j]`, of as many as there are of both.
    pub(crate) fn hash_low_words(&self, x: &[Block], offset: Block, first: u64, out: &mut [u64]) {
        // SAFETY: a value of this type exists only where the features were detected.
        unsafe { hash_low_words(self, x, offset, first, out) }
    }

    /// Bit `j` of `out[v][r]` becomes bit `r` of `H(x[v] xor multiples[j], first + v)`, for as many multiples as there are, 8 or 16.
    pub(crate) fn hash_runs_to_bits<const ROWS: usize>(
        &self,
        x: &[Block],
        multiples: &[Block],
        first: u64,
        out: &mut [[u16; ROWS]],
    ) {
        // SAFETY: a value of this type exists only where the features were detected.
        unsafe { hash_runs_to_bits(self, x, multiples, first, out) }
    }
}

#[target_feature(enable = "avx512f,vaes")]
fn hash_low_words(cipher: &WideCipher, x: &[Block], offset: Block, first: u64, out: &mut [u64]) {
    let keys = broadcast(cipher.keys());
    let offset = spread(sigma(offset));
    let mut tail = [Block::ZERO; BATCH];
    for (number, (x, out)) in x.chunks(BATCH).zip(out.chunks_mut(BATCH)).enumerate() {
        let first = first.wrapping_add((number * BATCH) as u64);
        let whole: &[Block; BATCH] = match x.try_into() {
            Ok(whole) => whole,
            Err(_) => {
                tail[..x.len()].copy_from_slice(x);
                &tail
            }
        };
        let mut masked = load(whole);
        let mut input = masked;
        for (number, (masked, input)) in masked.iter_mut().zip(&mut input).enumerate() {
            *masked = _mm512_xor_si512(sigma_wide(*masked), offset);
            *input = _mm512_xor_si512(*masked, tweaks(first.wrapping_add(4 * number as u64)));
        }
        let hashed = rounds(&keys, input);
        let mut words = [0; BATCH];
        for (number, words) in words.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let pair = |i: usize| _mm512_xor_si512(hashed[i], masked[i]);
            let low = low_words(pair(2 * number), pair(2 * number + 1));
            // SAFETY: writes the 64 bytes of the array; unaligned stores are allowed.
            unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), low) };
        }
        out.copy_from_slice(&words[..out.len()]);
    }
}

#[target_feature(enable = "avx512f,vaes")]
fn hash_runs_to_bits<const ROWS: usize>(
    cipher: &WideCipher,
    x: &[Block],
    multiples: &[Block],
    first: u64,
    out: &mut [[u16; ROWS]],
) {
    let keys = broadcast(cipher.keys());
    // All registers hold the multiples of one value, or of two.
    let (run, per_value) = (multiples.len(), multiples.len() / 4);
    let mut cycle = [Block::ZERO; BATCH];
    cycle.iter_mut().zip(multiples.iter().cycle()).for_each(|(slot, multiple)| *slot = sigma(*multiple));
    let (multiples, values) = (load(&cycle), BATCH / run);
    for (number, (x, out)) in x.chunks(values).zip(out.chunks_mut(values)).enumerate() {
        let first = first.wrapping_add((number * values) as u64);
        let mut masked = multiples;
        let mut input = masked;
        for (number, (masked, input)) in masked.iter_mut().zip(&mut input).enumerate() {
            let value = number / per_value;
            let base = x.get(value).map_or(Block::ZERO, |x| sigma(*x));
            *masked = _mm512_xor_si512(*masked, spread(base));
            *input = _mm512_xor_si512(*masked, spread(Block(u128::from(first.wrapping_add(value as u64)))));
        }
        let hashed = rounds(&keys, input);
        let pair = |i: usize| _mm512_xor_si512(hashed[i], masked[i]);
        for (value, out) in out.iter_mut().enumerate() {
            *out = [0; ROWS];
            for half in 0..per_value / 2 {
                let start = value * per_value + 2 * half;
                let low = low_words(pair(start), pair(start + 1));
                for (row, out) in out.iter_mut().enumerate() {
                    let bits = _mm512_test_epi64_mask(low, _mm512_set1_epi64(1 << row));
                    *out |= u16::from(bits) << (8 * half);
                }
            }
        }
    }
}

/// `sigma` of each block.
#[inline]
#[target_feature(enable = "avx512f")]
fn sigma_wide(x: __m512i) -> __m512i {
    let swapped = _mm512_shuffle_epi32::<0b01_00_11_10>(x);
    _mm512_xor_si512(swapped, _mm512_maskz_mov_epi64(0b1010_1010, x))
}

/// The low words of the four blocks of `a`, then of `b`.
#[inline]
#[target_feature(enable = "avx512f")]
fn low_words(a: __m512i, b: __m512i) -> __m512i {
    _mm512_permutex2var_epi64(a, _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), b)
}

/// The tweaks from `first` on of four blocks.
#[inline]
#[target_feature(enable = "avx512f")]
fn tweaks(first: u64) -> __m512i {
    let at = |block: u64| first.wrapping_add(block).cast_signed();
    _mm512_set_epi64(0, at(3), 0, at(2), 0, at(1), 0, at(0))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn spread(block: Block) -> __m512i {
    _mm512_broadcast_i32x4(_mm_set_epi64x(
        ((block.0 >> 64) as u64).cast_signed(),
        (block.0 as u64).cast_signed(),
    ))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(blocks: &[Block; BATCH]) -> [__m512i; REGISTERS] {
    let mut state = [_mm512_setzero_si512(); REGISTERS];
    for (state, blocks) in state.iter_mut().zip(blocks.as_chunks::<4>().0) {
        // SAFETY: reads the 64 bytes of the array; unaligned loads are allowed.
        *state = unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) };
    }
    state
}
