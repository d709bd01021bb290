//! Additions at a secret place or under secret bits, four blocks to a register.

use std::arch::x86_64::{
    _mm512_add_epi64, _mm512_cmpeq_epi64_mask, _mm512_mask_xor_epi64, _mm512_set_epi64, _mm512_set1_epi64,
    _mm512_shuffle_epi32, _mm512_test_epi64_mask, _mm512_xor_si512,
};

use super::registers::{LANES, load, spread, store};
use crate::Block;
use crate::arch::portable;

/// Adds `values` at the siblings of number `place`.
#[target_feature(enable = "avx512f")]
pub(super) fn add_at_siblings(blocks: &mut [Block], place: usize, values: [Block; 2]) {
    if !(blocks.len() / 2).is_multiple_of(LANES) {
        return portable::add_at_siblings(blocks, place, values);
    }
    let (left, right) = blocks.split_at_mut(blocks.len() / 2);
    let (left_value, right_value) = (spread(values[0]), spread(values[1]));
    let place = _mm512_set1_epi64(place as i64);
    // The number of a block in both of its halves.
    let mut numbers = _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0);
    let advance = _mm512_set1_epi64(LANES as i64);
    for (left, right) in left.as_chunks_mut().0.iter_mut().zip(right.as_chunks_mut().0) {
        let mask = _mm512_cmpeq_epi64_mask(numbers, place);
        let (x, y) = (load(left), load(right));
        store(left, _mm512_mask_xor_epi64(x, mask, x, left_value));
        store(right, _mm512_mask_xor_epi64(y, mask, y, right_value));
        numbers = _mm512_add_epi64(numbers, advance);
    }
}

/// Adds `value` to siblings whose sum has a low bit.
#[target_feature(enable = "avx512f")]
pub(super) fn add_by_parents(blocks: &mut [Block], value: Block) {
    if !(blocks.len() / 2).is_multiple_of(LANES) {
        return portable::add_by_parents(blocks, value);
    }
    let (left, right) = blocks.split_at_mut(blocks.len() / 2);
    let (value, low_bit) = (spread(value), _mm512_set1_epi64(1));
    for (left, right) in left.as_chunks_mut().0.iter_mut().zip(right.as_chunks_mut().0) {
        let (x, y) = (load(left), load(right));
        let low_halves = _mm512_shuffle_epi32::<LOW_TWICE>(_mm512_xor_si512(x, y));
        let mask = _mm512_test_epi64_mask(low_halves, low_bit);
        store(left, _mm512_mask_xor_epi64(x, mask, x, value));
        store(right, _mm512_mask_xor_epi64(y, mask, y, value));
    }
}

/// For [`_mm512_shuffle_epi32`]: the lower half of each block twice.
const LOW_TWICE: i32 = 0b01_00_01_00;
