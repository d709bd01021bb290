//! Arithmetic modulo one word-sized prime, in constant time.
//!
//! Barrett reduction for general products and Shoup's precomputed quotient for products by a known
//! factor ([Har14], <https://arxiv.org/abs/1205.2926>). No operation branches on, or indexes by, an operand.

use crate::RingError;
use crate::arch::Backend;
use crate::prime::is_prime;
use crate::product;

/// A prime modulus `2 <= q < 2^61`. Primes below `2^50` reach the fastest kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulus {
    q: u64,
    /// `floor((2^64 - 1) / q)`.
    ratio: u64,
    /// `floor((2^128 - 1) / q)`.
    wide_ratio: u128,
    backend: Backend,
}

/// A factor `w < q` with `floor(w * 2^64 / q)`, for repeated products by the same `w`.
#[derive(Clone, Copy, Debug)]
pub struct Shoup {
    /// The factor, `< q`.
    pub w: u64,
    /// `floor(w * 2^64 / q)`.
    pub quotient: u64,
}

impl Modulus {
    /// One more than the largest modulus the kernels with lazy reduction to `[0, 4q)` can take.
    pub const LIMIT: u64 = 1 << 61;

    /// Accepts a prime `2 <= q < 2^61` and chooses the fastest kernels of this machine for it.
    ///
    /// # Errors
    /// [`RingError::Modulus`] if `q` is not such a prime.
    pub fn new(q: u64) -> Result<Self, RingError> {
        if q >= Self::LIMIT || !is_prime(q) {
            return Err(RingError::Modulus { q });
        }
        let ratio = u64::MAX / q;
        let wide_ratio = u128::MAX / u128::from(q);
        Ok(Self { q, ratio, wide_ratio, backend: Backend::select(q) })
    }

    /// The same modulus with the kernels of `backend`, for tests and measurements.
    ///
    /// # Errors
    /// [`RingError::Backend`] if this machine has no such backend or it cannot serve `q`.
    #[doc(hidden)]
    pub fn with_backend(self, backend: Backend) -> Result<Self, RingError> {
        if backend.serves(self.q) {
            Ok(Self { backend, ..self })
        } else {
            Err(RingError::Backend { q: self.q })
        }
    }

    /// The prime `q`.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.q
    }

    /// Number of bits of `q`.
    #[must_use]
    pub fn bits(&self) -> u32 {
        u64::BITS - self.q.leading_zeros()
    }

    /// The kernels in use.
    #[doc(hidden)]
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// `a + b mod q` for `a, b < q`.
    #[must_use]
    #[inline]
    pub fn add(&self, a: u64, b: u64) -> u64 {
        reduce_once(a + b, self.q)
    }

    /// `a - b mod q` for `a, b < q`.
    #[must_use]
    #[inline]
    pub fn sub(&self, a: u64, b: u64) -> u64 {
        reduce_once(a + self.q - b, self.q)
    }

    /// `-a mod q` for `a < q`.
    #[must_use]
    #[inline]
    pub fn neg(&self, a: u64) -> u64 {
        reduce_once(self.q - a, self.q)
    }

    /// `a * b mod q` for any `a` and `b`.
    #[must_use]
    #[inline]
    pub fn mul(&self, a: u64, b: u64) -> u64 {
        self.reduce_u128(product(a, b))
    }

    /// Prepares the factor `w` for [`Self::mul_shoup`]; `w` is reduced first.
    ///
    /// Variable time: for public factors.
    #[must_use]
    pub fn shoup(&self, w: u64) -> Shoup {
        let w = w % self.q;
        Shoup { w, quotient: ((u128::from(w) << 64) / u128::from(self.q)) as u64 }
    }

    /// `a * w mod q` for any `a`.
    #[must_use]
    #[inline]
    pub fn mul_shoup(&self, a: u64, w: Shoup) -> u64 {
        reduce_once(self.mul_shoup_lazy(a, w), self.q)
    }

    /// `a * w mod q`, in `[0, 2q)`, for any `a`.
    #[must_use]
    #[inline]
    pub(crate) fn mul_shoup_lazy(&self, a: u64, w: Shoup) -> u64 {
        let h = high(a, w.quotient);
        a.wrapping_mul(w.w).wrapping_sub(h.wrapping_mul(self.q))
    }

    /// `base^exponent mod q`. Variable time in the exponent, which must be public.
    #[must_use]
    pub fn pow(&self, base: u64, exponent: u64) -> u64 {
        let mut power = self.reduce(1);
        let mut square = self.reduce(base);
        let mut rest = exponent;
        while rest > 0 {
            if rest & 1 == 1 {
                power = self.mul(power, square);
            }
            square = self.mul(square, square);
            rest >>= 1;
        }
        power
    }

    /// `a^-1 mod q`; zero for `a = 0`.
    #[must_use]
    pub fn inverse(&self, a: u64) -> u64 {
        self.pow(a, self.q - 2)
    }

    /// `a mod q`.
    #[must_use]
    #[inline]
    pub fn reduce(&self, a: u64) -> u64 {
        let quotient = high(a, self.ratio);
        reduce_once(a.wrapping_sub(quotient.wrapping_mul(self.q)), self.q)
    }

    /// `a mod q`.
    #[must_use]
    #[inline]
    pub fn reduce_u128(&self, a: u128) -> u64 {
        // The estimate is the true quotient or one less, so one subtraction is left; its low word suffices.
        let quotient = high_wide(a, self.wide_ratio);
        reduce_once((a as u64).wrapping_sub(quotient.wrapping_mul(self.q)), self.q)
    }

    /// `a mod q` for a signed `a`.
    #[must_use]
    #[inline]
    pub fn reduce_signed(&self, a: i64) -> u64 {
        let magnitude = self.reduce(a.unsigned_abs());
        let sign = (a >> 63) as u64;
        (magnitude & !sign) | (self.neg(magnitude) & sign)
    }

    /// The representative of `a < q` in `(-q/2, q/2]`.
    #[must_use]
    #[inline]
    pub fn center(&self, a: u64) -> i64 {
        let half = self.q / 2;
        let above = (half.wrapping_sub(a) as i64 >> 63) as u64;
        a.wrapping_sub(self.q & above) as i64
    }
}

/// `x mod q` for `x < 2q`, by a masked subtraction.
#[inline]
pub(crate) fn reduce_once(x: u64, q: u64) -> u64 {
    let difference = x.wrapping_sub(q);
    let borrow = (difference as i64 >> 63) as u64;
    difference.wrapping_add(q & borrow)
}

/// The high word of a product.
#[inline]
pub(crate) fn high(a: u64, b: u64) -> u64 {
    (product(a, b) >> 64) as u64
}

/// The low word of `floor(a * b / 2^128)`.
#[inline]
fn high_wide(a: u128, b: u128) -> u64 {
    let (a0, a1) = (a as u64, (a >> 64) as u64);
    let (b0, b1) = (b as u64, (b >> 64) as u64);
    let low = u128::from(high(a0, b0));
    let middle = product(a0, b1) + low;
    let cross = product(a1, b0) + u128::from(middle as u64);
    a1.wrapping_mul(b1).wrapping_add((middle >> 64) as u64).wrapping_add((cross >> 64) as u64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const PRIMES: [u64; 7] = [2, 3, 17, 114_689, 1_125_899_903_827_969, (1 << 50) - 27, (1 << 61) - 1];

    #[test]
    fn only_primes_below_the_limit_are_accepted() {
        for q in [0, 1, 4, 561, 1 << 50, (1 << 61) - 3] {
            assert_eq!(Modulus::new(q), Err(RingError::Modulus { q }));
        }
        assert!(PRIMES.iter().all(|q| Modulus::new(*q).is_ok()));
    }

    proptest! {
        #[test]
        fn operations_equal_wide_division(index in 0..PRIMES.len(), a: u64, b: u64, c: u128) {
            let q = PRIMES[index];
            let modulus = Modulus::new(q).unwrap();
            let wide = |x: u128| (x % u128::from(q)) as u64;
            let (x, y) = (a % q, b % q);
            prop_assert_eq!(modulus.add(x, y), wide(u128::from(x) + u128::from(y)));
            prop_assert_eq!(modulus.sub(x, y), wide(u128::from(x) + u128::from(q - y)));
            prop_assert_eq!(modulus.neg(x), (q - x) % q);
            prop_assert_eq!(modulus.mul(a, b), wide(u128::from(a) * u128::from(b)));
            prop_assert_eq!(modulus.mul_shoup(a, modulus.shoup(b)), wide(u128::from(a) * u128::from(b)));
            prop_assert_eq!(modulus.reduce(a), a % q);
            prop_assert_eq!(modulus.reduce_u128(c), wide(c));
            prop_assert_eq!(modulus.reduce_signed(a as i64), i128::from(a as i64).rem_euclid(i128::from(q)) as u64);
            prop_assert_eq!(modulus.mul(x, modulus.inverse(x)), u64::from(x != 0));
            let centered = i128::from(modulus.center(x));
            prop_assert_eq!(centered.rem_euclid(i128::from(q)) as u64, x);
            prop_assert!(2 * centered > -i128::from(q) && 2 * centered <= i128::from(q));
        }
    }

    #[test]
    fn extremes_reduce() {
        for q in PRIMES {
            let modulus = Modulus::new(q).unwrap();
            assert_eq!(modulus.reduce(u64::MAX), u64::MAX % q);
            assert_eq!(u128::from(modulus.reduce_u128(u128::MAX)), u128::MAX % u128::from(q));
            assert_eq!(
                modulus.reduce_signed(i64::MIN),
                i128::from(i64::MIN).rem_euclid(i128::from(q)) as u64
            );
        }
    }
}
