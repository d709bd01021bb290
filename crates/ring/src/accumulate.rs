//! Sums of element-wise products, reduced once at the end.

use crate::buffer::Buffer;
use crate::{EvalPermutation, Modulus};

/// A vector of unreduced sums of products modulo one prime.
///
/// Each sum is kept in two words; it is reduced by itself when they could overflow, and by
/// [`Self::reduce_into`].
pub struct Accumulator {
    modulus: Modulus,
    low: Buffer,
    high: Buffer,
    terms: u64,
}

impl Accumulator {
    /// `n` empty sums.
    #[must_use]
    pub fn new(modulus: &Modulus, n: usize) -> Self {
        Self { modulus: *modulus, low: Buffer::zeroed(n), high: Buffer::zeroed(n), terms: 0 }
    }

    /// Empties the sums.
    pub fn clear(&mut self) {
        self.low.fill(0);
        self.high.fill(0);
        self.terms = 0;
    }

    /// Adds `a[i] * b[i]` to sum `i`; both in `[0, q)`.
    ///
    /// # Panics
    /// If a length differs from that of the accumulator.
    pub fn mul_add(&mut self, a: &[u64], b: &[u64]) {
        self.make_room();
        let n = a.len();
        assert!(b.len() == n && self.low.len() == n, "slice lengths");
        let sums = self.low.iter_mut().zip(self.high.iter_mut());
        for ((low, high), (x, y)) in sums.zip(a.iter().zip(b)) {
            add_product(low, high, *x, *y);
        }
    }

    /// Adds `a[permutation(i)] * b[i]` to sum `i`; both in `[0, q)`.
    ///
    /// # Panics
    /// If a length differs from that of the accumulator or of the permutation.
    pub fn mul_add_permuted(&mut self, a: &[u64], permutation: &EvalPermutation, b: &[u64]) {
        let mut permuted = Buffer::zeroed(a.len());
        permutation.apply(&mut permuted, a);
        self.mul_add(&permuted, b);
    }

    /// Writes the sums mod `q` to `out` and empties them.
    ///
    /// # Panics
    /// If the length of `out` differs from that of the accumulator.
    pub fn reduce_into(&mut self, out: &mut [u64]) {
        assert_eq!(out.len(), self.low.len(), "slice lengths");
        for (word, (low, high)) in out.iter_mut().zip(self.low.iter().zip(self.high.iter())) {
            *word = self.modulus.reduce_u128(u128::from(*high) << 64 | u128::from(*low));
        }
        self.clear();
    }

    /// Reduces the sums in place if one more product could overflow them.
    fn make_room(&mut self) {
        if self.terms == capacity(&self.modulus) {
            for (low, high) in self.low.iter_mut().zip(self.high.iter_mut()) {
                *low = self.modulus.reduce_u128(u128::from(*high) << 64 | u128::from(*low));
                *high = 0;
            }
            self.terms = 1;
        }
        self.terms += 1;
    }
}

impl Modulus {
    /// `out[i] = sum_k a[k][i] * b[k][i] mod q`, all in `[0, q)`.
    ///
    /// # Panics
    /// If the numbers of vectors or the lengths differ.
    pub fn dot(&self, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
        assert_eq!(a.len(), b.len(), "one left factor for each right factor");
        let mut sum = Accumulator::new(self, out.len());
        for (x, y) in a.iter().zip(b) {
            sum.mul_add(x, y);
        }
        sum.reduce_into(out);
    }

    /// `out[i] = sum_k a[k][permutation(i)] * b[k][i] mod q`: the inner product of a key with digits to which
    /// an automorphism is applied on the way, all in `[0, q)`.
    ///
    /// # Panics
    /// If the numbers of vectors or the lengths differ.
    pub fn dot_permuted(&self, out: &mut [u64], a: &[&[u64]], permutation: &EvalPermutation, b: &[&[u64]]) {
        assert_eq!(a.len(), b.len(), "one left factor for each right factor");
        let mut sum = Accumulator::new(self, out.len());
        for (x, y) in a.iter().zip(b) {
            sum.mul_add_permuted(x, permutation, y);
        }
        sum.reduce_into(out);
    }
}

/// How many products of reduced factors two words hold.
fn capacity(modulus: &Modulus) -> u64 {
    1 << (128 - 2 * modulus.bits()).min(62)
}

/// `high * 2^64 + low += x * y`.
fn add_product(low: &mut u64, high: &mut u64, x: u64, y: u64) {
    let sum = (u128::from(*high) << 64 | u128::from(*low)) + u128::from(x) * u128::from(y);
    *low = sum as u64;
    *high = (sum >> 64) as u64;
}
