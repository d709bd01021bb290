//! The key schedule of AES-128, but for the substitution.

use crate::Block;
use crate::arch::wide::RoundKeys;

/// FIPS 197 section 5.2: each word is the sum of all words up to it of the last key and of the last word, rotated and substituted.
#[inline(always)]
pub(in crate::arch) fn schedule(key: &[u8; 16], substituted: impl Fn(u32) -> u32) -> RoundKeys {
    let mut keys = [Block::from_bytes(*key); 11];
    let mut constant = 1_u8;
    for round in 1..keys.len() {
        let last = (keys[round - 1].0 >> 96) as u32;
        // The first byte comes last: in little-endian words the rotation is to the right.
        let mut word = substituted(last).rotate_right(8) ^ u32::from(constant);
        keys[round] = Block(0);
        for place in 0..4 {
            word ^= (keys[round - 1].0 >> (32 * place)) as u32;
            keys[round].0 |= u128::from(word) << (32 * place);
        }
        constant = constant << 1 ^ (if constant & 0x80 == 0 { 0 } else { 0x1b });
    }
    keys
}
