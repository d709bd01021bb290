//! AES-128 on several registers at a time.

use super::numbers::Numbers;
use crate::Block;
use crate::arch::registers::Registers;
use crate::arch::wide::{Numbering, RoundKeys};

/// Registers that run through the pipeline at once: enough to cover the latency of a round.
pub(super) const BATCH: usize = 8;

/// Replaces every block by its encryption.
#[inline(always)]
pub(in crate::arch) fn encrypt<S: Registers>(set: S, keys: &RoundKeys, blocks: &mut [Block]) {
    let keys = spread(set, keys);
    let mut batches = blocks.chunks_exact_mut(BATCH * S::LANES);
    for batch in &mut batches {
        encrypt_batch(set, &keys, batch);
    }
    let rest = batches.into_remainder();
    if !rest.is_empty() {
        encrypt_batch(set, &keys, rest);
    }
}

/// The same of at most a batch.
#[inline(always)]
fn encrypt_batch<S: Registers>(set: S, keys: &[S::Register; 11], blocks: &mut [Block]) {
    let mut state = [keys[0]; BATCH];
    for (state, blocks) in state.iter_mut().zip(blocks.chunks(S::LANES)) {
        *state = set.load(blocks);
    }
    for (encrypted, blocks) in rounds(set, keys, state).into_iter().zip(blocks.chunks_mut(S::LANES)) {
        set.store(blocks, encrypted);
    }
}

/// Fills `blocks` with the encryptions of the integers from `first` on, wrapping at `2^64`.
#[inline(always)]
pub(in crate::arch) fn counter_mode<S: Registers>(
    set: S,
    keys: &RoundKeys,
    first: u64,
    blocks: &mut [Block],
) {
    let keys = spread(set, keys);
    let mut numbers = Numbers::new(set, Numbering::From(first));
    let mut batches = blocks.chunks_exact_mut(BATCH * S::LANES);
    for batch in &mut batches {
        write_stream(set, &keys, &mut numbers, batch);
    }
    let rest = batches.into_remainder();
    if !rest.is_empty() {
        write_stream(set, &keys, &mut numbers, rest);
    }
}

/// The encryptions of the next numbers, at most a batch.
#[inline(always)]
fn write_stream<S: Registers>(
    set: S,
    keys: &[S::Register; 11],
    numbers: &mut Numbers<S>,
    blocks: &mut [Block],
) {
    let encrypted = rounds::<S, BATCH>(set, keys, numbers.take(set));
    for (encrypted, blocks) in encrypted.into_iter().zip(blocks.chunks_mut(S::LANES)) {
        set.store(blocks, encrypted);
    }
}

/// The round keys of a schedule, each in every lane.
#[inline(always)]
pub(super) fn spread<S: Registers>(set: S, keys: &RoundKeys) -> [S::Register; 11] {
    let mut wide = [set.spread(keys[0]); 11];
    for (wide, key) in wide.iter_mut().zip(keys) {
        *wide = set.spread(*key);
    }
    wide
}

/// The encryptions, one round of all after the other, as none need wait for another.
#[inline(always)]
pub(super) fn rounds<S: Registers, const COUNT: usize>(
    set: S,
    keys: &[S::Register; 11],
    mut state: [S::Register; COUNT],
) -> [S::Register; COUNT] {
    for state in &mut state {
        *state = set.xor(*state, keys[0]);
    }
    for key in &keys[1..10] {
        for state in &mut state {
            *state = set.round(*state, *key);
        }
    }
    for state in &mut state {
        *state = set.last_round(*state, keys[10]);
    }
    state
}
