//! The innermost loops, compiled a second and a third time for processors with wider vectors.
//!
//! All copies are the same safe source ([`portable`]); only the instructions that the compiler may use differ. Words wrap around, so that results
//! are equal. No branch and no index depends on a weight or a value.
#![allow(
    unsafe_code,
    reason = "calling a function compiled for a processor feature, after checking for the feature"
)]

mod portable;

pub(super) use portable::Word;

/// Adds to each of `ROWS` sums of rows of `values` the rows times its own weights; `weights` holds, for each row, those of all sums.
pub(super) fn add_rows<T: Word, const ROWS: usize, const COLUMNS: usize>(
    weights: &[[T; ROWS]],
    values: &[[T; COLUMNS]],
    sums: &mut [[T; COLUMNS]; ROWS],
) {
    #[cfg(target_arch = "x86_64")]
    if x86::has_avx512() {
        // SAFETY: the processor has the features that the function asks for.
        unsafe { x86::add_rows_avx512(weights, values, sums) };
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if x86::has_avx2() {
        // SAFETY: as above.
        unsafe { x86::add_rows_avx2(weights, values, sums) };
        return;
    }
    portable::add_rows(weights, values, sums);
}

/// The sum of the products of two vectors' elements.
pub(super) fn dot<T: Word>(weights: &[T], values: &[T]) -> T {
    #[cfg(target_arch = "x86_64")]
    if x86::has_avx512() {
        // SAFETY: the processor has the features that the function asks for.
        return unsafe { x86::dot_avx512(weights, values) };
    }
    #[cfg(target_arch = "x86_64")]
    if x86::has_avx2() {
        // SAFETY: as above.
        return unsafe { x86::dot_avx2(weights, values) };
    }
    portable::dot(weights, values)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::portable::{self, Word};

    pub(super) fn has_avx512() -> bool {
        is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq")
    }

    pub(super) fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2")
    }

    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn add_rows_avx512<T: Word, const ROWS: usize, const COLUMNS: usize>(
        weights: &[[T; ROWS]],
        values: &[[T; COLUMNS]],
        sums: &mut [[T; COLUMNS]; ROWS],
    ) {
        portable::add_rows(weights, values, sums);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn add_rows_avx2<T: Word, const ROWS: usize, const COLUMNS: usize>(
        weights: &[[T; ROWS]],
        values: &[[T; COLUMNS]],
        sums: &mut [[T; COLUMNS]; ROWS],
    ) {
        portable::add_rows(weights, values, sums);
    }

    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn dot_avx512<T: Word>(weights: &[T], values: &[T]) -> T {
        portable::dot(weights, values)
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn dot_avx2<T: Word>(weights: &[T], values: &[T]) -> T {
        portable::dot(weights, values)
    }
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
            let mut sums = [[word(3); COLUMNS]; 4];
            let mut expected = sums;
            add_rows(&weights, &values, &mut sums);
            portable::add_rows(&weights, &values, &mut expected);
            assert_eq!(sums, expected);
            let (a, b) = (weights.as_flattened(), values.as_flattened());
            assert_eq!(dot(a, &b[..a.len()]), portable::dot(a, &b[..a.len()]));
        }
    }

    #[test]
    fn the_chosen_copy_equals_the_portable_one() {
        check::<u32, 16>();
        check::<u64, 16>();
    }
}
