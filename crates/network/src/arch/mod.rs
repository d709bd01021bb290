//! The innermost loops, compiled a second time for processors with wider vectors.
//!
//! Both copies are the same safe source ([`portable`]); only the instructions that the compiler may use differ. Integer results are
//! equal; float results, too, since neither copy fuses a product with a sum. What the operators compute is public to whoever runs them:
//! this is the reference, not a protocol.
#![allow(
    unsafe_code,
    reason = "calling a function compiled for a processor feature, after checking for the feature"
)]

mod portable;

pub(crate) use portable::ROWS;
pub use portable::Sum;

/// Adds to each of the equally long rows of `sums` the combination of the rows of `rows` by its own weights.
///
/// `weights` holds as many weights for each sum as there are rows, one sum after the other, `stride` apart.
pub(crate) fn add_combinations<T: Copy, S: Sum<T>>(
    weights: &[T],
    stride: usize,
    rows: &[T],
    length: usize,
    sums: &mut [S],
) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, the only feature that the function asks for.
        unsafe { x86::add_combinations(weights, stride, rows, length, sums) };
        return;
    }
    portable::add_combinations(weights, stride, rows, length, sums);
}

/// Adds `W x` to `output`; `weight` is [outputs, inputs].
pub fn add_rows<T: Copy, S: Sum<T>>(input: &[T], weight: &[T], output: &mut [S]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, the only feature that the function asks for.
        unsafe { x86::add_rows(input, weight, output) };
        return;
    }
    portable::add_rows(input, weight, output);
}

/// Adds to each of the equally long rows of `sums` the combination of the rows of `rows` by its own weights, as [`add_combinations`] does
/// and in the same order, for many sums: each row is read once for [`ROWS`] of them, `N` of their elements at a time.
///
/// `weights` holds, for each [`ROWS`] sums, the weights of each row in turn.
pub(crate) fn add_product<T: Copy + Default, S: Sum<T> + Default, const N: usize>(
    weights: &[[T; ROWS]],
    rows: &[T],
    length: usize,
    sums: &mut [S],
) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has AVX-512F, the only feature that the function asks for.
        unsafe { x86::add_product_avx512::<T, S, N>(weights, rows, length, sums) };
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, the only feature that the function asks for.
        unsafe { x86::add_product_avx2::<T, S, N>(weights, rows, length, sums) };
        return;
    }
    portable::add_product::<T, S, N>(weights, rows, length, sums);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::portable::{self, ROWS, Sum};

    #[target_feature(enable = "avx512f")]
    pub(super) fn add_product_avx512<T: Copy + Default, S: Sum<T> + Default, const N: usize>(
        weights: &[[T; ROWS]],
        rows: &[T],
        length: usize,
        sums: &mut [S],
    ) {
        portable::add_product::<T, S, N>(weights, rows, length, sums);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn add_product_avx2<T: Copy + Default, S: Sum<T> + Default, const N: usize>(
        weights: &[[T; ROWS]],
        rows: &[T],
        length: usize,
        sums: &mut [S],
    ) {
        portable::add_product::<T, S, N>(weights, rows, length, sums);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn add_combinations<T: Copy, S: Sum<T>>(
        weights: &[T],
        stride: usize,
        rows: &[T],
        length: usize,
        sums: &mut [S],
    ) {
        portable::add_combinations(weights, stride, rows, length, sums);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn add_rows<T: Copy, S: Sum<T>>(input: &[T], weight: &[T], output: &mut [S]) {
        portable::add_rows(input, weight, output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_copy_equals_the_portable_one() {
        let word = |at: usize| ((at as i32).wrapping_mul(7919) >> 3) % 1000;
        for (count, rows, length) in
            [(1, 1, 1), (2, 4, 5), (3, 9, 16), (5, 7, 33), (4, 64, 100), (14, 11, 150)]
        {
            let weights: Vec<i32> = (0..count * (rows + 2)).map(word).collect();
            let values: Vec<i32> = (0..rows * length).map(|at| word(at + 17)).collect();
            let (mut narrow, mut wide) = (vec![5_i32; count * length], vec![5_i64; count * length]);
            let mut expected = narrow.clone();
            add_combinations(&weights, rows + 2, &values, length, &mut narrow);
            add_combinations(&weights, rows + 2, &values, length, &mut wide);
            portable::add_combinations(&weights, rows + 2, &values, length, &mut expected);
            assert_eq!(narrow, expected);
            assert_eq!(wide, expected.iter().map(|&x| i64::from(x)).collect::<Vec<_>>());
            let tiled: Vec<[i32; ROWS]> = (0..count.div_ceil(ROWS) * rows)
                .map(|at| {
                    let (tile, row) = (at / rows, at % rows);
                    std::array::from_fn(|sum| {
                        let sum = tile * ROWS + sum;
                        if sum < count { weights[sum * (rows + 2) + row] } else { 0 }
                    })
                })
                .collect();
            let (mut chosen, mut own) = (vec![5_i32; count * length], vec![5_i32; count * length]);
            add_product::<_, _, 8>(&tiled, &values, length, &mut chosen);
            portable::add_product::<_, _, 8>(&tiled, &values, length, &mut own);
            assert_eq!((&chosen, &own), (&expected, &expected));
            let (mut narrow, mut expected) = (vec![3_i32; rows], vec![3_i32; rows]);
            add_rows(&values[..length], &values, &mut narrow);
            portable::add_rows(&values[..length], &values, &mut expected);
            assert_eq!(narrow, expected);
        }
    }
}
