//! Sums of element-wise products, reduced once at the end.

use crate::arch;
use crate::buffer::Buffer;
use crate::{EvalPermutation, Modulus, Shoup};

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
        arch::mul_add(&self.modulus, (&mut self.low, &mut self.high), a, b);
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

/// Products that one pass over vectors sums. Vectors of a power of two of words compete for the same lines of a cache, of which each set holds
/// eight or so: more of them at a time push each other out before a line was read whole.
const STREAMS: usize = 8;

/// What inner products go through on their way out: see [`Modulus::dot_permuted`].
#[derive(Clone, Copy)]
pub struct Ending<'a> {
    /// A vector, and the factor that it is added with.
    pub added: Option<(&'a [u64], u64)>,
    /// A vector to subtract then, and the factor that the difference is multiplied by.
    pub subtracted: Option<(&'a [u64], Shoup)>,
    /// The order of the results.
    pub permutation: &'a EvalPermutation,
}

impl Modulus {
    /// `out[i] = sum_k a[k][i] * b[k][i] mod q`, all in `[0, q)`, of a length that is a multiple of 8.
    ///
    /// # Panics
    /// If the numbers of vectors or the lengths differ.
    pub fn dot(&self, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
        self.sum_of_products::<false>(out, a, b);
    }

    /// `out[i] += sum_k a[k][i] * b[k][i] mod q`: as [`Self::dot`], onto what is there.
    ///
    /// # Panics
    /// As [`Self::dot`].
    pub fn add_dot(&self, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
        self.sum_of_products::<true>(out, a, b);
    }

    /// `out[i] += sum_k a[k][i] * b[i / run * terms + k] mod q` with as many terms as there are vectors `a`: as [`Self::add_dot`], where each right factor
    /// stands for `run` places in a row.
    ///
    /// # Panics
    /// If `run` is no multiple of 8 or does not divide the length of `out` and every `a`, or there is not a right factor for each vector and run.
    pub fn add_dot_repeated(&self, out: &mut [u64], a: &[&[u64]], b: &[u64], run: usize) {
        arch::add_dot_repeated(self, out, a, b, run);
    }

    fn sum_of_products<const ADD: bool>(&self, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
        assert_eq!(a.len(), b.len(), "one left factor for each right factor");
        // What is there is no larger than a product.
        let most = (arch::sum_capacity(self) as usize).saturating_sub(1).clamp(1, STREAMS);
        let mut parts = a.chunks(most).zip(b.chunks(most));
        let (first_a, first_b) = parts.next().unwrap_or_default();
        arch::dot::<ADD>(self, out, first_a, first_b);
        for (a, b) in parts {
            arch::dot::<true>(self, out, a, b);
        }
    }

    /// Key switching in one pass: `x[i] = (sum_k a[k][i] * b[k][i] + added[i] * f - subtracted[i]) * g mod q`, without what the ending
    /// has not, and `out = x` permuted. All in `[0, q)`.
    ///
    /// # Panics
    /// If the numbers of vectors differ, a length is not the permutation's degree, or there are more than some thousand vectors.
    pub fn dot_permuted(&self, out: &mut [u64], a: &[&[u64]], b: &[&[u64]], ending: &Ending<'_>) {
        assert_eq!(a.len(), b.len(), "one left factor for each right factor");
        assert!((a.len() as u64) < arch::sum_capacity(self), "more products than two words hold");
        arch::dot_permuted(self, out, a, b, ending);
    }
}
