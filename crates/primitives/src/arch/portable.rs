//! Portable kernels: the reference for the accelerated ones.

use super::table::{Instructions, Kernels};
use crate::Block;

pub(super) const KERNELS: Kernels = Kernels {
    instructions: Instructions::PORTABLE,
    transpose,
    add_at_siblings,
    add_by_parents,
    low_bits,
    bit_of_words,
    double_and_add,
    field_dot,
    cipher: None,
};

/// Transposes tile by tile of 128 columns.
#[inline(always)]
pub(super) fn transpose(rows: &[Block], out: &mut [Block]) {
    let stride = out.len() / 128;
    for (tile, columns) in out.chunks_exact_mut(128).enumerate() {
        transpose_tile(rows, stride, tile, columns);
    }
}

/// Transposes the 128 x 128 bits of block `tile` of every row into the 128 blocks of `out`.
///
/// The halves of the blocks are swapped off the diagonal, then each quadrant of 64 x 64 bits is transposed by swapping
/// ever smaller squares (Warren, Hacker's Delight, section 7-3).
#[inline(always)]
pub(super) fn transpose_tile(rows: &[Block], stride: usize, tile: usize, out: &mut [Block]) {
    let (mut low, mut high) = ([0_u64; 128], [0_u64; 128]);
    for r in 0..64 {
        let (upper, lower) = (rows[r * stride + tile].0, rows[(r + 64) * stride + tile].0);
        low[r] = upper as u64;
        low[r + 64] = (upper >> 64) as u64;
        high[r] = lower as u64;
        high[r + 64] = (lower >> 64) as u64;
    }
    for half in [&mut low, &mut high] {
        swap_squares::<32>(half, 0x0000_0000_ffff_ffff);
        swap_squares::<16>(half, 0x0000_ffff_0000_ffff);
        swap_squares::<8>(half, 0x00ff_00ff_00ff_00ff);
        swap_squares::<4>(half, 0x0f0f_0f0f_0f0f_0f0f);
        swap_squares::<2>(half, 0x3333_3333_3333_3333);
        swap_squares::<1>(half, 0x5555_5555_5555_5555);
    }
    for (j, column) in out.iter_mut().enumerate() {
        *column = Block(u128::from(high[j]) << 64 | u128::from(low[j]));
    }
}

/// Swaps the off-diagonal squares of side `S` in every square of side `2 S`; `mask` has the columns of the left ones.
#[inline(always)]
fn swap_squares<const S: usize>(rows: &mut [u64; 128], mask: u64) {
    for group in rows.chunks_exact_mut(2 * S) {
        let (upper, lower) = group.split_at_mut(S);
        for (a, b) in upper.iter_mut().zip(lower) {
            let swapped = (*a >> S ^ *b) & mask;
            *b ^= swapped;
            *a ^= swapped << S;
        }
    }
}

/// Adds to every block its half's value under a mask.
pub(super) fn add_at_siblings(blocks: &mut [Block], place: usize, values: [Block; 2]) {
    let (left, right) = blocks.split_at_mut(blocks.len() / 2);
    for (number, (left, right)) in left.iter_mut().zip(right).enumerate() {
        let mask = Block::mask(number == place);
        *left ^= values[0] & mask;
        *right ^= values[1] & mask;
    }
}

/// Adds a value to siblings under a mask of their sum's low bit.
pub(super) fn add_by_parents(blocks: &mut [Block], value: Block) {
    let (left, right) = blocks.split_at_mut(blocks.len() / 2);
    for (left, right) in left.iter_mut().zip(right) {
        let value = Block::mask((*left ^ *right).lsb()) & value;
        *left ^= value;
        *right ^= value;
    }
}

/// The low bits of at most 64 blocks.
pub(super) fn low_bits(blocks: &[Block]) -> u64 {
    blocks.iter().rev().fold(0, |word, block| word << 1 | block.0 as u64 & 1)
}

pub(super) fn bit_of_words(words: &[u64], bit: u32) -> u64 {
    words.iter().rev().fold(0, |gathered, word| gathered << 1 | word >> bit & 1)
}

/// The sums of blocks and the doubles of others.
pub(super) fn double_and_add(x: &mut [Block], y: &[Block]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x = x.double() ^ *y);
}

/// The sum of the products of the elements of `GF(2^128)` at equal places, below the shorter length.
pub(super) fn field_dot(a: &[Block], b: &[Block]) -> Block {
    let [mut low, mut middle, mut high] = [[0; 2]; 3];
    for (a, b) in a.iter().zip(b) {
        let [a, b] = [a, b].map(|block| [block.0 as u64, (block.0 >> 64) as u64]);
        // Karatsuba: three products in place of four.
        let terms = [[a[0], b[0]], [a[0] ^ a[1], b[0] ^ b[1]], [a[1], b[1]]];
        for (sum, [a, b]) in [&mut low, &mut middle, &mut high].into_iter().zip(terms) {
            *sum = [sum[0] ^ low_word(a, b), sum[1] ^ high_word(a, b)];
        }
    }
    let [low, middle, high] = [low, middle, high].map(|[low, high]| u128::from(high) << 64 | u128::from(low));
    let middle = middle ^ low ^ high;
    reduce(Block(low ^ middle << 64), Block(high ^ middle >> 64))
}

/// The lower word of the product of two polynomials over `GF(2)`, by products of integers whose bits are four places apart: at most 16 of
/// them meet at a place, and only at the highest one do so many, from where nothing carries into the word.
fn low_word(a: u64, b: u64) -> u64 {
    const EVERY_FOURTH: u64 = 0x1111_1111_1111_1111;
    let parts = |x: u64| [0, 1, 2, 3].map(|i| x & EVERY_FOURTH << i);
    let (a, b) = (parts(a), parts(b));
    (0..4).fold(0, |word, place| {
        let sum = (0..4).fold(0, |sum, i| sum ^ a[i].wrapping_mul(b[(4 + place - i) % 4]));
        word | sum & EVERY_FOURTH << place
    })
}

/// The higher word, which is the lower one of the polynomials backwards.
fn high_word(a: u64, b: u64) -> u64 {
    low_word(a.reverse_bits(), b.reverse_bits()).reverse_bits() >> 1
}

/// The element `low + X^128 * high`.
pub(super) fn reduce(low: Block, high: Block) -> Block {
    let times = |x: u128| x ^ x << 1 ^ x << 2 ^ x << 7;
    // What goes beyond the highest bit once more.
    let beyond = high.0 >> 127 ^ high.0 >> 126 ^ high.0 >> 121;
    Block(low.0 ^ times(high.0) ^ times(beyond))
}
