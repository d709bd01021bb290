//! The integers that the reference runs on: 64 bits, or 128 where rings modulo products of primes are larger.

use std::ops::{Add, Mul};

use crate::accumulator::{Accumulator, rounding_constant};
use crate::elementwise::FixedElementwise;
use crate::matrices::Matrices;

/// An integer of a machine's size, which holds every value and every partial sum of the networks that run on it.
pub trait Integer: Copy + Default + Ord + Add<Output = Self> + Mul<Output = Self> + From<i64> {
    /// The same.
    fn wide(self) -> i128;

    /// The same, of a value that fits.
    fn of(wide: i128) -> Self;

    /// As [`rescale`](crate::rescale).
    fn rescale(self, shift: u32) -> Self;

    /// As [`Accumulator::product`].
    fn product(self, other: Self, limit: i128, ring: Accumulator) -> (Self, bool);

    /// Replaces every element by an operator's value there.
    fn eval_each(op: &dyn FixedElementwise, x: &mut [Self]);

    /// The sums of the products of two rows of pairs of matrices, as they are in 128 bits.
    fn sums_of_products(matrices: &Matrices, x: &[Self], y: &[Self]) -> Vec<i128> {
        matrices.products(x, y, |sum: i128, x, y| sum + x.wide() * y.wide())
    }

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

    fn product(self, other: Self, limit: i128, ring: Accumulator) -> (Self, bool) {
        match self.checked_mul(other) {
            Some(product) if i128::from(product.unsigned_abs()) <= limit => (product, false),
            _ => {
                let (product, is_beyond) = ring.product(self.wide(), other.wide(), limit);
                (Self::of(product), is_beyond)
            }
        }
    }

    fn eval_each(op: &dyn FixedElementwise, x: &mut [Self]) {
        op.eval_each(x);
    }

    /// In 64 bits of factors of 32 where these hold all of it, which vectors of the machine do.
    fn sums_of_products(matrices: &Matrices, x: &[Self], y: &[Self]) -> Vec<i128> {
        let largest = |values: &[Self]| values.iter().map(|x| x.unsigned_abs()).max().unwrap_or(0);
        let [a, b] = [largest(x), largest(y)].map(u128::from);
        let sums = (a * b).saturating_mul(matrices.inner as u128);
        if a.max(b) > i32::MAX as u128 || sums > Self::MAX as u128 {
            return matrices.products(x, y, |sum: i128, x, y| sum + x.wide() * y.wide());
        }
        let cast = |values: &[Self]| values.iter().map(|&x| x as i32).collect::<Vec<i32>>();
        matrices.small_products(&cast(x), &cast(y)).into_iter().map(i128::from).collect()
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

    fn product(self, other: Self, limit: i128, ring: Accumulator) -> (Self, bool) {
        ring.product(self, other, limit)
    }

    fn eval_each(op: &dyn FixedElementwise, x: &mut [Self]) {
        for x in x {
            *x = op.eval(*x);
        }
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
        match self {
            Self::Narrow(values) => ends_of(values).map(Integer::wide),
            Self::Wide(values) => ends_of(values),
        }
    }
}

/// The smallest and the largest of some values and 0.
fn ends_of<I: Integer>(values: &[I]) -> [I; 2] {
    values.iter().fold([I::default(); 2], |[low, high], x| [low.min(*x), high.max(*x)])
}

/// The largest absolute value that [`nearest`] takes.
pub const MOST_NEAREST: i64 = 1 << 51;

/// Three halves of 2^52: the last digit of floats near it is that of units.
const LAST_DIGITS: f64 = 6_755_399_441_055_744.0;

/// The integer nearest to a number of at most [`MOST_NEAREST`], of two the even one; by its digits, which vectors of every machine add and subtract.
#[must_use]
pub const fn nearest(x: f64) -> i64 {
    (x + LAST_DIGITS).to_bits().wrapping_sub(LAST_DIGITS.to_bits()) as i64
}

/// Brings values beyond `limit` back into the ring; returns how many there were.
pub(crate) fn confine<I: Integer>(values: &mut [I], limit: i128, ring: Accumulator) -> usize {
    let [low, high] = [-limit, limit].map(I::of);
    let is_within = |ends: [I; 2]| low <= ends[0] && ends[1] <= high;
    if is_within(ends_of(values)) {
        return 0;
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elementwise::{FixedClip, FixedFunction, FixedLeakyRelu, Relu};

    #[test]
    fn numbers_are_rounded_to_the_nearest_integer() {
        assert_eq!(LAST_DIGITS.to_bits(), (1.5 * 52_f64.exp2()).to_bits());
        let whole = [0, 1, 2, 12_345, 999_999_937, 1 << 40, (1 << 50) + 1, MOST_NEAREST - 1, MOST_NEAREST];
        let off = [0.0, 0.25, 0.5, 0.75, 1.5, 2.5, 1e-300];
        let beside = off.iter().map(|off| off + 7.0).chain(whole.map(|x| x as f64)).chain(off);
        for x in beside.flat_map(|x| [x, -x]) {
            assert_eq!(nearest(x), x.round_ties_even() as i64, "{x}");
        }
    }

    /// Numbers of all sizes and both signs.
    fn values(bits: u32, count: usize) -> Vec<i64> {
        let mixed = |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64;
        let value = |at: usize| mixed(at) >> (64 - bits + at as u32 % (bits - 1));
        [0, 1, -1].into_iter().chain((3..count).map(value)).collect()
    }

    #[test]
    fn operators_on_many_values_are_the_same_as_on_each() {
        let function = FixedFunction {
            low: -50,
            bits: 7,
            polynomials: vec![vec![3, -2], vec![10, 5]],
            shift: 1,
            factors: None,
        };
        let leaky = FixedLeakyRelu { numerator: 5, shift: 9 };
        let ops: [&dyn FixedElementwise; 4] = [&Relu, &FixedClip { high: 37 }, &leaky, &function];
        for op in ops {
            let values = values(40, 500);
            let expected: Vec<i128> = values.iter().map(|x| op.eval((*x).into())).collect();
            let (mut narrow, mut wide) = (values.clone(), expected.clone());
            wide.iter_mut().zip(&values).for_each(|(wide, x)| *wide = (*x).into());
            i64::eval_each(op, &mut narrow);
            i128::eval_each(op, &mut wide);
            assert_eq!(narrow.into_iter().map(i128::from).collect::<Vec<_>>(), expected);
            assert_eq!(wide, expected);
        }
    }

    #[test]
    fn products_of_64_bits_are_those_of_128() {
        let ring = Accumulator::from_modulus(1 << 41).unwrap();
        let limit = ring.limit(0);
        let at_limit = [limit as i64, -limit as i64, limit as i64 + 1, i64::MAX, i64::MIN, 1 << 20, 1 << 21];
        let all: Vec<i64> = values(63, 60).into_iter().chain(at_limit).collect();
        let mut beyond = 0;
        for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b))) {
            let (product, is_beyond) = a.product(b, limit, ring);
            assert_eq!((product.wide(), is_beyond), ring.product(a.wide(), b.wide(), limit), "{a} {b}");
            beyond += usize::from(is_beyond);
        }
        assert!(beyond > 100 && beyond + 100 < all.len() * all.len());
    }

    #[test]
    fn sums_of_products_are_the_same_in_the_fewest_bits() {
        let matrices = Matrices::of(&[2, 3, 5], &[2, 5, 4]).unwrap();
        for bits in [8, 20, 32, 33, 34, 60] {
            let (x, y) = (values(bits, 30), values(bits, 40));
            let wide = |values: &[i64]| values.iter().copied().map(i128::from).collect::<Vec<_>>();
            let expected = i128::sums_of_products(&matrices, &wide(&x), &wide(&y));
            assert_eq!(i64::sums_of_products(&matrices, &x, &y), expected, "{bits}");
        }
        // As large as 32 bits are, in sums that 64 bits do not hold.
        let (x, y) = (vec![i64::from(i32::MAX); 30], vec![i64::from(-i32::MAX); 40]);
        let expected = -5 * i128::from(i32::MAX) * i128::from(i32::MAX);
        assert!(i64::sums_of_products(&matrices, &x, &y).into_iter().all(|sum| sum == expected));
    }

    #[test]
    fn values_beyond_the_limit_come_back_into_the_ring() {
        let ring = Accumulator::from_modulus(1 << 20).unwrap();
        let limit = ring.limit(0);
        for values in [values(18, 50), values(40, 50), vec![limit as i64 + 1, 0], vec![-limit as i64 - 1]] {
            let mut confined = values.clone();
            let beyond = confine(&mut confined, limit, ring);
            let expected: Vec<_> = values.iter().map(|x| ring.confine((*x).into(), limit)).collect();
            assert_eq!(beyond, expected.iter().filter(|(_, is_beyond)| *is_beyond).count());
            let expected: Vec<i64> = expected.into_iter().map(|(x, _)| x as i64).collect();
            assert_eq!(confined, expected);
        }
    }
}
