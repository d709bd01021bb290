//! x86-64: the portable loops compiled for AVX2, and some for AVX-512F.

use super::portable::{self, Sum};
use super::table::{Loops, ROWS};

/// The tables of this machine, the fastest first.
pub(super) fn available<T: Copy + Default, S: Sum<T> + Default, const N: usize>()
-> impl Iterator<Item = Loops<T, S, N>> {
    let avx2 = Loops {
        add_combinations: add_combinations::<T, S>,
        add_rows: add_rows::<T, S>,
        add_product: add_product_avx2::<T, S, N>,
    };
    let avx512 = Loops { add_product: add_product_avx512::<T, S, N>, ..avx2 };
    let has_avx2 = is_x86_feature_detected!("avx2");
    let has_avx512 = has_avx2 && is_x86_feature_detected!("avx512f");
    [has_avx512.then_some(avx512), has_avx2.then_some(avx2)].into_iter().flatten()
}

#[target_feature(enable = "avx512f")]
fn add_product_avx512<T: Copy + Default, S: Sum<T> + Default, const N: usize>(
    weights: &[[T; ROWS]],
    rows: &[T],
    length: usize,
    sums: &mut [S],
) {
    portable::add_product::<T, S, N>(weights, rows, length, sums);
}

#[target_feature(enable = "avx2")]
fn add_product_avx2<T: Copy + Default, S: Sum<T> + Default, const N: usize>(
    weights: &[[T; ROWS]],
    rows: &[T],
    length: usize,
    sums: &mut [S],
) {
    portable::add_product::<T, S, N>(weights, rows, length, sums);
}

#[target_feature(enable = "avx2")]
fn add_combinations<T: Copy, S: Sum<T>>(
    weights: &[T],
    stride: usize,
    rows: &[T],
    length: usize,
    sums: &mut [S],
) {
    portable::add_combinations(weights, stride, rows, length, sums);
}

#[target_feature(enable = "avx2")]
fn add_rows<T: Copy, S: Sum<T>>(input: &[T], weight: &[T], output: &mut [S]) {
    portable::add_rows(input, weight, output);
}
