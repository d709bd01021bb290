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

/// A root of order `n` mod `q`: `g^((q-1)/n)` for the smallest `g >= 1` that gives one.
///
/// The choice is deterministic, so both parties find the same root.
pub(crate) fn root_of_order(modulus: &Modulus, n: usize) -> Result<u64, RingError> {
    let (q, order) = (modulus.value(), n as u64);
    if n == 0 || !(q - 1).is_multiple_of(order) {
        return Err(RingError::NoRootOfOrder { q, n });
    }
    let divisors = prime_divisors(order);
    let has_order = |root: &u64| divisors.iter().all(|divisor| modulus.pow(*root, order / divisor) != 1);
    // Every generator qualifies, and there is a small one.
    (1..q).map(|g| modulus.pow(g, (q - 1) / order)).find(has_order).ok_or(RingError::NoRootOfOrder { q, n })
}

fn prime_divisors(n: u64) -> Vec<u64> {
    let mut rest = n;
    let mut divisors = Vec::new();
    let mut divisor = 2;
    while rest > 1 {
        if !rest.is_multiple_of(divisor) {
            divisor += 1;
            continue;
        }
        rest /= divisor;
        if divisors.last() != Some(&divisor) {
            divisors.push(divisor);
        }
    }
    divisors
}
