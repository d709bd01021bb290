//! Residues modulo other primes of the integer that residues stand for ([HPS19](https://eprint.iacr.org/2018/117)).
//!
//! With `Q` the product of the primes `q_i` and digits `y_i = x (Q/q_i)^-1 mod q_i`, the centred representative is
//! `x = sum_i y_i (Q/q_i) - v Q` for `v = round(sum_i y_i / q_i)`: modulo another prime a sum of products by constants. HPS finds `v` in
//! floating point; here fractions are of fixed point, which is the same on every backend.

use crate::Modulus;
use crate::arch;
use crate::arch::Backend;
use crate::modulus::Shoup;

impl Modulus {
    /// `out[i] = sum_k a[k][i] * w[k] mod q`, for words `a` below `2^52`, which need not be reduced, and public constants `w` in `[0, q)`.
    ///
    /// # Panics
    /// If the numbers of vectors and constants differ or are more than some thousand, or lengths differ or are no multiples of 8.
    pub fn combine(&self, out: &mut [u64], a: &[&[u64]], w: &[u64]) {
        assert_eq!(a.len(), w.len(), "one constant for each vector");
        assert!(a.len() < MOST_TERMS, "more products than two words hold");
        arch::combine(self, out, a, w);
    }
}

/// The way from residues modulo some primes to residues modulo others. All of it is public.
#[derive(Clone, Debug)]
pub struct Conversion {
    moduli: Vec<Modulus>,
    /// `(Q / q_i)^-1 mod q_i`.
    inverses: Vec<Shoup>,
    /// `floor(2^(52 + shift) / q_i)`.
    ratios: Vec<u64>,
    shift: u32,
    backend: Backend,
}

impl Conversion {
    /// From residues modulo these primes, below `2^50` each.
    ///
    /// # Panics
    /// If there is none, or one is too large.
    #[must_use]
    pub fn new(moduli: &[Modulus]) -> Self {
        let bits = moduli.iter().map(Modulus::bits);
        let (least, most) = (bits.clone().min().unwrap_or(0), bits.max().unwrap_or(0));
        assert!(least >= 2 && most <= 50, "primes below 2^50");
        let inverse = |(i, q): (usize, &Modulus)| q.shoup(q.inverse(product(without(moduli, i), q)));
        // Each is below 2^52.
        let shift = least - 1;
        let ratio = |q: &Modulus| ((1_u128 << (52 + shift)) / u128::from(q.value())) as u64;
        let same = moduli.iter().all(|q| q.backend() == moduli[0].backend());
        Self {
            inverses: moduli.iter().enumerate().map(inverse).collect(),
            ratios: moduli.iter().map(ratio).collect(),
            shift,
            backend: if same { moduli[0].backend() } else { Backend::PORTABLE },
            moduli: moduli.to_vec(),
        }
    }

    /// For each prime `(Q / q_i)^-1 mod q_i`, which makes a residue a digit.
    #[must_use]
    pub fn inverses(&self) -> &[Shoup] {
        &self.inverses
    }

    /// `v` of digits: for `l` primes of which the smallest has `b` bits, `round(sum_i y_i / q_i)`, or one less where that is within
    /// `1.25 l 2^(1-b)` above the middle between two integers. The representative lies in `[-Q/2, Q/2 + 1.25 l 2^(1-b) Q)`, then.
    ///
    /// # Panics
    /// If there is not one slice for each prime, or lengths differ or are no multiples of 8.
    pub fn wraps(&self, out: &mut [u64], digits: &[&[u64]]) {
        assert_eq!(digits.len(), self.ratios.len(), "one digit for each prime");
        arch::quotients(self.backend, out, digits, &self.ratios, self.shift);
    }

    /// What to [combine](Modulus::combine) digits, and `v` behind them, with: `Q / q_i` and `-Q` modulo `to`.
    #[must_use]
    pub fn weights(&self, to: &Modulus) -> Vec<u64> {
        let punctured = (0..self.moduli.len()).map(|i| product(without(&self.moduli, i), to));
        punctured.chain([to.neg(product(self.moduli.iter(), to))]).collect()
    }
}

fn without(moduli: &[Modulus], i: usize) -> impl Iterator<Item = &Modulus> {
    moduli[..i].iter().chain(&moduli[i + 1..])
}

/// The product of primes modulo another.
fn product<'a>(primes: impl Iterator<Item = &'a Modulus>, modulus: &Modulus) -> u64 {
    primes.fold(modulus.reduce(1), |product, prime| modulus.mul(product, prime.value()))
}

/// One more than the most terms of a sum.
const MOST_TERMS: usize = 1 << 12;
