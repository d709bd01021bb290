//! The negacyclic number-theoretic transform modulo one prime.
//!
//! Harvey's lazy butterflies ([Har14], <https://arxiv.org/abs/1205.2926>) on the merged-twiddle transform of
//! [LN16], <https://eprint.iacr.org/2016/504>: Cooley-Tukey forward, Gentleman-Sande inverse.

use crate::arch::{Backend, Roots};
use crate::modulus::Shoup;
use crate::prime::negacyclic_root;
use crate::{Modulus, RingError};

/// Tables for transforms of length `n` modulo `q`.
///
/// Slot `i` of a transform is the value of the polynomial at `psi^(2 * bitrev(i) + 1)`, where `bitrev` reverses
/// `log2 n` bits: the standard bit-reversed order, the same on every backend.
#[derive(Debug)]
pub struct Ntt {
    modulus: Modulus,
    n: usize,
    psi: u64,
    forward: Box<dyn Roots>,
    inverse: Box<dyn Roots>,
}

impl Ntt {
    /// Prepares transforms of length `n`, a power of two in `[8, 65536]` with `2n` dividing `q - 1`.
    ///
    /// # Errors
    /// [`RingError::Degree`] or [`RingError::NoRoot`].
    pub fn new(modulus: &Modulus, n: usize) -> Result<Self, RingError> {
        if !n.is_power_of_two() || !(8..=65536).contains(&n) {
            return Err(RingError::Degree { n });
        }
        let psi = negacyclic_root(modulus, n)?;
        let forward = bit_reversed_powers(modulus, psi, n);
        let inverse = bit_reversed_powers(modulus, modulus.inverse(psi), n);
        let scale = modulus.inverse(n as u64);
        let last = modulus.shoup(modulus.mul(scale, inverse[1].w));
        let scale = modulus.shoup(scale);
        let forward = Backend::roots(modulus, forward, scale, last);
        let inverse = Backend::roots(modulus, inverse, scale, last);
        Ok(Self { modulus: *modulus, n, psi, forward, inverse })
    }

    /// The modulus.
    #[must_use]
    pub fn modulus(&self) -> &Modulus {
        &self.modulus
    }

    /// The length `n`.
    #[must_use]
    pub fn degree(&self) -> usize {
        self.n
    }

    /// The root of order `2n` whose odd powers are the evaluation points.
    #[must_use]
    pub fn root(&self) -> u64 {
        self.psi
    }

    /// Coefficients to values, in place; both in `[0, q)`.
    ///
    /// # Panics
    /// If `values` is not of length `n`.
    pub fn forward(&self, values: &mut [u64]) {
        assert_eq!(values.len(), self.n, "transform length");
        self.forward.forward(&self.modulus, values);
    }

    /// Values to coefficients, in place; both in `[0, q)`.
    ///
    /// # Panics
    /// If `values` is not of length `n`.
    pub fn inverse(&self, values: &mut [u64]) {
        assert_eq!(values.len(), self.n, "transform length");
        self.inverse.inverse(&self.modulus, values);
    }
}

/// `root^bitrev(i)` for `i < n`.
fn bit_reversed_powers(modulus: &Modulus, root: u64, n: usize) -> Vec<Shoup> {
    let bits = n.trailing_zeros();
    let mut powers = vec![modulus.shoup(1); n];
    let mut power = modulus.reduce(1);
    for i in 0..n {
        powers[bit_reverse(i, bits)] = modulus.shoup(power);
        power = modulus.mul(power, root);
    }
    powers
}

/// `i` with its low `bits` bits reversed, `bits >= 1`.
pub(crate) fn bit_reverse(i: usize, bits: u32) -> usize {
    i.reverse_bits() >> (usize::BITS - bits)
}
