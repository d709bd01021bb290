//! Primality and roots of unity for parameters, which are public: variable time.

use crate::{Modulus, RingError};

/// Whether `n` is prime (deterministic Miller-Rabin, exact for every `u64`).
#[must_use]
pub fn is_prime(n: u64) -> bool {
    // These bases decide every 64-bit number: https://oeis.org/A014233.
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if n < 2 {
        return false;
    }
    if let Some(divisor) = BASES.iter().find(|p| n.is_multiple_of(**p)) {
        return n == *divisor;
    }
    let shift = (n - 1).trailing_zeros();
    BASES.iter().all(|base| passes(n, *base, shift))
}

/// One Miller-Rabin round; `n - 1 = 2^shift * odd`.
fn passes(n: u64, base: u64, shift: u32) -> bool {
    let mul = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(n)) as u64;
    let (mut power, mut square, mut exponent) = (1, base, (n - 1) >> shift);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = mul(power, square);
        }
        square = mul(square, square);
        exponent >>= 1;
    }
    if power == 1 || power == n - 1 {
        return true;
    }
    (1..shift).any(|_| {
        power = mul(power, power);
        power == n - 1
    })
}

/// A root of order `2n` mod `q`: `g^((q-1)/2n)` for the smallest `g >= 2` for which its `n`-th power is -1.
///
/// The choice is deterministic, so both parties find the same root.
pub(crate) fn negacyclic_root(modulus: &Modulus, n: usize) -> Result<u64, RingError> {
    let q = modulus.value();
    let order = 2 * n as u64;
    if q % order != 1 {
        return Err(RingError::NoRoot { q, n });
    }
    // Half of all g qualify, so the search ends after a few steps.
    (2..q)
        .map(|g| modulus.pow(g, (q - 1) / order))
        .find(|psi| modulus.pow(*psi, n as u64) == q - 1)
        .ok_or(RingError::NoRoot { q, n })
}
