//! Coefficient-wise operations on slices of residues in `[0, q)`.

use crate::modulus::{Modulus, Shoup};

impl Modulus {
    /// `a += b`, element by element.
    ///
    /// # Panics
    /// If the lengths differ, as for every operation on slices.
    pub fn add_assign_slice(&self, a: &mut [u64], b: &[u64]) {
        assert_eq!(a.len(), b.len(), "slice lengths");
        for (x, y) in a.iter_mut().zip(b) {
            *x = self.add(*x, *y);
        }
    }

    /// `a -= b`, element by element.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn sub_assign_slice(&self, a: &mut [u64], b: &[u64]) {
        assert_eq!(a.len(), b.len(), "slice lengths");
        for (x, y) in a.iter_mut().zip(b) {
            *x = self.sub(*x, *y);
        }
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
        assert_eq!(a.len(), b.len(), "slice lengths");
        for (x, y) in a.iter_mut().zip(b) {
            *x = self.mul(*x, *y);
        }
    }

    /// `a *= w`, element by element.
    pub fn mul_scalar_slice(&self, a: &mut [u64], w: Shoup) {
        for x in a {
            *x = self.mul_shoup(*x, w);
        }
    }

    /// `out = a mod q` for any words `a`: lifts a digit into another limb.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn reduce_slice(&self, out: &mut [u64], a: &[u64]) {
        assert_eq!(out.len(), a.len(), "slice lengths");
        for (x, y) in out.iter_mut().zip(a) {
            *x = self.reduce(*y);
        }
    }

    /// `a = (a - b) * w`, element by element.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn sub_mul_slice(&self, a: &mut [u64], b: &[u64], w: Shoup) {
        assert_eq!(a.len(), b.len(), "slice lengths");
        for (x, y) in a.iter_mut().zip(b) {
            *x = self.mul_shoup(*x + self.value() - *y, w);
        }
    }
}
