//! AES-128 on 32 blocks at a time by the vector AES instructions on 512-bit registers.

use std::arch::x86_64::{
    __m128i, __m512i, _mm_aeskeygenassist_si128, _mm_loadu_si128, _mm_setzero_si128, _mm_shuffle_epi32,
    _mm_slli_si128, _mm_xor_si128, _mm512_add_epi64, _mm512_aesenc_epi128, _mm512_aesenclast_epi128,
    _mm512_broadcast_i32x4, _mm512_loadu_si512, _mm512_set_epi64, _mm512_setzero_si512, _mm512_storeu_si512,
    _mm512_xor_si512,
};

use crate::arch::wide::RoundKeys;

/// The bytes that run through the pipeline at once: 8 registers of 4 blocks.
const BATCH: usize = REGISTERS * 64;

/// Enough independent registers to cover the latency of a round; with the keys they fit the register file.
const REGISTERS: usize = 8;

/// The round keys of a schedule, as registers.
pub(super) const fn round_keys(keys: &RoundKeys) -> &[__m128i; 11] {
    bytemuck::must_cast_ref(keys)
}

#[target_feature(enable = "aes")]
pub(super) fn schedule(key: &[u8; 16]) -> RoundKeys {
    bytemuck::must_cast(expand_key(key))
}

#[target_feature(enable = "aes")]
fn expand_key(key: &[u8; 16]) -> [__m128i; 11] {
    let mut keys = [_mm_setzero_si128(); 11];
    // SAFETY: reads the 16 bytes of the key; unaligned loads are allowed.
    keys[0] = unsafe { _mm_loadu_si128(key.as_ptr().cast()) };
    keys[1] = next_key::<0x01>(keys[0]);
    keys[2] = next_key::<0x02>(keys[1]);
    keys[3] = next_key::<0x04>(keys[2]);
    keys[4] = next_key::<0x08>(keys[3]);
    keys[5] = next_key::<0x10>(keys[4]);
    keys[6] = next_key::<0x20>(keys[5]);
    keys[7] = next_key::<0x40>(keys[6]);
    keys[8] = next_key::<0x80>(keys[7]);
    keys[9] = next_key::<0x1b>(keys[8]);
    keys[10] = next_key::<0x36>(keys[9]);
    keys
}

/// FIPS 197 section 5.2: each word is the sum of all words up to it of the last key and of the substituted last word.
#[target_feature(enable = "aes")]
fn next_key<const ROUND_CONSTANT: i32>(key: __m128i) -> __m128i {
    let substituted = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<ROUND_CONSTANT>(key));
    let pairs = _mm_xor_si128(key, _mm_slli_si128::<4>(key));
    let sums = _mm_xor_si128(pairs, _mm_slli_si128::<8>(pairs));
    _mm_xor_si128(sums, substituted)
}

/// Replaces every 16 bytes by their encryption.
#[target_feature(enable = "avx512f,vaes")]
pub(super) fn encrypt(keys: &RoundKeys, bytes: &mut [u8]) {
    let keys = broadcast(keys);
    let (batches, rest) = bytes.as_chunks_mut::<BATCH>();
    for batch in batches {
        let state = load(batch);
        store(batch, &rounds(&keys, state));
    }
    if !rest.is_empty() {
        let mut batch = [0; BATCH];
        batch[..rest.len()].copy_from_slice(rest);
        let state = load(&batch);
        store(&mut batch, &rounds(&keys, state));
        rest.copy_from_slice(&batch[..rest.len()]);
    }
}

/// Fills `bytes` with the encryptions of the 128-bit little-endian integers from `first` on, wrapping at `2^64`.
#[target_feature(enable = "avx512f,vaes")]
pub(super) fn counter_mode(keys: &RoundKeys, first: u64, bytes: &mut [u8]) {
    let keys = broadcast(keys);
    let first = first.cast_signed();
    let mut counters = [_mm512_setzero_si512(); REGISTERS];
    for (start, register) in (0..).step_by(4).zip(&mut counters) {
        let at = |block: i64| first.wrapping_add(start + block);
        *register = _mm512_set_epi64(0, at(3), 0, at(2), 0, at(1), 0, at(0));
    }
    let advance = (BATCH / 16) as i64;
    let advance = _mm512_set_epi64(0, advance, 0, advance, 0, advance, 0, advance);
    let (batches, rest) = bytes.as_chunks_mut::<BATCH>();
    for batch in batches {
        store(batch, &rounds(&keys, counters));
        for register in &mut counters {
            *register = _mm512_add_epi64(*register, advance);
        }
    }
    if !rest.is_empty() {
        let mut batch = [0; BATCH];
        store(&mut batch, &rounds(&keys, counters));
        rest.copy_from_slice(&batch[..rest.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn broadcast(keys: &RoundKeys) -> [__m512i; 11] {
    let mut wide = [_mm512_setzero_si512(); 11];
    for (wide, key) in wide.iter_mut().zip(round_keys(keys)) {
        *wide = _mm512_broadcast_i32x4(*key);
    }
    wide
}

#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn rounds(keys: &[__m512i; 11], mut state: [__m512i; REGISTERS]) -> [__m512i; REGISTERS] {
    for s in &mut state {
        *s = _mm512_xor_si512(*s, keys[0]);
    }
    for key in &keys[1..10] {
        for s in &mut state {
            *s = _mm512_aesenc_epi128(*s, *key);
        }
    }
    for s in &mut state {
        *s = _mm512_aesenclast_epi128(*s, keys[10]);
    }
    state
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(batch: &[u8; BATCH]) -> [__m512i; REGISTERS] {
    let mut state = [_mm512_setzero_si512(); REGISTERS];
    for (s, bytes) in state.iter_mut().zip(batch.as_chunks::<64>().0) {
        // SAFETY: reads the 64 bytes of the array; unaligned loads are allowed.
        *s = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
    }
    state
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(batch: &mut [u8; BATCH], state: &[__m512i; REGISTERS]) {
    for (s, bytes) in state.iter().zip(batch.as_chunks_mut::<64>().0) {
        // SAFETY: writes the 64 bytes of the array; unaligned stores are allowed.
        unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), *s) };
    }
}
