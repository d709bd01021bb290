//! AES-128 on several registers at a time.

use super::numbers::Numbers;
use crate::Block;
use crate::arch::registers::{Cipher, Rounds};
use crate::arch::wide::{Numbering, RoundKeys};

/// Registers that run through the pipeline at once: enough to cover the latency of a round.
pub(super) const BATCH: usize = 8;

/// Replaces every block by its encryption.
#[inline(always)]
pub(in crate::arch) fn encrypt<S: Cipher>(set: S, keys: &RoundKeys, blocks: &mut [Block]) {
    let keys = set.keys(keys);
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
fn encrypt_batch<S: Cipher>(set: S, keys: &S::Keys, blocks: &mut [Block]) {
    let none = [set.spread(Block::ZERO); BATCH];
    let mut state = none;
    for (state, blocks) in state.iter_mut().zip(blocks.chunks(S::LANES)) {
        *state = set.load(blocks);
    }
    for (encrypted, blocks) in set.encrypt(keys, state, none).into_iter().zip(blocks.chunks_mut(S::LANES)) {
        set.store(blocks, encrypted);
    }
}

/// Fills `blocks` with the encryptions of the integers from `first` on, wrapping at `2^64`.
#[inline(always)]
pub(in crate::arch) fn counter_mode<S: Cipher>(set: S, keys: &RoundKeys, first: u64, blocks: &mut [Block]) {
    let keys = set.keys(keys);
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
fn write_stream<S: Cipher>(set: S, keys: &S::Keys, numbers: &mut Numbers<S>, blocks: &mut [Block]) {
    let encrypted = set.encrypt(keys, numbers.take(set), [set.spread(Block::ZERO); BATCH]);
    for (encrypted, blocks) in encrypted.into_iter().zip(blocks.chunks_mut(S::LANES)) {
        set.store(blocks, encrypted);
    }
}

/// One round of all after the other, as none need wait for another.
impl<S: Rounds> Cipher for S {
    type Keys = [S::Register; 11];

    #[inline(always)]
    fn keys(self, keys: &RoundKeys) -> [S::Register; 11] {
        let mut wide = [self.spread(keys[0]); 11];
        for (wide, key) in wide.iter_mut().zip(keys) {
            *wide = self.spread(*key);
        }
        wide
    }

    #[inline(always)]
    fn encrypt<const COUNT: usize>(
        self,
        keys: &[S::Register; 11],
        mut state: [S::Register; COUNT],
        added: [S::Register; COUNT],
    ) -> [S::Register; COUNT] {
        for state in &mut state {
            *state = self.xor(*state, keys[0]);
        }
        for key in &keys[1..10] {
            state = state.map(|state| self.round(state, *key));
        }
        for (state, added) in state.iter_mut().zip(added) {
            *state = self.last_round(*state, self.xor(keys[10], added));
        }
        state
    }
}
