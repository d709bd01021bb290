//! The correlation-robust hash where a few low bits of each are of use: they are taken from the registers.

use zeroize::Zeroizing;

use super::encryption::BATCH;
use super::hash::hash_groups;
use super::numbers::Numbers;
use crate::Block;
use crate::arch::registers::{Cipher, MAX_LANES};
use crate::arch::wide::{MAX_ROWS, Numbering, RoundKeys};

/// Writes the low word of `H(x[j] xor offset, first + j)` to `out[j]`, of as many as there are of both.
#[inline(always)]
pub(in crate::arch) fn hash_low_words<S: Cipher>(
    set: S,
    keys: &RoundKeys,
    x: &[Block],
    offset: Block,
    first: u64,
    out: &mut [u64],
) {
    let (keys, offset) = (set.keys(keys), set.spread(offset));
    let mut tweaks = Numbers::new(set, Numbering::From(first));
    let count = x.len().min(out.len());
    let (mut xs, mut outs) =
        (x[..count].chunks_exact(BATCH * S::LANES), out[..count].chunks_exact_mut(BATCH * S::LANES));
    for (x, out) in (&mut xs).zip(&mut outs) {
        low_words_of_batch(set, &keys, x, offset, &mut tweaks, out);
    }
    let (x, out) = (xs.remainder(), outs.into_remainder());
    if !x.is_empty() {
        let mut filled = Zeroizing::new([Block::ZERO; BATCH * MAX_LANES]);
        let mut made = Zeroizing::new([0; BATCH * MAX_LANES]);
        filled[..x.len()].copy_from_slice(x);
        let (filled, made) = (&filled[..BATCH * S::LANES], &mut made[..BATCH * S::LANES]);
        low_words_of_batch(set, &keys, filled, offset, &mut tweaks, made);
        out.copy_from_slice(&made[..x.len()]);
    }
}

/// The low words of the hashes of a batch of blocks.
#[inline(always)]
fn low_words_of_batch<S: Cipher>(
    set: S,
    keys: &S::Keys,
    x: &[Block],
    offset: S::Register,
    tweaks: &mut Numbers<S>,
    out: &mut [u64],
) {
    let mut masked = [offset; BATCH];
    for (masked, x) in masked.iter_mut().zip(x.chunks_exact(S::LANES)) {
        *masked = set.xor(offset, set.load(x));
    }
    let hashed = hash_groups(set, keys, masked, tweaks.take(set));
    for (pair, out) in hashed.as_chunks::<2>().0.iter().zip(out.chunks_exact_mut(2 * S::LANES)) {
        set.store_words(out, set.low_words(pair[0], pair[1]));
    }
}

/// Bit `j` of word `rows v + r` of `out` becomes bit `r` of `H(x[v] xor offsets[j], first + v)`, for as many offsets as there are, 8 or
/// 16, and at most [`MAX_ROWS`] rows.
#[inline(always)]
pub(in crate::arch) fn hash_runs_to_bits<S: Cipher>(
    set: S,
    keys: &RoundKeys,
    x: &[Block],
    offsets: &[Block],
    first: u64,
    rows: usize,
    out: &mut [u16],
) {
    const { assert!(MAX_ROWS == 4) };
    match rows {
        1 => hash_runs_of::<S, 1>(set, keys, x, offsets, first, out.as_chunks_mut().0),
        2 => hash_runs_of::<S, 2>(set, keys, x, offsets, first, out.as_chunks_mut().0),
        3 => hash_runs_of::<S, 3>(set, keys, x, offsets, first, out.as_chunks_mut().0),
        _ => hash_runs_of::<S, 4>(set, keys, x, offsets, first, out.as_chunks_mut().0),
    }
}

#[inline(always)]
fn hash_runs_of<S: Cipher, const ROWS: usize>(
    set: S,
    keys: &RoundKeys,
    x: &[Block],
    offsets: &[Block],
    first: u64,
    out: &mut [[u16; ROWS]],
) {
    // Registers of a run.
    match offsets.len() / S::LANES {
        2 => hash_runs::<S, BATCH, ROWS>(set, keys, x, offsets, 2, first, out),
        4 => hash_runs::<S, BATCH, ROWS>(set, keys, x, offsets, 4, first, out),
        8 => hash_runs::<S, BATCH, ROWS>(set, keys, x, offsets, 8, first, out),
        16 => hash_runs::<S, LONGEST_RUN, ROWS>(set, keys, x, offsets, 16, first, out),
        _ => {}
    }
}

/// Hashes runs of `groups` registers, `COUNT` registers at a time.
#[inline(always)]
fn hash_runs<S: Cipher, const COUNT: usize, const ROWS: usize>(
    set: S,
    keys: &RoundKeys,
    x: &[Block],
    offsets: &[Block],
    groups: usize,
    first: u64,
    out: &mut [[u16; ROWS]],
) {
    let (keys, count) = (set.keys(keys), x.len().min(out.len()));
    let (x, out) = (&x[..count], &mut out[..count]);
    let zero = set.spread(Block::ZERO);
    let mut run = [zero; LONGEST_RUN];
    for (register, offsets) in run.iter_mut().zip(offsets.chunks(S::LANES)) {
        *register = set.load(offsets);
    }
    let mut tweak = first;
    for (x, out) in x.chunks(COUNT / groups).zip(out.chunks_mut(COUNT / groups)) {
        let (mut masked, mut tweaks) = ([zero; COUNT], [zero; COUNT]);
        for (at, (masked, tweaks)) in masked.iter_mut().zip(&mut tweaks).enumerate() {
            let x = x.get(at / groups).copied().unwrap_or_default();
            *masked = set.xor(set.spread(x), run[at % groups]);
            *tweaks = set.spread(Block(u128::from(tweak.wrapping_add((at / groups) as u64))));
        }
        tweak = tweak.wrapping_add((COUNT / groups) as u64);
        let hashed = hash_groups(set, &keys, masked, tweaks);
        for (out, run) in out.iter_mut().zip(hashed.chunks(groups)) {
            *out = low_rows(set, run);
        }
    }
}

/// Bit `r` of each block of a run, for every row `r`.
#[inline(always)]
fn low_rows<S: Cipher, const ROWS: usize>(set: S, run: &[S::Register]) -> [u16; ROWS] {
    let mut bits = [0; ROWS];
    for (at, pair) in (0..).step_by(2 * S::LANES).zip(run.as_chunks::<2>().0) {
        let words = set.low_words(pair[0], pair[1]);
        for (row, bits) in (0..).zip(&mut bits) {
            *bits |= (set.bits_of(words, row) as u16) << at;
        }
    }
    bits
}

/// Registers of 16 offsets, a lane each.
const LONGEST_RUN: usize = 16;
