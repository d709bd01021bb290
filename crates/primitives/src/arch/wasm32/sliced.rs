//! AES-128 of eight blocks at a time, by operations on bits alone: WebAssembly has no instruction for it, and tables would show secrets to the cache.
//!
//! Byte `i` of register `j` has bit `j` of byte `i` of all eight blocks, block `k` in bit `k` (Kaesper and Schwabe, "Faster and
//! timing-attack resistant AES-GCM", 2009, section 4).

use std::arch::wasm32::*;

use crate::Block;
use crate::arch::wide::RoundKeys;

/// Blocks that are encrypted at once.
pub(super) const SLICES: usize = 8;

/// Bits of the same place of every byte of all blocks, or the blocks themselves.
pub(super) type Slices = [v128; SLICES];

/// The round keys of a schedule, each as the slices of eight blocks that are equal to it. Those behind the first have the constant of the substitution,
/// which neither rows nor columns change.
pub(super) fn keys(keys: &RoundKeys) -> [Slices; 11] {
    std::array::from_fn(|round| {
        let constant = if round == 0 { 0 } else { SUBSTITUTE_OF_ZERO };
        let key = v128_xor(register(keys[round]), u8x16_splat(constant));
        transposed([key; SLICES])
    })
}

/// The encryptions of eight blocks.
#[inline(always)]
pub(super) fn encrypt(keys: &[Slices; 11], blocks: Slices) -> Slices {
    let mut state = added(transposed(blocks), &keys[0]);
    for key in &keys[1..10] {
        state = added(columns_mixed(rows_shifted(substituted(state))), key);
    }
    transposed(added(rows_shifted(substituted(state)), &keys[10]))
}

/// The substitutes of the bytes of a word, in their places.
pub(super) fn substituted_word(word: u32) -> u32 {
    let bytes = u32x4_splat(word);
    let sliced = transposed(substituted(transposed([bytes; SLICES])));
    u32x4_extract_lane::<0>(v128_xor(sliced[0], u8x16_splat(SUBSTITUTE_OF_ZERO)))
}

/// A block in a register.
#[inline(always)]
pub(super) fn register(block: Block) -> v128 {
    u64x2(block.0 as u64, (block.0 >> 64) as u64)
}

/// The substitute of a byte of zeros.
const SUBSTITUTE_OF_ZERO: u8 = 0x63;

/// Transposes the bits `(j, k)` of byte `i` of all registers, which is its own inverse.
#[inline(always)]
fn transposed(mut slices: Slices) -> Slices {
    for pair in [[0, 1], [2, 3], [4, 5], [6, 7]] {
        swap::<1>(&mut slices, pair, 0x55);
    }
    for pair in [[0, 2], [1, 3], [4, 6], [5, 7]] {
        swap::<2>(&mut slices, pair, 0x33);
    }
    for pair in [[0, 4], [1, 5], [2, 6], [3, 7]] {
        swap::<4>(&mut slices, pair, 0x0f);
    }
    slices
}

/// Swaps the bits of the second register under a mask with those of the first that are `BY` places higher.
#[inline(always)]
fn swap<const BY: u32>(slices: &mut Slices, [first, second]: [usize; 2], mask: u8) {
    let swapped = v128_and(v128_xor(u64x2_shr(slices[first], BY), slices[second]), u8x16_splat(mask));
    slices[second] = v128_xor(slices[second], swapped);
    slices[first] = v128_xor(slices[first], u64x2_shl(swapped, BY));
}

#[inline(always)]
fn added(mut slices: Slices, key: &Slices) -> Slices {
    slices.iter_mut().zip(key).for_each(|(slice, key)| *slice = v128_xor(*slice, *key));
    slices
}

/// Byte `4 c + r` from column `c + r`.
#[inline(always)]
fn rows_shifted(slices: Slices) -> Slices {
    slices.map(|x| i8x16_shuffle::<0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11>(x, x))
}

/// Every column times `2 + 3 X + X^2 + X^3`: with `b` the sum of a byte and the one below it, `2 b`, the byte below it, and the `b` two
/// below it.
#[inline(always)]
fn columns_mixed(slices: Slices) -> Slices {
    let below = slices.map(|x| i8x16_shuffle::<1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12>(x, x));
    let sums = added(slices, &below);
    let two_below = sums.map(|x| i8x16_shuffle::<2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13>(x, x));
    let high = sums[7];
    let doubled = [
        high,
        v128_xor(sums[0], high),
        sums[1],
        v128_xor(sums[2], high),
        v128_xor(sums[3], high),
        sums[4],
        sums[5],
        sums[6],
    ];
    added(added(doubled, &below), &two_below)
}

/// Sums and products of bits.
macro_rules! gates {
    ($($to:ident = $a:ident $gate:tt $b:ident;)*) => {$(let $to = gates!(@ $a $gate $b);)*};
    (@ $a:ident ^ $b:ident) => { v128_xor($a, $b) };
    (@ $a:ident & $b:ident) => { v128_and($a, $b) };
}

/// The substitutes of all bytes, but for the constant that is added to each: the circuit of Boyar and Peralta ("A small depth-16 circuit for the AES
/// S-box", 2012, figures 5 to 8), in the names that it has there, with its four negations left out.
#[inline(always)]
#[rustfmt::skip]
#[allow(clippy::many_single_char_names, clippy::similar_names, clippy::too_many_lines, reason = "the paper's")]
fn substituted([x7, x6, x5, x4, x3, x2, x1, x0]: Slices) -> Slices {
    gates! {
        y14 = x3 ^ x5; y13 = x0 ^ x6; y9 = x0 ^ x3; y8 = x0 ^ x5; t0 = x1 ^ x2; y1 = t0 ^ x7; y4 = y1 ^ x3;
        y12 = y13 ^ y14; y2 = y1 ^ x0; y5 = y1 ^ x6; y3 = y5 ^ y8; t1 = x4 ^ y12; y15 = t1 ^ x5;
        y20 = t1 ^ x1; y6 = y15 ^ x7; y10 = y15 ^ t0; y11 = y20 ^ y9; y7 = x7 ^ y11; y17 = y10 ^ y11;
        y19 = y10 ^ y8; y16 = t0 ^ y11; y21 = y13 ^ y16; y18 = x0 ^ y16; t2 = y12 & y15; t3 = y3 & y6;
        t4 = t3 ^ t2; t5 = y4 & x7; t6 = t5 ^ t2; t7 = y13 & y16; t8 = y5 & y1; t9 = t8 ^ t7; t10 = y2 & y7;
        t11 = t10 ^ t7; t12 = y9 & y11; t13 = y14 & y17; t14 = t13 ^ t12; t15 = y8 & y10; t16 = t15 ^ t12;
        t17 = t4 ^ t14; t18 = t6 ^ t16; t19 = t9 ^ t14; t20 = t11 ^ t16; t21 = t17 ^ y20; t22 = t18 ^ y19;
        t23 = t19 ^ y21; t24 = t20 ^ y18; t25 = t21 ^ t22; t26 = t21 & t23; t27 = t24 ^ t26; t28 = t25 & t27;
        t29 = t28 ^ t22; t30 = t23 ^ t24; t31 = t22 ^ t26; t32 = t31 & t30; t33 = t32 ^ t24; t34 = t23 ^ t33;
        t35 = t27 ^ t33; t36 = t24 & t35; t37 = t36 ^ t34; t38 = t27 ^ t36; t39 = t29 & t38; t40 = t25 ^ t39;
        t41 = t40 ^ t37; t42 = t29 ^ t33; t43 = t29 ^ t40; t44 = t33 ^ t37; t45 = t42 ^ t41; z0 = t44 & y15;
        z1 = t37 & y6; z2 = t33 & x7; z3 = t43 & y16; z4 = t40 & y1; z5 = t29 & y7; z6 = t42 & y11;
        z7 = t45 & y17; z8 = t41 & y10; z9 = t44 & y12; z10 = t37 & y3; z11 = t33 & y4; z12 = t43 & y13;
        z13 = t40 & y5; z14 = t29 & y2; z15 = t42 & y9; z16 = t45 & y14; z17 = t41 & y8; t46 = z15 ^ z16;
        t47 = z10 ^ z11; t48 = z5 ^ z13; t49 = z9 ^ z10; t50 = z2 ^ z12; t51 = z2 ^ z5; t52 = z7 ^ z8;
        t53 = z0 ^ z3; t54 = z6 ^ z7; t55 = z16 ^ z17; t56 = z12 ^ t48; t57 = t50 ^ t53; t58 = z4 ^ t46;
        t59 = z3 ^ t54; t60 = t46 ^ t57; t61 = z14 ^ t57; t62 = t52 ^ t58; t63 = t49 ^ t58; t64 = z4 ^ t59;
        t65 = t61 ^ t62; t66 = z1 ^ t63; s0 = t59 ^ t63; s6 = t56 ^ t62; s7 = t48 ^ t60; t67 = t64 ^ t65;
        s3 = t53 ^ t66; s4 = t51 ^ t66; s5 = t47 ^ t65; s1 = t64 ^ s3; s2 = t55 ^ t67;
    }
    [s7, s6, s5, s4, s3, s2, s1, s0]
}
