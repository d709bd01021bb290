//! The vectors of x86-64 and the kernels compiled for them.
#![allow(
    unsafe_code,
    reason = "vector intrinsics and functions compiled for more than the base instruction set"
)]

mod four_blocks;
mod one_block;
mod two_blocks;

use std::arch::x86_64::{__m128i, __m256i, __m512i};

use lanner_primitives::Block;

use super::steps::{self, EvaluatedGroup, GarbledGroup};
use super::vector::Vectorized;
use super::{Kernels, ROW};
use crate::circuit::Step;
use crate::half_gates::Row;

/// The tables of this machine, the fastest first.
pub(super) fn available() -> impl Iterator<Item = &'static Kernels> {
    let aes_ni = is_x86_feature_detected!("aes") && is_x86_feature_detected!("avx");
    let vaes = aes_ni && is_x86_feature_detected!("vaes") && is_x86_feature_detected!("avx2");
    let vaes512 = vaes && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
    [vaes512.then_some(&VAES512), vaes.then_some(&VAES256), aes_ni.then_some(&AES_NI)].into_iter().flatten()
}

/// Declares the table of kernels over vectors, compiled with the instructions that these need.
macro_rules! kernels {
    ($(#[$doc:meta])* $table:ident = $name:literal, $vector:ty, $features:literal) => {
        $(#[$doc])*
        const $table: Kernels = {
            #[target_feature(enable = $features)]
            fn garble(group: &mut GarbledGroup<'_>, steps: &[Step], rows: &mut [Row]) -> usize {
                // SAFETY: this function is compiled with the vector's instructions.
                let mut engine = unsafe { Vectorized::<$vector>::new(group.delta) };
                steps::garble(&mut engine, group, steps, rows)
            }
            #[target_feature(enable = $features)]
            fn evaluate(group: &mut EvaluatedGroup<'_>, steps: &[Step], rows: &[[u8; ROW]]) -> usize {
                // SAFETY: this function is compiled with the vector's instructions.
                let mut engine = unsafe { Vectorized::<$vector>::new(Block::ZERO) };
                steps::evaluate(&mut engine, group, steps, rows)
            }
            Kernels { name: $name, garble, evaluate }
        };
    };
}

kernels!(
    /// One block to an instruction.
    AES_NI = "AesNi", __m128i, "aes,avx"
);
kernels!(
    /// Two blocks to an instruction.
    VAES256 = "Vaes256", __m256i, "aes,vaes,avx2"
);
kernels!(
    /// Four blocks to an instruction.
    VAES512 = "Vaes512", __m512i, "aes,vaes,avx512f,avx512bw"
);

/// `_MM_SHUFFLE(1, 0, 3, 2)`: swaps the halves of a block.
const SWAP_HALVES: i32 = 0x4e;
