//! The correlation-robust hash where a few low bits of each are of use: they are taken from the registers.

use std::arch::x86_64::{__m512i, _mm512_add_epi64, _mm512_setzero_si512, _mm512_xor_si512};

use zeroize::Zeroizing;

use super::hash::{BATCH, Tweaks, hash_groups};
use super::registers::{LANES, bits_of, load, low_words, spread, store_words};
use super::vaes::broadcast;
use crate::Block;
use crate::arch::wide::{MAX_ROWS, Numbering, RoundKeys};

/// Words of a register.
const WORDS: usize = 2 * LANES;

/// Writes the low word of `H(x[j] xor offset, first + j)` to `out[j]`, of as many as there are of both.
#[target_feature(enable = "avx512f,vaes")]
pub(super) fn hash_low_words(keys: &RoundKeys, x: &[Block], offset: Block, first: u64, out: &mut [u64]) {
    let (keys, offset) = (broadcast(keys), spread(offset));
    let mut tweaks = Tweaks::new(Numbering::From(first));
    let count = x.len().min(out.len());
    let ((x, x_few), (out, out_few)) = (x[..count].as_chunks(), out[..count].as_chunks_mut());
    for (x, out) in x.iter().zip(out) {
        hash_batch(&keys, x, offset, &mut tweaks, out);
    }
    if !x_few.is_empty() {
        let mut filled = Zeroizing::new([Block::ZERO; BATCH * LANES]);
        let mut made = Zeroizing::new([0; BATCH * LANES]);
        filled[..x_few.len()].copy_from_slice(x_few);
        hash_batch(&keys, &filled, offset, &mut tweaks, &mut made);
        out_few.copy_from_slice(&made[..x_few.len()]);
    }
}

/// The low words of the hashes of as many blocks as are hashed at once.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn hash_batch(
    keys: &[__m512i; 11],
    x: &[Block; BATCH * LANES],
    offset: __m512i,
    tweaks: &mut Tweaks,
    out: &mut [u64; BATCH * LANES],
) {
    let mut masked = [offset; BATCH];
    for (masked, x) in masked.iter_mut().zip(x.as_chunks().0) {
        *masked = _mm512_xor_si512(offset, load(x));
    }
    let hashed = hash_groups(keys, masked, tweaks.next());
    for (pair, out) in hashed.as_chunks::<2>().0.iter().zip(out.as_chunks_mut().0) {
        store_words(out, low_words(pair[0], pair[1]));
    }
}

/// Bit `j` of word `rows v + r` of `out` becomes bit `r` of `H(x[v] xor offsets[j], first + v)`, for as many offsets as there are, 8 or
/// 16, and at most [`MAX_ROWS`] rows.
#[target_feature(enable = "avx512f,vaes")]
pub(super) fn hash_runs_to_bits(
    keys: &RoundKeys,
    x: &[Block],
    offsets: &[Block],
    first: u64,
    rows: usize,
    out: &mut [u16],
) {
    const { assert!(MAX_ROWS == 4) };
    match rows {
        1 => hash_runs_of::<1>(keys, x, offsets, first, out.as_chunks_mut().0),
        2 => hash_runs_of::<2>(keys, x, offsets, first, out.as_chunks_mut().0),
        3 => hash_runs_of::<3>(keys, x, offsets, first, out.as_chunks_mut().0),
        _ => hash_runs_of::<4>(keys, x, offsets, first, out.as_chunks_mut().0),
    }
}

#[target_feature(enable = "avx512f,vaes")]
fn hash_runs_of<const ROWS: usize>(
    keys: &RoundKeys,
    x: &[Block],
    offsets: &[Block],
    first: u64,
    out: &mut [[u16; ROWS]],
) {
    match offsets.as_chunks::<LANES>().0 {
        [a, b] => hash_runs::<2, 4, ROWS>(keys, x, [a, b], first, out),
        [a, b, c, d] => hash_runs::<4, 2, ROWS>(keys, x, [a, b, c, d], first, out),
        _ => {}
    }
}

/// Hashes runs of `GROUPS` registers, `VALUES` of them at a time: [`BATCH`] registers.
#[target_feature(enable = "avx512f,vaes")]
fn hash_runs<const GROUPS: usize, const VALUES: usize, const ROWS: usize>(
    keys: &RoundKeys,
    x: &[Block],
    offsets: [&[Block; LANES]; GROUPS],
    first: u64,
    out: &mut [[u16; ROWS]],
) {
    let mut runs = Runs {
        keys: broadcast(keys),
        offsets: [_mm512_setzero_si512(); GROUPS],
        tweak: spread(Block(u128::from(first))),
    };
    for (register, offsets) in runs.offsets.iter_mut().zip(offsets) {
        *register = load(offsets);
    }
    let ((x, x_few), (out, out_few)) = (x.as_chunks::<VALUES>(), out.as_chunks_mut::<VALUES>());
    for (x, out) in x.iter().zip(out) {
        *out = runs.next(x);
    }
    if !x_few.is_empty() {
        let mut filled = Zeroizing::new([Block::ZERO; VALUES]);
        filled.iter_mut().zip(x_few).for_each(|(slot, x)| *slot = *x);
        out_few.iter_mut().zip(runs.next::<VALUES, ROWS>(&filled)).for_each(|(out, bits)| *out = bits);
    }
}

/// Runs one after the other.
struct Runs<const GROUPS: usize> {
    keys: [__m512i; 11],
    offsets: [__m512i; GROUPS],
    /// That of the next run, in each lane.
    tweak: __m512i,
}

impl<const GROUPS: usize> Runs<GROUPS> {
    /// The bits of the next runs.
    #[inline]
    #[target_feature(enable = "avx512f,vaes")]
    fn next<const VALUES: usize, const ROWS: usize>(&mut self, x: &[Block; VALUES]) -> [[u16; ROWS]; VALUES] {
        const { assert!(GROUPS * VALUES == BATCH && GROUPS.is_multiple_of(2)) };
        let (mut masked, mut tweaks) = ([_mm512_setzero_si512(); BATCH], [_mm512_setzero_si512(); BATCH]);
        for (value, x) in x.iter().enumerate() {
            for (group, offsets) in self.offsets.iter().enumerate() {
                masked[value * GROUPS + group] = _mm512_xor_si512(spread(*x), *offsets);
                tweaks[value * GROUPS + group] = self.tweak;
            }
            self.tweak = _mm512_add_epi64(self.tweak, spread(Block(1)));
        }
        let hashed = hash_groups(&self.keys, masked, tweaks);
        let mut bits = [[0; ROWS]; VALUES];
        for (value, bits) in bits.iter_mut().enumerate() {
            for half in 0..GROUPS / 2 {
                let at = value * GROUPS + 2 * half;
                let words = low_words(hashed[at], hashed[at + 1]);
                for (row, bits) in bits.iter_mut().enumerate() {
                    *bits |= u16::from(bits_of(words, row)) << (WORDS * half);
                }
            }
        }
        bits
    }
}
