//! x86-64: the portable loops compiled for AVX2 and for AVX-512.

use super::portable::{self, Word};
use super::table::Loops;

/// The tables of this machine, the fastest first.
pub(super) fn available<T: Word, const ROWS: usize, const COLUMNS: usize>()
-> impl Iterator<Item = Loops<T, ROWS, COLUMNS>> {
    let avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq");
    let avx2 = is_x86_feature_detected!("avx2");
    let tables = [
        avx512.then_some(Loops { add_rows: add_rows_avx512, dot: dot_avx512 }),
        avx2.then_some(Loops { add_rows: add_rows_avx2, dot: dot_avx2 }),
    ];
    tables.into_iter().flatten()
}

#[target_feature(enable = "avx512f,avx512dq")]
fn add_rows_avx512<T: Word, const ROWS: usize, const COLUMNS: usize>(
    weights: &[[T; ROWS]],
    values: &[[T; COLUMNS]],
    sums: &mut [[T; COLUMNS]; ROWS],
) {
    portable::add_rows(weights, values, sums);
}

#[target_feature(enable = "avx2")]
fn add_rows_avx2<T: Word, const ROWS: usize, const COLUMNS: usize>(
    weights: &[[T; ROWS]],
    values: &[[T; COLUMNS]],
    sums: &mut [[T; COLUMNS]; ROWS],
) {
    portable::add_rows(weights, values, sums);
}

#[target_feature(enable = "avx512f,avx512dq")]
fn dot_avx512<T: Word>(weights: &[T], values: &[T]) -> T {
    portable::dot(weights, values)
}

#[target_feature(enable = "avx2")]
fn dot_avx2<T: Word>(weights: &[T], values: &[T]) -> T {
    portable::dot(weights, values)
}
