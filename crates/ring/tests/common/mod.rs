//! Naive twins and a seeded generator.
#![allow(dead_code, clippy::unwrap_used)] // Each test file uses its own part.

use std::convert::Infallible;

use lanner_ring::{Backend, Modulus};
use rand_core::{TryCryptoRng, TryRng};

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
    Backend::ALL.into_iter().filter_map(move |backend| modulus.with_backend(backend).ok())
}

/// SplitMix64: good statistics, no secrecy, which tests do not need.
pub struct TestRng(pub u64);

impl TryRng for TestRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|word| word as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Ok(z ^ z >> 31)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            let word = self.try_next_u64()?.to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}

impl TryCryptoRng for TestRng {}

/// `n` residues from a seed.
pub fn random(q: u64, n: usize, seed: u64) -> Vec<u64> {
    let mut values = vec![0; n];
    lanner_ring::sample::uniform_below(&Modulus::new(q).unwrap(), &mut values, &mut TestRng(seed));
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
