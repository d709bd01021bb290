//! Reduction modulo a plaintext modulus, which need not be prime: Barrett's method in constant time.

/// Reduction modulo any `2 <= t <= 2^41`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reducer {
    t: u64,
    /// Bits of `t`.
    bits: u32,
    /// `floor(4^bits / t)`.
    ratio: u128,
}

impl Reducer {
    /// The reducer of `t`, which the caller has checked to be in range.
    pub(crate) fn new(t: u64) -> Self {
        let bits = u64::BITS - t.leading_zeros();
        Self { t, bits, ratio: (1_u128 << (2 * bits)) / u128::from(t) }
    }

    /// `x mod t` for `x < 4^bits`, in particular for `x < t^2 + t`.
    #[inline]
    pub(crate) fn reduce(self, x: u128) -> u64 {
        let estimate = ((x >> (self.bits - 1)) * self.ratio) >> (self.bits + 1);
        // The estimate is the quotient or up to two less.
        let rest = (x - estimate * u128::from(self.t)) as u64;
        subtract_once(subtract_once(rest, self.t), self.t)
    }

    /// `a * b mod t` for `a, b < t`.
    #[inline]
    pub(crate) fn mul(self, a: u64, b: u64) -> u64 {
        self.reduce(u128::from(a) * u128::from(b))
    }
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

    proptest! {
        #[test]
        fn reduction_equals_the_remainder(t in 2_u64..=1 << 41, a: u64, b: u64) {
            let (a, b) = (a % t, b % t);
            let x = u128::from(a) * u128::from(b) + u128::from(t / 2);
            let reducer = Reducer::new(t);
            prop_assert_eq!(u128::from(reducer.reduce(x)), x % u128::from(t));
            prop_assert_eq!(u128::from(reducer.mul(a, b)), u128::from(a) * u128::from(b) % u128::from(t));
        }

        #[test]
        fn powers_of_two_and_extremes_reduce(bits in 1_u32..=41, a: u64) {
            for t in [1 << bits, (1_u64 << bits).max(3) - 1, (1 << (bits - 1)) + 1] {
                let reducer = Reducer::new(t);
                let most = u128::from(t - 1) * u128::from(t - 1) + u128::from(t / 2);
                prop_assert_eq!(u128::from(reducer.reduce(most)), most % u128::from(t));
                prop_assert_eq!(reducer.reduce(u128::from(a % t)), a % t);
            }
        }
    }
}
