//! The correlation-robust hash where a few low bits of each are of use: they are taken from the registers.
#![allow(unsafe_code)]

use std::arch::x86_64::{_mm512_setzero_si512, _mm512_xor_si512};

use super::hash_x86::{BATCH, Tweaks, hash_groups};
use super::registers::{LANES, bits_of, load, load_few, low_words, spread, store_few_words};
use super::vaes::{WideCipher, broadcast};
use crate::Block;

impl WideCipher {
    /// Writes the low word of `H(x[j] xor offset, first + j)` to `out[j]`, of as many as there are of both.
    pub(crate) fn hash_low_words(&self, x: &[Block], offset: Block, first: u64, out: &mut [u64]) {
        // SAFETY: a value of this type exists only where the features were detected.
        unsafe { hash_low_words(self, x, offset, first, out) }
    }

    /// Bit `j` of `out[v][r]` becomes bit `r` of `H(x[v] xor offsets[j], first + v)`, for as many offsets as there are, 8 or 16.
    pub(crate) fn hash_runs_to_bits<const ROWS: usize>(
        &self,
        x: &[Block],
        offsets: &[Block],
        first: u64,
        out: &mut [[u16; ROWS]],
    ) {
        // SAFETY: a value of this type exists only where the features were detected.
        unsafe { hash_runs_to_bits(self, x, offsets, first, out) }
    }
}

/// Words of a register.
const WORDS: usize = 2 * LANES;

#[target_feature(enable = "avx512f,vaes")]
fn hash_low_words(cipher: &WideCipher, x: &[Block], offset: Block, first: u64, out: &mut [u64]) {
    let (keys, offset) = (broadcast(cipher.keys()), spread(offset));
    let mut tweaks = Tweaks::new(first);
    for (x, out) in x.chunks(BATCH * LANES).zip(out.chunks_mut(BATCH * LANES)) {
        let mut masked = [offset; BATCH];
        for (masked, x) in masked.iter_mut().zip(x.chunks(LANES)) {
            *masked = _mm512_xor_si512(offset, load_few(x));
        }
        let hashed = hash_groups(&keys, masked, tweaks.next());
        for (pair, out) in hashed.as_chunks::<2>().0.iter().zip(out.chunks_mut(WORDS)) {
            store_few_words(out, low_words(pair[0], pair[1]));
        }
    }
}

#[target_feature(enable = "avx512f,vaes")]
fn hash_runs_to_bits<const ROWS: usize>(
    cipher: &WideCipher,
    x: &[Block],
    offsets: &[Block],
    first: u64,
    out: &mut [[u16; ROWS]],
) {
    let keys = broadcast(cipher.keys());
    let (of_value, _) = offsets.as_chunks::<LANES>();
    let (groups, values) = (of_value.len(), BATCH / of_value.len());
    for (number, (x, out)) in x.chunks(values).zip(out.chunks_mut(values)).enumerate() {
        let (mut masked, mut tweaks) = ([_mm512_setzero_si512(); BATCH], [_mm512_setzero_si512(); BATCH]);
        let slots = masked.chunks_exact_mut(groups).zip(tweaks.chunks_exact_mut(groups));
        for (value, ((masked, tweaks), x)) in slots.zip(x).enumerate() {
            let index = first.wrapping_add((number * values + value) as u64);
            tweaks.fill(spread(Block(u128::from(index))));
            for (masked, offsets) in masked.iter_mut().zip(of_value) {
                *masked = _mm512_xor_si512(spread(*x), load(offsets));
            }
        }
        let hashed = hash_groups(&keys, masked, tweaks);
        for (hashed, out) in hashed.chunks_exact(groups).zip(out) {
            *out = [0; ROWS];
            for (half, pair) in hashed.as_chunks::<2>().0.iter().enumerate() {
                let words = low_words(pair[0], pair[1]);
                for (row, bits) in out.iter_mut().enumerate() {
                    *bits |= u16::from(bits_of(words, row)) << (WORDS * half);
                }
            }
        }
    }
}
