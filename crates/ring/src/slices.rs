//! Coefficient-wise operations on slices of residues in `[0, q)`.

use crate::arch;
use crate::modulus::{Modulus, Shoup};

impl Modulus {
    /// `a += b`, element by element.
    ///
    /// # Panics
    /// If the lengths differ, as for every operation on slices.
    pub fn add_assign_slice(&self, a: &mut [u64], b: &[u64]) {
        arch::add_assign(self, a, b);
    }

    /// `a -= b`, element by element.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn sub_assign_slice(&self, a: &mut [u64], b: &[u64]) {
        arch::sub_assign(self, a, b);
    }

    /// `a = -a`, element by element.
    pub fn neg_slice(&self, a: &mut [u64]) {
        for x in a {
            *x = self.neg(*x);
        }
    }

    /// `a *= b`, element by element.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn mul_assign_slice(&self, a: &mut [u64], b: &[u64]) {
        arch::mul_assign(self, a, b);
    }

    /// `a *= w`, element by element.
    pub fn mul_scalar_slice(&self, a: &mut [u64], w: Shoup) {
        arch::mul_scalar(self, a, w);
    }

    /// `out = a mod q` for any words `a`: lifts a digit into another limb.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn reduce_slice(&self, out: &mut [u64], a: &[u64]) {
        arch::reduce(self, out, a);
    }

    /// `a = (a - b) * w`, element by element.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn sub_mul_slice(&self, a: &mut [u64], b: &[u64], w: Shoup) {
        arch::sub_mul(self, a, b, w);
    }

    /// `out = r mod q` with `r` the centred representative of `a mod from`; `a` in `[0, from)`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn lift_centered_slice(&self, out: &mut [u64], a: &[u64], from: &Modulus) {
        arch::lift_centered(self, out, a, from);
    }
}
