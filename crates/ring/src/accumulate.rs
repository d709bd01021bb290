//! Sums of element-wise products, reduced once at the end.

use crate::arch;
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
    /// `n` empty sums, `n` a multiple of 8.
    ///
    /// # Panics
    /// If `n` is not a multiple of 8.
    #[must_use]
    pub fn new(modulus: &Modulus, n: usize) -> Self {
        assert!(n.is_multiple_of(8), "a multiple of 8");
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
        arch::mul_add(&self.modulus, (&mut self.low, &mut self.high), a, None, b);
    }

    /// Adds `a[permutation(i)] * b[i]` to sum `i`; both in `[0, q)`.
    ///
    /// # Panics
    /// If a length differs from that of the accumulator or of the permutation.
    pub fn mul_add_permuted(&mut self, a: &[u64], permutation: &EvalPermutation, b: &[u64]) {
        self.make_room();
        arch::mul_add(&self.modulus, (&mut self.low, &mut self.high), a, Some(permutation), b);
    }

    /// Writes the sums mod `q` to `out` and empties them.
    ///
    /// # Panics
    /// If the length of `out` differs from that of the accumulator.
    pub fn reduce_into(&mut self, out: &mut [u64]) {
        arch::reduce_sum(&self.modulus, out, &self.low, &self.high);
        self.clear();
    }

    /// Reduces the sums in place if one more product could overflow them.
    fn make_room(&mut self) {
        if self.terms == arch::sum_capacity(&self.modulus) {
            let mut reduced = Buffer::zeroed(self.low.len());
            arch::reduce_sum(&self.modulus, &mut reduced, &self.low, &self.high);
            self.high.fill(0);
            self.low = reduced;
            // A reduced value is no larger than a product.
            self.terms = 1;
        }
        self.terms += 1;
    }
}

impl Modulus {
    /// `out[i] = sum_k a[k][i] * b[k][i] mod q`, all in `[0, q)`, of a length that is a multiple of 8.
    ///
    /// # Panics
    /// If the numbers of vectors or the lengths differ.
    pub fn dot(&self, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
        self.sum_of_products(out, a, None, b);
    }

    /// `out[i] = sum_k a[k][permutation(i)] * b[k][i] mod q`: the inner product of a key with digits to which
    /// an automorphism is applied on the way, all in `[0, q)`.
    ///
    /// # Panics
    /// If the numbers of vectors or the lengths differ.
    pub fn dot_permuted(&self, out: &mut [u64], a: &[&[u64]], permutation: &EvalPermutation, b: &[&[u64]]) {
        self.sum_of_products(out, a, Some(permutation), b);
    }

    fn sum_of_products(
        &self,
        out: &mut [u64],
        a: &[&[u64]],
        permutation: Option<&EvalPermutation>,
        b: &[&[u64]],
    ) {
        assert_eq!(a.len(), b.len(), "one left factor for each right factor");
        let capacity = arch::sum_capacity(self) as usize;
        if a.len() <= capacity {
            return arch::dot(self, out, a, permutation, b);
        }
        let mut part = Buffer::zeroed(out.len());
        out.fill(0);
        for (a, b) in a.chunks(capacity).zip(b.chunks(capacity)) {
            arch::dot(self, &mut part, a, permutation, b);
            self.add_assign_slice(out, &part);
        }
    }
}
