//! Naive twins and a seeded generator.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // Each test file uses its own part.

use crate::{Backend, Modulus};
use lanner_testkit::TestRng;

/// Primes of many sizes, each 1 mod 2^9 at least, among them the largest below 2^50.
pub const PRIMES: [u64; 7] = [
    7681,
    114_689,
    33_538_049,
    137_438_822_401,
    1_125_899_903_827_969,
    2_251_799_813_554_177,
    2_305_843_009_211_596_801,
];

/// The modulus with each backend that this machine can run.
pub fn backends(q: u64) -> impl Iterator<Item = Modulus> {
    let modulus = Modulus::new(q).unwrap();
    Backend::available().iter().filter_map(move |backend| modulus.with_backend(*backend).ok())
}

/// `n` residues from a seed.
pub fn random(q: u64, n: usize, seed: u64) -> Vec<u64> {
    let mut values = vec![0; n];
    crate::sample::uniform_below(&Modulus::new(q).unwrap(), &mut values, &mut TestRng::new(seed));
    values
}

/// The product in `Z_q[X]/(X^n + 1)` by definition.
pub fn schoolbook(q: u64, a: &[u64], b: &[u64]) -> Vec<u64> {
    let n = a.len();
    let mul = |x: u64, y: u64| (u128::from(x) * u128::from(y) % u128::from(q)) as u64;
    let mut out = vec![0; n];
    for i in 0..n {
        for j in 0..n {
            let product = mul(a[i], b[j]);
            let signed = if i + j < n { product } else { (q - product) % q };
            out[(i + j) % n] = (out[(i + j) % n] + signed) % q;
        }
    }
    out
}
