//! The key schedule of AES-128.

use std::arch::x86_64::{
    __m128i, _mm_aeskeygenassist_si128, _mm_loadu_si128, _mm_setzero_si128, _mm_shuffle_epi32,
    _mm_slli_si128, _mm_xor_si128,
};

use crate::arch::wide::RoundKeys;

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
