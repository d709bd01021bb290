//! Exact division by the last primes with rounding ("mod down"), which removes limbs.
//!
//! With `r` the centred residue of `x` modulo the product `D` of the last primes, `(x - r) / D` is the nearest integer to
//! `x / D` ([BEHZ16], <https://eprint.iacr.org/2016/510>).

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::{Coeff, Conversion, Domain, Eval, Modulus, Ntt, Poly};

impl Poly<Coeff> {
    /// Replaces `x` by `round(x / q_last)` over the basis without its last prime.
    ///
    /// # Panics
    /// If there is only one limb.
    pub fn divide_round_by_last(&mut self) {
        self.divide_round_to(self.basis().len() - 1);
    }

    /// Replaces `x` by `round(x / D)` over the first `limbs` primes, as in the other domain.
    ///
    /// # Panics
    /// As there.
    pub fn divide_round_to(&mut self, limbs: usize) {
        divide(self, limbs, |_, _| (), |_, _| ());
    }
}

impl Poly<Eval> {
    /// Replaces `x` by `round(x / q_last)` over the basis without its last prime.
    ///
    /// # Panics
    /// If there is only one limb.
    pub fn divide_round_by_last(&mut self) {
        self.divide_round_to(self.basis().len() - 1);
    }

    /// Replaces `x` by `round(x / D)` over the first `limbs` primes, `D` being the product of the others. Where several are dropped, a
    /// fraction within some units of `2^(1-b)` of a half may be rounded up, for primes of at least `b` bits: see [`Conversion::wraps`].
    ///
    /// # Panics
    /// If no limb would be left, or there are fewer, or several are dropped and not all below `2^50`.
    pub fn divide_round_to(&mut self, limbs: usize) {
        divide(self, limbs, Ntt::inverse, Ntt::forward);
    }
}

/// Subtracts the centred remainder, by way of its coefficients, and divides exactly.
fn divide<D: Domain>(
    poly: &mut Poly<D>,
    limbs: usize,
    interpolate: impl Fn(&Ntt, &mut [u64]),
    evaluate: impl Fn(&Ntt, &mut [u64]),
) {
    let basis = poly.basis().clone();
    assert!((1..=basis.len()).contains(&limbs), "a limb must be left");
    if limbs == basis.len() {
        return;
    }
    let dropped = &basis.ntts()[limbs..];
    let coefficients = |(ntt, j): (&Arc<Ntt>, usize)| {
        let mut values = Buffer::from(poly.limb(j));
        interpolate(ntt, &mut values);
        values
    };
    let coefficients: Vec<Buffer> = dropped.iter().zip(limbs..).map(coefficients).collect();
    let remainder = Remainder::new(&basis.moduli()[limbs..], coefficients);
    let mut lifted = Buffer::zeroed(basis.degree());
    for (j, (limb, ntt)) in poly.limbs_mut().zip(&basis.ntts()[..limbs]).enumerate() {
        let modulus = ntt.modulus();
        remainder.lift(modulus, &mut lifted);
        evaluate(ntt, &mut lifted);
        modulus.sub_mul_slice(limb, &lifted, basis.inverse_of_last(limbs, j));
    }
    poly.truncate_limbs(limbs);
}

/// A polynomial modulo the product of some primes.
enum Remainder<'a> {
    /// Modulo one prime.
    One(&'a Modulus, Buffer),
    /// Its digits, and how often the product is subtracted from their sum.
    Many(Conversion, Vec<Buffer>),
}

impl<'a> Remainder<'a> {
    fn new(moduli: &'a [Modulus], mut residues: Vec<Buffer>) -> Self {
        if let ([modulus], [residues]) = (moduli, &mut residues[..]) {
            return Self::One(modulus, std::mem::take(residues));
        }
        let conversion = Conversion::new(moduli);
        for ((modulus, digits), inverse) in moduli.iter().zip(&mut residues).zip(conversion.inverses()) {
            modulus.mul_scalar_slice(digits, *inverse);
        }
        let mut wraps = Buffer::zeroed(residues[0].len());
        conversion.wraps(&mut wraps, &residues.iter().map(|digits| &**digits).collect::<Vec<_>>());
        residues.push(wraps);
        Self::Many(conversion, residues)
    }

    /// Its centred representative modulo another prime.
    fn lift(&self, modulus: &Modulus, out: &mut [u64]) {
        match self {
            Self::One(from, residues) => modulus.lift_centered_slice(out, residues, from),
            Self::Many(conversion, digits) => {
                let digits: Vec<&[u64]> = digits.iter().map(|digits| &**digits).collect();
                modulus.combine(out, &digits, &conversion.weights(modulus));
            }
        }
    }
}
