//! The innermost loops, compiled a second and a third time for processors with wider vectors.
//!
//! All copies are the same safe source ([`portable`]); only the instructions that the compiler may use differ. Words wrap around, so that results
//! are equal. No branch and no index depends on a weight or a value.
#![allow(
    unsafe_code,
    reason = "calling a function compiled for a processor feature, after checking for the feature"
)]

mod portable;
mod table;
#[cfg(target_arch = "x86_64")]
mod x86_64;

pub(super) use portable::Word;
use table::Loops;

impl<T: Word, const ROWS: usize, const COLUMNS: usize> Loops<T, ROWS, COLUMNS> {
    /// Plain Rust.
    const PORTABLE: Self = Self { add_rows: portable::add_rows, dot: portable::dot };

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

/// Adds to each of `ROWS` sums of rows of `values` the rows times its own weights; `weights` holds, for each row, those of all sums.
pub(super) fn add_rows<T: Word, const ROWS: usize, const COLUMNS: usize>(
    weights: &[[T; ROWS]],
    values: &[[T; COLUMNS]],
    sums: &mut [[T; COLUMNS]; ROWS],
) {
    // SAFETY: this machine has the table.
    unsafe { (Loops::chosen().add_rows)(weights, values, sums) }
}

/// The sum of the products of two vectors' elements.
pub(super) fn dot<T: Word>(weights: &[T], values: &[T]) -> T {
    // SAFETY: this machine has the table.
    unsafe { (Loops::<T, 1, 1>::chosen().dot)(weights, values) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Word + PartialEq + std::fmt::Debug, const COLUMNS: usize>() {
        let word = |at: usize| T::of((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for rows in [0, 1, 7, 256] {
            let weights: Vec<[T; 4]> =
                (0..rows).map(|row| [0, 1, 2, 3].map(|sum| word(4 * row + sum))).collect();
            let values: Vec<[T; COLUMNS]> =
                (0..rows).map(|row| std::array::from_fn(|column| word(COLUMNS * row + column + 5))).collect();
            let mut expected = [[word(3); COLUMNS]; 4];
            portable::add_rows(&weights, &values, &mut expected);
            let (a, b) = (weights.as_flattened(), values.as_flattened());
            for table in Loops::<T, 4, COLUMNS>::available() {
                let mut sums = [[word(3); COLUMNS]; 4];
                // SAFETY: this machine has the table.
                let product = unsafe {
                    (table.add_rows)(&weights, &values, &mut sums);
                    (table.dot)(a, &b[..a.len()])
                };
                assert_eq!((sums, product), (expected, portable::dot(a, &b[..a.len()])));
            }
        }
    }

    #[test]
    fn every_table_computes_the_same() {
        check::<u32, 16>();
        check::<u64, 16>();
    }
}
