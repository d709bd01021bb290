//! The correlation-robust hash and the half tree's step, four blocks to a register: each block is read once and written once.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_aesenc_epi128, _mm512_aesenclast_epi128, _mm512_and_si512,
    _mm512_maskz_mov_epi64, _mm512_set_epi64, _mm512_setzero_si512, _mm512_shuffle_epi32,
    _mm512_ternarylogic_epi64, _mm512_xor_si512,
};

use super::registers::{LANES, halves_of, load, load_few, spread, store, store_few};
use super::vaes::broadcast;
use crate::Block;
use crate::arch::wide::{Numbering, RoundKeys};

/// Replaces every `x[j]` by `H(x[j] xor offset, tweak j)`.
#[target_feature(enable = "avx512f,vaes")]
pub(super) fn hash(keys: &RoundKeys, x: &mut [Block], offset: Block, tweaks: Numbering) {
    let (keys, offset) = (broadcast(keys), spread(offset));
    let mut tweaks = Tweaks::new(tweaks);
    let (groups, few) = x.as_chunks_mut();
    let (batches, groups) = groups.as_chunks_mut();
    for batch in batches {
        hash_batch::<BATCH>(&keys, batch, offset, &mut tweaks);
    }
    for group in groups.as_chunks_mut().0 {
        hash_batch::<1>(&keys, group, offset, &mut tweaks);
    }
    if !few.is_empty() {
        let [hashed] = hash_groups(&keys, [_mm512_xor_si512(load_few(few), offset)], tweaks.next());
        store_few(few, hashed);
    }
}

#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn hash_batch<const GROUPS: usize>(
    keys: &[__m512i; 11],
    x: &mut [[Block; LANES]; GROUPS],
    offset: __m512i,
    tweaks: &mut Tweaks,
) {
    let mut masked = [offset; GROUPS];
    for (masked, x) in masked.iter_mut().zip(&*x) {
        *masked = _mm512_xor_si512(*masked, load(x));
    }
    for (x, hashed) in x.iter_mut().zip(hash_groups(keys, masked, tweaks.next())) {
        store(x, hashed);
    }
}

/// Makes children of the first half of `nodes`: see [`CipherKernels`](crate::arch::wide::CipherKernels).
#[target_feature(enable = "avx512f,vaes")]
pub(super) fn expand(keys: &RoundKeys, nodes: &mut [Block], tweaks: Numbering, keep: Block) -> Block {
    let (keys, keep) = (broadcast(keys), spread(keep));
    let mut tweaks = Tweaks::new(tweaks);
    let mut sum = _mm512_setzero_si512();
    let (left, right) = nodes.split_at_mut(nodes.len() / 2);
    let ((left, left_few), (right, right_few)) = (left.as_chunks_mut(), right.as_chunks_mut());
    let ((lefts, left), (rights, right)) = (left.as_chunks_mut(), right.as_chunks_mut());
    for (left, right) in lefts.iter_mut().zip(rights) {
        sum = _mm512_xor_si512(sum, expand_batch::<BATCH>(&keys, left, right, &mut tweaks, keep));
    }
    for (left, right) in left.as_chunks_mut().0.iter_mut().zip(right.as_chunks_mut().0) {
        sum = _mm512_xor_si512(sum, expand_batch::<1>(&keys, left, right, &mut tweaks, keep));
    }
    if !left_few.is_empty() {
        let x = load_few(left_few);
        let [hashed] = hash_groups(&keys, [x], tweaks.next());
        sum = _mm512_xor_si512(sum, _mm512_maskz_mov_epi64(halves_of(left_few), hashed));
        store_few(left_few, _mm512_and_si512(hashed, keep));
        store_few(right_few, _mm512_and_si512(_mm512_xor_si512(x, hashed), keep));
    }
    let mut sums = [Block::ZERO; LANES];
    store(&mut sums, sum);
    sums.into_iter().fold(Block::ZERO, |sum, block| sum ^ block)
}

/// Replaces the parents in `left` by their left children, whose sums it returns, and fills `right` with the others.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn expand_batch<const GROUPS: usize>(
    keys: &[__m512i; 11],
    left: &mut [[Block; LANES]; GROUPS],
    right: &mut [[Block; LANES]; GROUPS],
    tweaks: &mut Tweaks,
    keep: __m512i,
) -> __m512i {
    let mut x = [_mm512_setzero_si512(); GROUPS];
    for (x, left) in x.iter_mut().zip(&*left) {
        *x = load(left);
    }
    let mut sum = _mm512_setzero_si512();
    for ((left, right), hashed) in left.iter_mut().zip(right).zip(hash_groups(keys, x, tweaks.next())) {
        let parents = load(left);
        sum = _mm512_xor_si512(sum, hashed);
        store(left, _mm512_and_si512(hashed, keep));
        store(right, _mm512_and_si512(_mm512_xor_si512(parents, hashed), keep));
    }
    sum
}

/// Tweaks of consecutive blocks, four at a time: those of the next ones, and what they grow by.
pub(super) struct Tweaks(__m512i, __m512i);

impl Tweaks {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn new(tweaks: Numbering) -> Self {
        let of = |block: usize| tweaks.of(block).cast_signed();
        let first = _mm512_set_epi64(0, of(3), 0, of(2), 0, of(1), 0, of(0));
        let step = tweaks.of(LANES).wrapping_sub(tweaks.of(0));
        Self(first, spread(Block(u128::from(step))))
    }

    /// Of the next groups.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn next<const GROUPS: usize>(&mut self) -> [__m512i; GROUPS] {
        let mut tweaks = [self.0; GROUPS];
        for tweak in &mut tweaks {
            *tweak = self.0;
            self.0 = _mm512_add_epi64(self.0, self.1);
        }
        tweaks
    }
}

/// `H` of groups of blocks, one round of all after the other, as none need wait for another.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
pub(super) fn hash_groups<const GROUPS: usize>(
    keys: &[__m512i; 11],
    x: [__m512i; GROUPS],
    tweaks: [__m512i; GROUPS],
) -> [__m512i; GROUPS] {
    // Swapped halves, and the upper one added to the upper one.
    let upper = _mm512_set_epi64(-1, 0, -1, 0, -1, 0, -1, 0);
    let mut sigma = x;
    let mut state = x;
    for ((sigma, state), tweak) in sigma.iter_mut().zip(&mut state).zip(tweaks) {
        *sigma =
            _mm512_ternarylogic_epi64::<A_XOR_B_AND_C>(_mm512_shuffle_epi32::<SWAP>(*sigma), *sigma, upper);
        *state = _mm512_ternarylogic_epi64::<A_XOR_B_XOR_C>(*sigma, tweak, keys[0]);
    }
    for key in &keys[1..10] {
        for state in &mut state {
            *state = _mm512_aesenc_epi128(*state, *key);
        }
    }
    for (state, sigma) in state.iter_mut().zip(&sigma) {
        *state = _mm512_aesenclast_epi128(*state, _mm512_xor_si512(keys[10], *sigma));
    }
    state
}

/// Groups of four blocks that are hashed at once: enough to cover the latency of a round; with the keys they fit the register file.
pub(super) const BATCH: usize = 8;
/// For [`_mm512_shuffle_epi32`]: the halves of each block swapped.
pub(super) const SWAP: i32 = 0b01_00_11_10;
/// For [`_mm512_ternarylogic_epi64`].
const A_XOR_B_AND_C: i32 = 0x78;
/// As [`A_XOR_B_AND_C`].
pub(super) const A_XOR_B_XOR_C: i32 = 0x96;
