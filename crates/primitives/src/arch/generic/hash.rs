//! The correlation-robust hash and the half tree's step: each block is read once and written once.

use super::encryption::BATCH;
use super::numbers::Numbers;
use crate::Block;
use crate::arch::registers::{Cipher, MAX_LANES, sum_of_lanes};
use crate::arch::wide::{Numbering, RoundKeys};

/// Replaces every `x[j]` by `H(x[j] xor offset, tweak j)`.
#[inline(always)]
pub(in crate::arch) fn hash<S: Cipher>(
    set: S,
    keys: &RoundKeys,
    x: &mut [Block],
    offset: Block,
    tweaks: Numbering,
) {
    let (keys, offset) = (set.keys(keys), set.spread(offset));
    let mut tweaks = Numbers::new(set, tweaks);
    let mut batches = x.chunks_exact_mut(BATCH * S::LANES);
    for batch in &mut batches {
        hash_batch::<S, BATCH>(set, &keys, batch, offset, &mut tweaks);
    }
    for group in batches.into_remainder().chunks_mut(S::LANES) {
        hash_batch::<S, 1>(set, &keys, group, offset, &mut tweaks);
    }
}

#[inline(always)]
fn hash_batch<S: Cipher, const GROUPS: usize>(
    set: S,
    keys: &S::Keys,
    x: &mut [Block],
    offset: S::Register,
    tweaks: &mut Numbers<S>,
) {
    let mut masked = [offset; GROUPS];
    for (masked, x) in masked.iter_mut().zip(x.chunks(S::LANES)) {
        *masked = set.xor(offset, set.load(x));
    }
    let hashed = hash_groups(set, keys, masked, tweaks.take(set));
    for (x, hashed) in x.chunks_mut(S::LANES).zip(hashed) {
        set.store(x, hashed);
    }
}

/// Makes children of the first half of `nodes`: see [`CipherKernels`](crate::arch::wide::CipherKernels).
#[inline(always)]
pub(in crate::arch) fn expand<S: Cipher>(
    set: S,
    keys: &RoundKeys,
    nodes: &mut [Block],
    tweaks: Numbering,
    keep: Block,
) -> Block {
    let (keys, keep) = (set.keys(keys), set.spread(keep));
    let mut tweaks = Numbers::new(set, tweaks);
    let (left, right) = nodes.split_at_mut(nodes.len() / 2);
    let mut lefts = left.chunks_exact_mut(BATCH * S::LANES);
    let mut rights = right.chunks_exact_mut(BATCH * S::LANES);
    let mut sum = set.spread(Block::ZERO);
    for (left, right) in (&mut lefts).zip(&mut rights) {
        let hashed = expand_batch::<S, BATCH>(set, &keys, left, right, &mut tweaks, keep);
        sum = set.xor(sum, hashed);
    }
    let (left, right) = (lefts.into_remainder(), rights.into_remainder());
    for (left, right) in left.chunks_mut(S::LANES).zip(right.chunks_mut(S::LANES)) {
        // Lanes without a parent are hashed, too.
        let there = set.load(&[Block::ONES; MAX_LANES][..left.len()]);
        let hashed = expand_batch::<S, 1>(set, &keys, left, right, &mut tweaks, keep);
        sum = set.xor(sum, set.and(hashed, there));
    }
    sum_of_lanes(set, sum)
}

/// Replaces the parents in `left` by their left children, and fills `right` with the others. Returns the sum of the hashes, lane by lane.
#[inline(always)]
fn expand_batch<S: Cipher, const GROUPS: usize>(
    set: S,
    keys: &S::Keys,
    left: &mut [Block],
    right: &mut [Block],
    tweaks: &mut Numbers<S>,
    keep: S::Register,
) -> S::Register {
    let mut parents = [keep; GROUPS];
    for (parents, left) in parents.iter_mut().zip(left.chunks(S::LANES)) {
        *parents = set.load(left);
    }
    let mut sum = set.spread(Block::ZERO);
    let hashed = hash_groups(set, keys, parents, tweaks.take(set));
    for ((left, right), hashed) in left.chunks_mut(S::LANES).zip(right.chunks_mut(S::LANES)).zip(hashed) {
        // Read again: registers do not hold all parents beside what is hashed.
        let parents = set.load(left);
        sum = set.xor(sum, hashed);
        set.store(left, set.and(hashed, keep));
        set.store(right, set.and(set.xor(parents, hashed), keep));
    }
    sum
}

/// `H` of groups of blocks.
#[inline(always)]
pub(super) fn hash_groups<S: Cipher, const GROUPS: usize>(
    set: S,
    keys: &S::Keys,
    x: [S::Register; GROUPS],
    tweaks: [S::Register; GROUPS],
) -> [S::Register; GROUPS] {
    let (mut sigma, mut state) = (x, x);
    for ((sigma, state), tweak) in sigma.iter_mut().zip(&mut state).zip(tweaks) {
        *sigma = set.sigma(*sigma);
        *state = set.xor(*sigma, tweak);
    }
    set.encrypt(keys, state, sigma)
}
