//! The loops themselves, in the form that compilers turn into vector instructions.
#![allow(
    clippy::inline_always,
    reason = "a function gets its caller's processor features only where it is inlined"
)]

use zeroize::Zeroize;

/// A word that wraps around: a power of two that the ring's modulus divides.
pub(in crate::delphi) trait Word: Copy + Default + Send + Sync + Zeroize + 'static {
    /// The low bits of a value.
    fn of(value: u64) -> Self;

    /// Its value.
    fn value(self) -> u64;

    /// The sum with a product.
    #[must_use]
    fn plus(self, a: Self, b: Self) -> Self;
}

impl Word for u32 {
    fn of(value: u64) -> Self {
        value as Self
    }

    fn value(self) -> u64 {
        self.into()
    }

    #[inline(always)]
    fn plus(self, a: Self, b: Self) -> Self {
        self.wrapping_add(a.wrapping_mul(b))
    }
}

impl Word for u64 {
    fn of(value: u64) -> Self {
        value
    }

    fn value(self) -> u64 {
        self
    }

    #[inline(always)]
    fn plus(self, a: Self, b: Self) -> Self {
        self.wrapping_add(a.wrapping_mul(b))
    }
}

/// See [`super::add_rows`]. The sums stay in registers.
#[inline(always)]
pub(super) fn add_rows<T: Word, const ROWS: usize, const COLUMNS: usize>(
    weights: &[[T; ROWS]],
    values: &[[T; COLUMNS]],
    sums: &mut [[T; COLUMNS]; ROWS],
) {
    let mut kept = *sums;
    for (weights, values) in weights.iter().zip(values) {
        for (kept, &weight) in kept.iter_mut().zip(weights) {
            for (sum, &value) in kept.iter_mut().zip(values) {
                *sum = sum.plus(weight, value);
            }
        }
    }
    *sums = kept;
}

/// See [`super::dot`].
#[inline(always)]
pub(super) fn dot<T: Word>(weights: &[T], values: &[T]) -> T {
    weights.iter().zip(values).fold(T::default(), |sum, (&weight, &value)| sum.plus(weight, value))
}
