//! Exact division by the last prime with rounding ("mod down"), which removes a limb.
//!
//! With `r` the centred residue of `x` modulo the last prime, `(x - r) / q_last` is the nearest integer to
//! `x / q_last` ([BEHZ16], <https://eprint.iacr.org/2016/510>, exact here since only one prime is dropped).

use crate::buffer::Buffer;
use crate::{Coeff, Domain, Eval, Ntt, Poly};

impl Poly<Coeff> {
    /// Replaces `x` by `round(x / q_last)` over the basis without its last prime.
    ///
    /// # Panics
    /// If there is only one limb.
    pub fn divide_round_by_last(&mut self) {
        let dropped = Buffer::from(self.limb(self.basis().len() - 1));
        divide(self, &dropped, |_, _| ());
    }
}

impl Poly<Eval> {
    /// Replaces `x` by `round(x / q_last)` over the basis without its last prime.
    ///
    /// # Panics
    /// If there is only one limb.
    pub fn divide_round_by_last(&mut self) {
        let last = self.basis().len() - 1;
        let mut dropped = Buffer::from(self.limb(last));
        self.basis().ntts()[last].inverse(&mut dropped);
        divide(self, &dropped, Ntt::forward);
    }
}

/// Subtracts the centred `dropped` coefficients, brought to the domain by `transform`, and divides exactly.
fn divide<D: Domain>(poly: &mut Poly<D>, dropped: &[u64], transform: impl Fn(&Ntt, &mut [u64])) {
    let basis = poly.basis().clone();
    assert!(basis.len() > 1, "the last limb cannot be dropped");
    let last = &basis.moduli()[basis.len() - 1];
    let mut remainder = Buffer::zeroed(basis.degree());
    let limbs = poly.limbs_mut().zip(basis.ntts()).zip(basis.last_inverses());
    for ((limb, ntt), inverse) in limbs {
        ntt.modulus().lift_centered_slice(&mut remainder, dropped, last);
        transform(ntt, &mut remainder);
        ntt.modulus().sub_mul_slice(limb, &remainder, *inverse);
    }
    poly.truncate_limbs(basis.len() - 1);
}
