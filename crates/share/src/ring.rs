//! The ring that a share lives in.

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
            Self::Prime(p) => subtract_once(p - a, p),
            Self::Pow2(l) => a.wrapping_neg() & mask(l),
        }
    }

    /// `a - b`; both reduced. Constant time.
    #[must_use]
    pub const fn sub(self, a: u64, b: u64) -> u64 {
        self.add(a, self.neg(b))
    }

    /// The element of a signed integer. Constant time for `|x| < p`, as checked inputs are.
    #[must_use]
    pub const fn embed(self, x: i64) -> u64 {
        match self {
            Self::Prime(p) => {
                let p = p as i64;
                let small = if -p < x && x < p { x } else { x % p };
                (small + (p & (small >> 63))) as u64
            }
            Self::Pow2(l) => x as u64 & mask(l),
        }
    }

    /// The signed representative of least magnitude.
    #[must_use]
    pub const fn signed(self, a: u64) -> i64 {
        match self {
            Self::Prime(p) if a > (p - 1) / 2 => a as i64 - p as i64,
            Self::Prime(_) => a as i64,
            Self::Pow2(l) => (a << (64 - l)) as i64 >> (64 - l),
        }
    }

    /// Whether `a` is a reduced element.
    #[must_use]
    pub const fn contains(self, a: u64) -> bool {
        match self {
            Self::Prime(p) => a < p,
            Self::Pow2(l) => a <= mask(l),
        }
    }
}

/// `a mod m` for `a < 2m < 2^64`, without a branch.
const fn subtract_once(a: u64, m: u64) -> u64 {
    let (difference, borrow) = a.overflowing_sub(m);
    difference.wrapping_add(m & (borrow as u64).wrapping_neg())
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
    fn signed_splits_the_prime_ring_at_its_middle() {
        let p = 1_032_193;
        assert_eq!(Ring::Prime(p).signed((p - 1) / 2), 516_096);
        assert_eq!(Ring::Prime(p).signed(p.div_ceil(2)), -516_096);
    }
}
