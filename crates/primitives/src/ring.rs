//! The rings that shares live in.

use serde::{Deserialize, Serialize};

/// A ring of integers modulo a prime or a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ring {
    /// `Z_p`, `2 <= p < 2^63`.
    Prime(u64),
    /// `Z_2^l`, `1 <= l <= 64`.
    Pow2(u32),
}

impl Ring {
    /// Bits that hold any element.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Prime(p) => u64::BITS - (p - 1).leading_zeros(),
            Self::Pow2(l) => l,
        }
    }

    /// The largest element.
    #[must_use]
    pub const fn largest(self) -> u64 {
        match self {
            Self::Prime(p) => p.wrapping_sub(1),
            Self::Pow2(l) => mask(l),
        }
    }

    /// The number of elements.
    #[must_use]
    pub const fn modulus(self) -> u128 {
        match self {
            Self::Prime(p) => p as u128,
            Self::Pow2(l) => 1 << l,
        }
    }

    /// `a + b`; both reduced. Constant time.
    #[must_use]
    pub const fn add(self, a: u64, b: u64) -> u64 {
        match self {
            Self::Prime(p) => subtract_once(a + b, p),
            Self::Pow2(l) => a.wrapping_add(b) & mask(l),
        }
    }

    /// `-a`; reduced. Constant time.
    #[must_use]
    pub const fn neg(self, a: u64) -> u64 {
        match self {
            Self::Prime(p) => add_to_negative(a.wrapping_neg(), p),
            Self::Pow2(l) => a.wrapping_neg() & mask(l),
        }
    }

    /// `a - b`; both reduced. Constant time.
    #[must_use]
    pub const fn sub(self, a: u64, b: u64) -> u64 {
        self.add(a, self.neg(b))
    }

    /// A public factor, reduced. Preparing it takes a time that depends on it.
    #[must_use]
    pub const fn factor(self, value: u64) -> Factor {
        let quotient = match self {
            Self::Prime(p) => (((value as u128) << 64) / p as u128) as u64,
            Self::Pow2(_) => 0,
        };
        Factor { ring: self, value, quotient }
    }

    /// The element of a signed integer. Constant time.
    #[must_use]
    #[inline]
    pub const fn embed(self, x: i64) -> u64 {
        match self {
            // `x + 2^63` is not negative, whatever the sign of `x`: no choice between two values is left to the compiler.
            Self::Prime(p) => self.sub(reduce(x as u64 ^ 1 << 63, p), reduce(1 << 63, p)),
            Self::Pow2(l) => x as u64 & mask(l),
        }
    }

    /// The signed representative of least magnitude. Constant time.
    #[must_use]
    pub const fn signed(self, a: u64) -> i64 {
        match self {
            Self::Prime(p) => {
                let upper = (((p - 1) / 2).wrapping_sub(a) >> 63).wrapping_neg();
                a.wrapping_sub(p & upper) as i64
            }
            Self::Pow2(l) => (a << (64 - l)) as i64 >> (64 - l),
        }
    }

    /// Whether `a` is a reduced element.
    #[must_use]
    pub const fn contains(self, a: u64) -> bool {
        a <= self.largest()
    }
}

/// A public factor with its quotient by the modulus ([Har14](https://arxiv.org/abs/1205.2926)): products are reduced without a division,
/// whose time would tell about the other factor.
#[derive(Clone, Copy, Debug)]
pub struct Factor {
    ring: Ring,
    value: u64,
    /// Over `Z_p`: `floor(value 2^64 / p)`.
    quotient: u64,
}

impl Factor {
    /// The product with any `a`; reduced. Constant time.
    #[must_use]
    pub const fn times(self, a: u64) -> u64 {
        let product = a.wrapping_mul(self.value);
        match self.ring {
            Ring::Prime(p) => {
                // Short of a value / p by less than 2, so that the rest is below 2p.
                let quotient = ((a as u128 * self.quotient as u128) >> 64) as u64;
                subtract_once(product.wrapping_sub(quotient.wrapping_mul(p)), p)
            }
            Ring::Pow2(l) => product & mask(l),
        }
    }
}

/// `a mod m` for `m < 2^63`, by multiplication with a public quotient.
const fn reduce(a: u64, m: u64) -> u64 {
    // Short of a / m by less than 2: u64::MAX / m is short of 2^64 / m by at most 1, and the product is rounded down.
    let quotient = ((a as u128 * (u64::MAX / m) as u128) >> 64) as u64;
    subtract_once(a - quotient * m, m)
}

/// `a mod m` for `a < 2m` and `m < 2^63`.
const fn subtract_once(a: u64, m: u64) -> u64 {
    add_to_negative(a.wrapping_sub(m), m)
}

/// `a`, or `a + m` if `a` is negative as a signed integer.
///
/// The sign is spread by a shift. A comparison in its place is compiled into a branch in long loops.
const fn add_to_negative(a: u64, m: u64) -> u64 {
    a.wrapping_add(m & (a as i64 >> 63) as u64)
}

const fn mask(l: u32) -> u64 {
    u64::MAX >> (64 - l)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edge_values_wrap() {
        for ring in [Ring::Prime(1_032_193), Ring::Pow2(20), Ring::Pow2(64), Ring::Prime(17)] {
            let largest = ring.neg(1);
            assert_eq!(ring.add(largest, 1), 0);
            assert_eq!(ring.sub(0, 1), largest);
            assert_eq!(ring.signed(largest), -1);
            assert_eq!(ring.embed(-1), largest);
            assert_eq!(ring.neg(0), 0);
            assert!(ring.contains(largest));
        }
    }

    #[test]
    fn embedding_is_reduction() {
        for p in [17, 1_032_193, 137_438_822_401] {
            let edges = [0, 1, -1, p - 1, 1 - p, p, -p, p + 1, -p - 1, 5 * p + 3, i64::MAX, i64::MIN];
            for x in edges {
                assert_eq!(Ring::Prime(p as u64).embed(x), i128::from(x).rem_euclid(i128::from(p)) as u64);
            }
        }
    }

    #[test]
    fn elements_of_signed_integers_are_congruent_to_them() {
        for p in [2, 3, 17, 1_032_193, 137_438_822_401, (1 << 62) + 1, (1 << 63) - 1] {
            let ring = Ring::Prime(p);
            let near = |x: i64| [x.wrapping_sub(1), x, x.wrapping_add(1)];
            let edges =
                [0, p as i64, -(p as i64), i64::MAX, i64::MIN, (p / 2) as i64, 1 << 62, 12_345_678_901];
            for x in edges.into_iter().flat_map(near) {
                let element = ring.embed(x);
                assert!(ring.contains(element));
                assert_eq!(i128::from(element), i128::from(x).rem_euclid(i128::from(p)), "{x} mod {p}");
                let signed = i128::from(ring.signed(element));
                assert_eq!((signed - i128::from(x)) % i128::from(p), 0);
                assert!(2 * signed.abs() <= i128::from(p));
            }
        }
    }

    #[test]
    fn products_are_the_remainders() {
        let primes = [2, 3, 17, 1_032_193, 137_438_822_401, (1 << 62) + 1, (1 << 63) - 25].map(Ring::Prime);
        for ring in primes.into_iter().chain([1, 2, 20, 63, 64].map(Ring::Pow2)) {
            let modulus = ring.modulus();
            let top = (modulus - 1) as u64;
            let edges = [0, 1, 2, 3, top / 2, top / 2 + 1, top - 1, top];
            for b in edges.into_iter().filter(|b| ring.contains(*b)) {
                let factor = ring.factor(b);
                for a in edges.into_iter().chain([u64::MAX, u64::MAX - 1, 1 << 63, 0x9e37_79b9_7f4a_7c15]) {
                    let product = u128::from(a) * u128::from(b) % modulus;
                    assert_eq!(u128::from(factor.times(a)), product, "{a} {b} in {ring:?}");
                }
            }
        }
    }

    #[test]
    fn signed_splits_the_prime_ring_at_its_middle() {
        let p = 1_032_193;
        assert_eq!(Ring::Prime(p).signed((p - 1) / 2), 516_096);
        assert_eq!(Ring::Prime(p).signed(p.div_ceil(2)), -516_096);
    }
}
