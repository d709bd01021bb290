//! The key schedule of AES-128.

use std::arch::aarch64::{
    vaeseq_u8, vdupq_n_u8, vdupq_n_u32, vgetq_lane_u32, vreinterpretq_u8_u32, vreinterpretq_u32_u8,
};

use crate::arch::generic;
use crate::arch::wide::RoundKeys;

#[target_feature(enable = "neon,aes")]
pub(super) fn schedule(key: &[u8; 16]) -> RoundKeys {
    generic::schedule::schedule(key, |word| substituted(word))
}

/// The word with every byte substituted: in equal columns, shifted rows are what they were.
#[target_feature(enable = "neon,aes")]
fn substituted(word: u32) -> u32 {
    let columns = vreinterpretq_u8_u32(vdupq_n_u32(word));
    vgetq_lane_u32::<0>(vreinterpretq_u32_u8(vaeseq_u8(columns, vdupq_n_u8(0))))
}
