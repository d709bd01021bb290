//! Reduction modulo a plaintext modulus, which need not be prime, in constant time.

/// Reduction modulo any `2 <= t <= 2^41`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reducer {
    t: u64,
    /// `floor((2^64 - 1) / t)`.
    ratio: u64,
}

/// A public factor modulo `t` with its quotient: Shoup's method.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factor {
    value: u64,
    /// `floor(value 2^64 / t)`.
    quotient: u64,
}

impl Reducer {
    /// The reducer of `t`, which the caller has checked to be in range.
    pub(crate) fn new(t: u64) -> Self {
        Self { t, ratio: u64::MAX / t }
    }

    /// Prepares a factor `< t`.
    pub(crate) fn factor(self, value: u64) -> Factor {
        Factor { value, quotient: ((u128::from(value) << 64) / u128::from(self.t)) as u64 }
    }

    /// `x mod t`.
    #[inline]
    pub(crate) fn reduce(self, x: u64) -> u64 {
        // The estimate is the quotient or one less.
        let estimate = high(x, self.ratio);
        subtract_once(x.wrapping_sub(estimate.wrapping_mul(self.t)), self.t)
    }

    /// `a * factor mod t`.
    #[inline]
    pub(crate) fn mul(self, a: u64, factor: Factor) -> u64 {
        let estimate = high(a, factor.quotient);
        let rest = a.wrapping_mul(factor.value).wrapping_sub(estimate.wrapping_mul(self.t));
        subtract_once(rest, self.t)
    }

    /// `a + b mod t` for `a, b < t`.
    #[inline]
    pub(crate) fn add(self, a: u64, b: u64) -> u64 {
        subtract_once(a + b, self.t)
    }
}

/// The high word of a product.
#[inline]
fn high(a: u64, b: u64) -> u64 {
    (lanner_ring::product(a, b) >> 64) as u64
}

/// `x - t` if that is not negative, else `x`; for `x < 2^63`.
#[inline]
fn subtract_once(x: u64, t: u64) -> u64 {
    let difference = x.wrapping_sub(t);
    let borrow = ((difference as i64) >> 63) as u64;
    difference.wrapping_add(t & borrow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(t: u64, a: u64, b: u64) {
        let reducer = Reducer::new(t);
        assert_eq!(reducer.reduce(a), a % t);
        let (x, y) = (a % t, b % t);
        let product = (u128::from(a) * u128::from(y) % u128::from(t)) as u64;
        assert_eq!(reducer.mul(a, reducer.factor(y)), product);
        assert_eq!(reducer.add(x, y), (x + y) % t);
    }

    proptest! {
        #[test]
        fn reduction_equals_the_remainder(t in 2_u64..=1 << 41, a: u64, b: u64) {
            check(t, a, b);
        }

        #[test]
        fn powers_of_two_and_extremes_reduce(bits in 1_u32..=41, a: u64) {
            for t in [1 << bits, (1_u64 << bits).max(3) - 1, (1 << (bits - 1)) + 1] {
                for x in [0, t - 1, t, t + 1, u64::MAX - 1, u64::MAX] {
                    check(t, x, a);
                    check(t, a, x);
                }
            }
        }
    }
}
