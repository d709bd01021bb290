//! The correlation-robust hash where a few low bits of each are of use: they are taken from the registers.
#![allow(unsafe_code)]

use std::arch::x86_64::{_mm512_storeu_si512, _mm512_xor_si512};

use super::hash_x86::{Tweaks, hash_group};
use super::registers::{LANES, bits_of, load, load_few, low_words, spread};
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
    let mut tweaks = Tweaks::new(first, 0);
    for (x, out) in x.chunks(WORDS).zip(out.chunks_mut(WORDS)) {
        let (low, high) = x.split_at(x.len().min(LANES));
        let hashed = [low, high].map(|x| {
            let tweaks = tweaks.next();
            hash_group(&keys, _mm512_xor_si512(load_few(x), offset), tweaks)
        });
        let mut words = [0_u64; WORDS];
        // SAFETY: writes the 64 bytes of the array; unaligned stores are allowed.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), low_words(hashed[0], hashed[1])) };
        out.copy_from_slice(&words[..out.len()]);
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
    let (pairs, _) = offsets.as_chunks::<LANES>().0.as_chunks::<2>();
    for (number, (x, out)) in x.iter().zip(out).enumerate() {
        let (x, tweak) = (spread(*x), spread(Block(u128::from(first.wrapping_add(number as u64)))));
        *out = [0; ROWS];
        for (half, offsets) in pairs.iter().enumerate() {
            let [a, b] = offsets
                .each_ref()
                .map(|offsets| hash_group(&keys, _mm512_xor_si512(x, load(offsets)), tweak));
            let words = low_words(a, b);
            for (row, bits) in out.iter_mut().enumerate() {
                *bits |= u16::from(bits_of(words, row)) << (WORDS * half);
            }
        }
    }
}
