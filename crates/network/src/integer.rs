//! The integers that the reference runs on: 64 bits, or 128 where rings modulo products of primes are larger.

use std::ops::{Add, Mul};

use crate::accumulator::{Accumulator, rounding_constant};

/// An integer of a machine's size, which holds every value and every partial sum of the networks that run on it.
pub trait Integer: Copy + Default + Ord + Add<Output = Self> + Mul<Output = Self> + From<i64> {
    /// The same.
    fn wide(self) -> i128;

    /// The same, of a value that fits.
    fn of(wide: i128) -> Self;

    /// As [`rescale`](crate::rescale).
    fn rescale(self, shift: u32) -> Self;

    /// These values for someone to look at.
    fn show(values: &[Self]) -> Integers<'_>;
}

impl Integer for i64 {
    fn wide(self) -> i128 {
        self.into()
    }

    fn of(wide: i128) -> Self {
        wide as Self
    }

    fn rescale(self, shift: u32) -> Self {
        rescale(self, shift)
    }

    fn show(values: &[Self]) -> Integers<'_> {
        Integers::Narrow(values)
    }
}

impl Integer for i128 {
    fn wide(self) -> i128 {
        self
    }

    fn of(wide: i128) -> Self {
        wide
    }

    fn rescale(self, shift: u32) -> Self {
        (self + Self::from(rounding_constant(shift))) >> shift
    }

    fn show(values: &[Self]) -> Integers<'_> {
        Integers::Wide(values)
    }
}

/// The elements of a value, as the reference has them.
#[derive(Clone, Copy, Debug)]
pub enum Integers<'v> {
    /// Of a network whose values fit 64 bits.
    Narrow(&'v [i64]),
    /// Of one with larger rings.
    Wide(&'v [i128]),
}

impl Integers<'_> {
    /// All of them.
    #[must_use]
    pub fn to_vec(self) -> Vec<i128> {
        match self {
            Self::Narrow(values) => values.iter().copied().map(Integer::wide).collect(),
            Self::Wide(values) => values.to_vec(),
        }
    }

    /// The smallest and the largest, and 0 if that is smaller or larger.
    #[must_use]
    pub fn ends(self) -> [i128; 2] {
        fn ends<I: Integer>(values: &[I]) -> [i128; 2] {
            let zero = [I::default(); 2];
            let [low, high] = values.iter().fold(zero, |[low, high], x| [low.min(*x), high.max(*x)]);
            [low.wide(), high.wide()]
        }
        match self {
            Self::Narrow(values) => ends(values),
            Self::Wide(values) => ends(values),
        }
    }
}

/// Brings values beyond `limit` back into the ring; returns how many there were.
pub(crate) fn confine<I: Integer>(values: &mut [I], limit: i128, ring: Accumulator) -> usize {
    let [low, high] = [-limit, limit].map(I::of);
    let mut beyond = 0;
    for x in values.iter_mut().filter(|x| !(low..=high).contains(*x)) {
        *x = I::of(ring.centre(x.wide()));
        beyond += 1;
    }
    beyond
}

/// `floor((x + 2^(shift-1)) / 2^shift)`: division by a power of two, rounded to nearest, ties up. A shift of 0 changes nothing.
///
/// `shift` is below 62 and |x| below 2^62.
#[must_use]
pub const fn rescale(x: i64, shift: u32) -> i64 {
    (x + crate::accumulator::rounding_constant(shift)) >> shift
}
