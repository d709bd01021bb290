//! The loops themselves, in the form that compilers turn into vector instructions.
#![allow(
    clippy::inline_always,
    reason = "a function gets its caller's processor features only where it is inlined"
)]

use super::table::{Loops, ROWS};

impl<T: Copy + Default, S: Sum<T> + Default, const N: usize> Loops<T, S, N> {
    /// Plain Rust.
    pub(super) const PORTABLE: Self =
        Self { add_combinations, add_rows, add_product: add_product::<T, S, N> };
}

/// A sum of products of numbers `T`.
pub trait Sum<T>: Copy {
    /// The sum and one more product.
    #[must_use]
    fn plus(self, a: T, b: T) -> Self;
}

impl Sum<Self> for f32 {
    #[inline(always)]
    fn plus(self, a: Self, b: Self) -> Self {
        self + a * b
    }
}

impl Sum<Self> for f64 {
    #[inline(always)]
    fn plus(self, a: Self, b: Self) -> Self {
        self + a * b
    }
}

impl Sum<Self> for i32 {
    #[inline(always)]
    fn plus(self, a: Self, b: Self) -> Self {
        self + a * b
    }
}

impl Sum<i32> for i64 {
    #[inline(always)]
    fn plus(self, a: i32, b: i32) -> Self {
        self + Self::from(a) * Self::from(b)
    }
}

impl Sum<Self> for i64 {
    #[inline(always)]
    fn plus(self, a: Self, b: Self) -> Self {
        self + a * b
    }
}

impl Sum<Self> for i128 {
    #[inline(always)]
    fn plus(self, a: Self, b: Self) -> Self {
        self + a * b
    }
}

/// See [`super::add_combinations`]. Two sums and four rows at a time, so that each load serves several products.
#[inline(always)]
pub(super) fn add_combinations<T: Copy, S: Sum<T>>(
    weights: &[T],
    stride: usize,
    rows: &[T],
    length: usize,
    sums: &mut [S],
) {
    let count = rows.len() / length;
    let mut pairs = sums.chunks_exact_mut(2 * length);
    let mut first = 0;
    for pair in &mut pairs {
        let (upper, lower) = pair.split_at_mut(length);
        add_two(&weights[first..][..count], &weights[first + stride..][..count], rows, upper, lower);
        first += 2 * stride;
    }
    let last = pairs.into_remainder();
    if !last.is_empty() {
        add_one(&weights[first..][..count], rows, last);
    }
}

#[inline(always)]
fn add_two<T: Copy, S: Sum<T>>(upper: &[T], lower: &[T], rows: &[T], sums: &mut [S], others: &mut [S]) {
    let length = sums.len();
    let (quads, rest) = upper.as_chunks::<4>();
    let (other_quads, other_rest) = lower.as_chunks::<4>();
    for ((&[a, b, c, d], &[e, f, g, h]), rows) in
        quads.iter().zip(other_quads).zip(rows.chunks_exact(4 * length))
    {
        let (first, second) = rows.split_at(2 * length);
        let ((p, q), (r, s)) = (first.split_at(length), second.split_at(length));
        for (((((y, z), &p), &q), &r), &s) in
            sums.iter_mut().zip(others.iter_mut()).zip(p).zip(q).zip(r).zip(s)
        {
            *y = y.plus(a, p).plus(b, q).plus(c, r).plus(d, s);
            *z = z.plus(e, p).plus(f, q).plus(g, r).plus(h, s);
        }
    }
    let rows = rows[quads.len() * 4 * length..].chunks_exact(length);
    for ((&a, &e), row) in rest.iter().zip(other_rest).zip(rows) {
        for ((y, z), &p) in sums.iter_mut().zip(others.iter_mut()).zip(row) {
            *y = y.plus(a, p);
            *z = z.plus(e, p);
        }
    }
}

#[inline(always)]
fn add_one<T: Copy, S: Sum<T>>(weights: &[T], rows: &[T], sums: &mut [S]) {
    let length = sums.len();
    let (quads, rest) = weights.as_chunks::<4>();
    for (&[a, b, c, d], rows) in quads.iter().zip(rows.chunks_exact(4 * length)) {
        let (first, second) = rows.split_at(2 * length);
        let ((p, q), (r, s)) = (first.split_at(length), second.split_at(length));
        for ((((y, &p), &q), &r), &s) in sums.iter_mut().zip(p).zip(q).zip(r).zip(s) {
            *y = y.plus(a, p).plus(b, q).plus(c, r).plus(d, s);
        }
    }
    for (&w, row) in rest.iter().zip(rows[quads.len() * 4 * length..].chunks_exact(length)) {
        for (y, &x) in sums.iter_mut().zip(row) {
            *y = y.plus(w, x);
        }
    }
}

/// Tiles across that one panel of weights is multiplied by before the next: what they read stays near.
const TILES: usize = 8;

/// See [`super::add_product`].
#[inline(always)]
pub(super) fn add_product<T: Copy + Default, S: Sum<T> + Default, const N: usize>(
    weights: &[[T; ROWS]],
    rows: &[T],
    length: usize,
    sums: &mut [S],
) {
    let depth = rows.len() / length;
    let mut packed = vec![[T::default(); N]; TILES * depth];
    for start in (0..length).step_by(TILES * N) {
        let columns = (length - start).min(TILES * N);
        for (tile, packed) in packed.chunks_exact_mut(depth).take(columns.div_ceil(N)).enumerate() {
            let first = start + tile * N;
            let count = (length - first).min(N);
            for (packed, row) in packed.iter_mut().zip(rows.chunks_exact(length)) {
                copy(&row[first..first + count], packed);
            }
        }
        for (weights, sums) in weights.chunks_exact(depth).zip(sums.chunks_mut(ROWS * length)) {
            for (tile, packed) in packed.chunks_exact(depth).take(columns.div_ceil(N)).enumerate() {
                let first = start + tile * N;
                let count = (length - first).min(N);
                let mut kept = [[S::default(); N]; ROWS];
                for (kept, sums) in kept.iter_mut().zip(sums.chunks_exact(length)) {
                    copy(&sums[first..first + count], kept);
                }
                let kept = add_tile(weights, packed, kept);
                for (kept, sums) in kept.iter().zip(sums.chunks_exact_mut(length)) {
                    let sums = &mut sums[first..first + count];
                    match sums.first_chunk_mut() {
                        Some(whole) => *whole = *kept,
                        None => sums.copy_from_slice(&kept[..count]),
                    }
                }
            }
        }
    }
}

/// Copies at most as many elements as an array has: all of them as vectors of the machine.
#[inline(always)]
fn copy<T: Copy, const N: usize>(from: &[T], to: &mut [T; N]) {
    match from.first_chunk() {
        Some(whole) => *to = *whole,
        None => to[..from.len()].copy_from_slice(from),
    }
}

#[inline(always)]
fn add_tile<T: Copy, S: Sum<T>, const N: usize>(
    weights: &[[T; ROWS]],
    rows: &[[T; N]],
    mut sums: [[S; N]; ROWS],
) -> [[S; N]; ROWS] {
    for (weights, row) in weights.iter().zip(rows) {
        for (sums, &w) in sums.iter_mut().zip(weights) {
            for (y, &x) in sums.iter_mut().zip(row) {
                *y = y.plus(w, x);
            }
        }
    }
    sums
}

/// See [`super::add_rows`].
#[inline(always)]
pub(super) fn add_rows<T: Copy, S: Sum<T>>(input: &[T], weight: &[T], output: &mut [S]) {
    for (y, row) in output.iter_mut().zip(weight.chunks_exact(input.len())) {
        *y = row.iter().zip(input).fold(*y, |sum, (&w, &x)| sum.plus(w, x));
    }
}
