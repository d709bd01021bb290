//! Transposition on x86-64: with AVX-512 and the Galois field instructions, or the portable code compiled for AVX2.

use std::arch::x86_64::{
    __m512i, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512, _mm512_permutexvar_epi8, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_shuffle_i64x2, _mm512_storeu_si512, _mm512_unpackhi_epi8,
    _mm512_unpackhi_epi64, _mm512_unpacklo_epi8, _mm512_unpacklo_epi64,
};

use crate::Block;
use crate::arch::portable;

#[target_feature(enable = "avx2")]
pub(super) fn transpose_avx2(rows: &[Block], out: &mut [Block]) {
    portable::transpose(rows, out);
}

/// Four tiles, 512 columns, at a time; the tiles that are left one by one.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
pub(super) fn transpose_wide(rows: &[Block], out: &mut [Block]) {
    let stride = out.len() / 128;
    let whole = stride - stride % 4;
    let (quads, rest) = out.split_at_mut(128 * whole);
    for (tile, columns) in (0..).step_by(4).zip(quads.as_chunks_mut::<512>().0) {
        let mut bytes = [[_mm512_setzero_si512(); 16]; 8];
        for group in 0..16 {
            let eight = load_rows(rows, stride, 8 * group, tile);
            for (chunk, eight) in bytes.iter_mut().zip(transpose_quadwords(&eight)) {
                chunk[group] = transpose_bits(eight);
            }
        }
        for (chunk, columns) in bytes.into_iter().zip(columns.as_chunks_mut::<64>().0) {
            store_columns(&gather_columns(chunk), columns);
        }
    }
    for (tile, columns) in (whole..).zip(rest.chunks_exact_mut(128)) {
        portable::transpose_tile(rows, stride, tile, columns);
    }
}

/// Blocks `tile..tile + 4` of the rows from `first` on.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_rows(rows: &[Block], stride: usize, first: usize, tile: usize) -> [__m512i; 8] {
    let mut eight = [_mm512_setzero_si512(); 8];
    for (row, register) in (first..).zip(&mut eight) {
        let blocks = &rows[row * stride + tile..][..4];
        // SAFETY: reads the 64 bytes of the four blocks; unaligned loads are allowed.
        *register = unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) };
    }
    eight
}

/// Transposes 8 x 8 words of 64 bits: word `i` of result `c` is word `c` of input `i`.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose_quadwords(a: &[__m512i; 8]) -> [__m512i; 8] {
    let pairs = [
        _mm512_unpacklo_epi64(a[0], a[1]),
        _mm512_unpacklo_epi64(a[2], a[3]),
        _mm512_unpacklo_epi64(a[4], a[5]),
        _mm512_unpacklo_epi64(a[6], a[7]),
        _mm512_unpackhi_epi64(a[0], a[1]),
        _mm512_unpackhi_epi64(a[2], a[3]),
        _mm512_unpackhi_epi64(a[4], a[5]),
        _mm512_unpackhi_epi64(a[6], a[7]),
    ];
    let even = transpose_lanes([pairs[0], pairs[1], pairs[2], pairs[3]]);
    let odd = transpose_lanes([pairs[4], pairs[5], pairs[6], pairs[7]]);
    [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]]
}

/// Transposes 4 x 4 lanes of 128 bits: lane `i` of result `c` is lane `c` of input `i`.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose_lanes(a: [__m512i; 4]) -> [__m512i; 4] {
    let low = [_mm512_shuffle_i64x2::<0x44>(a[0], a[1]), _mm512_shuffle_i64x2::<0x44>(a[2], a[3])];
    let high = [_mm512_shuffle_i64x2::<0xee>(a[0], a[1]), _mm512_shuffle_i64x2::<0xee>(a[2], a[3])];
    [
        _mm512_shuffle_i64x2::<0x88>(low[0], low[1]),
        _mm512_shuffle_i64x2::<0xdd>(low[0], low[1]),
        _mm512_shuffle_i64x2::<0x88>(high[0], high[1]),
        _mm512_shuffle_i64x2::<0xdd>(high[0], high[1]),
    ]
}

/// Of 64 columns of eight rows, a word of 64 bits each, makes 64 bytes: a column's bits.
///
/// The bytes are brought together by column, last row first, since that is how the affine instruction numbers the rows of
/// its matrix; multiplied with the eight unit vectors the matrix gives its columns.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi,gfni")]
fn transpose_bits(eight: __m512i) -> __m512i {
    // SAFETY: reads the 64 bytes of the constant; unaligned loads are allowed.
    let by_column = unsafe { _mm512_loadu_si512(BY_COLUMN.as_ptr().cast()) };
    let matrices = _mm512_permutexvar_epi8(by_column, eight);
    let units = _mm512_set1_epi64(0x8040_2010_0804_0201_u64.cast_signed());
    _mm512_gf2p8affine_epi64_epi8::<0>(units, matrices)
}

/// Byte `8 * j + (7 - i)` of the result is byte `8 * i + j` of the input.
const BY_COLUMN: [u8; 64] = {
    let mut index = [0; 64];
    let mut at = 0;
    while at < 64 {
        index[at] = (8 * (7 - at % 8) + at / 8) as u8;
        at += 1;
    }
    index
};

/// Gathers the 16 bytes of each of 64 columns: lane `l` of result `n` is column `16 * l + n`.
///
/// Each round interleaves the first half of the registers with the second: four of them exchange the four bits of a
/// register's number with those of a byte's place in its lane.
#[inline]
#[target_feature(enable = "avx512bw")]
fn gather_columns(mut registers: [__m512i; 16]) -> [__m512i; 16] {
    for _ in 0..4 {
        let mut shuffled = registers;
        for i in 0..8 {
            shuffled[2 * i] = _mm512_unpacklo_epi8(registers[i], registers[i + 8]);
            shuffled[2 * i + 1] = _mm512_unpackhi_epi8(registers[i], registers[i + 8]);
        }
        registers = shuffled;
    }
    registers
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_columns(registers: &[__m512i; 16], columns: &mut [Block; 64]) {
    let mut ordered = [_mm512_setzero_si512(); 16];
    for (n, four) in registers.as_chunks::<4>().0.iter().enumerate() {
        for (lane, register) in transpose_lanes(*four).into_iter().enumerate() {
            ordered[4 * lane + n] = register;
        }
    }
    for (register, four) in ordered.into_iter().zip(columns.as_chunks_mut::<4>().0) {
        // SAFETY: writes the 64 bytes of the four blocks; unaligned stores are allowed.
        unsafe { _mm512_storeu_si512(four.as_mut_ptr().cast(), register) };
    }
}
