//! The innermost loops, compiled again for processors with wider vectors.
//!
//! All copies are the same safe source ([`portable`]); only the instructions that the compiler may use differ. Integer results are
//! equal; float results, too, since no copy fuses a product with a sum. What the operators compute is public to whoever runs them:
//! this is the reference, not a protocol.
#![allow(
    unsafe_code,
    reason = "calling a function compiled for a processor feature, after checking for the feature"
)]

mod portable;
mod table;
#[cfg(target_arch = "x86_64")]
mod x86_64;

pub use portable::Sum;
use table::Loops;
pub(crate) use table::ROWS;

impl<T: Copy + Default, S: Sum<T> + Default, const N: usize> Loops<T, S, N> {
    /// Every table of this machine, the fastest first.
    fn available() -> impl Iterator<Item = Self> {
        let tables = std::iter::once(Self::PORTABLE);
        #[cfg(target_arch = "x86_64")]
        let tables = x86_64::available().chain(tables);
        tables
    }

    /// The table of this machine.
    fn chosen() -> Self {
        Self::available().next().unwrap_or(Self::PORTABLE)
    }
}

/// Adds to each of the equally long rows of `sums` the combination of the rows of `rows` by its own weights.
///
/// `weights` holds as many weights for each sum as there are rows, one sum after the other, `stride` apart.
pub(crate) fn add_combinations<T: Copy + Default, S: Sum<T> + Default>(
    weights: &[T],
    stride: usize,
    rows: &[T],
    length: usize,
    sums: &mut [S],
) {
    // SAFETY: this machine has the table.
    unsafe { (Loops::<T, S, 1>::chosen().add_combinations)(weights, stride, rows, length, sums) }
}

/// Adds `W x` to `output`; `weight` is [outputs, inputs].
pub fn add_rows<T: Copy + Default, S: Sum<T> + Default>(input: &[T], weight: &[T], output: &mut [S]) {
    // SAFETY: this machine has the table.
    unsafe { (Loops::<T, S, 1>::chosen().add_rows)(input, weight, output) }
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
    // SAFETY: this machine has the table.
    unsafe { (Loops::<T, S, N>::chosen().add_product)(weights, rows, length, sums) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_computes_the_same() {
        let word = |at: usize| ((at as i32).wrapping_mul(7919) >> 3) % 1000;
        for (count, rows, length) in
            [(1, 1, 1), (2, 4, 5), (3, 9, 16), (5, 7, 33), (4, 64, 100), (14, 11, 150)]
        {
            let weights: Vec<i32> = (0..count * (rows + 2)).map(word).collect();
            let values: Vec<i32> = (0..rows * length).map(|at| word(at + 17)).collect();
            let mut expected = vec![5_i32; count * length];
            portable::add_combinations(&weights, rows + 2, &values, length, &mut expected);
            let in_wide: Vec<_> = expected.iter().map(|&x| i64::from(x)).collect();
            let tiled: Vec<[i32; ROWS]> = (0..count.div_ceil(ROWS) * rows)
                .map(|at| {
                    let (tile, row) = (at / rows, at % rows);
                    std::array::from_fn(|sum| {
                        let sum = tile * ROWS + sum;
                        if sum < count { weights[sum * (rows + 2) + row] } else { 0 }
                    })
                })
                .collect();
            let mut in_rows = vec![3_i32; rows];
            portable::add_rows(&values[..length], &values, &mut in_rows);
            for table in Loops::<i32, i64, 1>::available() {
                let mut wide = vec![5; count * length];
                // SAFETY: this machine has the table.
                unsafe { (table.add_combinations)(&weights, rows + 2, &values, length, &mut wide) };
                assert_eq!(wide, in_wide);
            }
            for table in Loops::<i32, i32, 8>::available() {
                let (mut narrow, mut product, mut multiplied) =
                    (vec![5; count * length], vec![5; count * length], vec![3; rows]);
                // SAFETY: as above.
                unsafe {
                    (table.add_combinations)(&weights, rows + 2, &values, length, &mut narrow);
                    (table.add_product)(&tiled, &values, length, &mut product);
                    (table.add_rows)(&values[..length], &values, &mut multiplied);
                }
                assert_eq!((&narrow, &product, &multiplied), (&expected, &expected, &in_rows));
            }
        }
    }
}
