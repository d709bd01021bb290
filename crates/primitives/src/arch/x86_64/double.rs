//! Products with `X` over `GF(2^128)`, four blocks to a register.

use std::arch::x86_64::{
    __m512i, _mm512_maskz_mov_epi64, _mm512_set_epi64, _mm512_set1_epi64, _mm512_shuffle_epi32,
    _mm512_slli_epi64, _mm512_ternarylogic_epi64, _mm512_test_epi64_mask,
};

use super::hash::{A_XOR_B_XOR_C, SWAP};
use super::registers::{load, load_few, store, store_few};
use crate::Block;
use crate::block::REDUCED;

/// Replaces every `x[j]` by the sum of `y[j]` and its double.
#[target_feature(enable = "avx512f")]
pub(super) fn double_and_add(x: &mut [Block], y: &[Block]) {
    let count = x.len().min(y.len());
    let (x, y) = (&mut x[..count], &y[..count]);
    let ((x, x_few), (y, y_few)) = (x.as_chunks_mut(), y.as_chunks());
    for (x, y) in x.iter_mut().zip(y) {
        store(x, sum(load(x), load(y)));
    }
    store_few(x_few, sum(load_few(x_few), load_few(y_few)));
}

/// The sum of `y` and the double of `x`.
#[inline]
#[target_feature(enable = "avx512f")]
fn sum(x: __m512i, y: __m512i) -> __m512i {
    // What the top bit of the other half of a block adds to each half: that of the upper is reduced.
    let carries = _mm512_set_epi64(1, REDUCED, 1, REDUCED, 1, REDUCED, 1, REDUCED);
    let carried = _mm512_test_epi64_mask(_mm512_shuffle_epi32::<SWAP>(x), _mm512_set1_epi64(i64::MIN));
    let carries = _mm512_maskz_mov_epi64(carried, carries);
    _mm512_ternarylogic_epi64::<A_XOR_B_XOR_C>(_mm512_slli_epi64::<1>(x), carries, y)
}
