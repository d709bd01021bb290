//! How far what the client sees may be from what can be said without the weights.

/// A bound on a statistical distance, added up over ciphertexts as docs/protocols/flooding.md proves: squares add.
///
/// Flooded coefficients are far from a simulation by what their noise is of their flooding. Over independent floodings the squares of
/// Hellinger distances add, so that `n` ciphertexts within `2^-x` each are within `2^-x sqrt(n)` together, however later ones depend on
/// earlier ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Distance {
    square: f64,
}

impl Distance {
    /// Nothing is told: uniform masks, or nothing is sent.
    pub const NONE: Self = Self { square: 0.0 };

    /// `2^-bits`.
    #[must_use]
    pub fn of_bits(bits: f64) -> Self {
        Self { square: (-2.0 * bits).exp2() }
    }

    /// Of this and another together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { square: self.square + other.square }
    }

    /// Of `count` like this together.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self { square: self.square * count as f64 }
    }

    /// `x` where this is `2^-x`; infinite for [`Self::NONE`].
    #[must_use]
    pub fn bits(self) -> f64 {
        self.square.log2() / -2.0
    }
}

/// Every ciphertext is within `2^-56`: parameters that do not reach it are refused.
///
/// Then `2^20` predictions of 4096 ciphertexts each are within `2^-40`.
pub const CIPHERTEXT_BITS: f64 = 56.0;

#[cfg(test)]
#[allow(clippy::float_cmp)] // Powers of two are exact.
mod tests {
    use super::*;

    #[test]
    fn distances_add_by_their_squares() {
        let distance = Distance::of_bits(60.0);
        assert_eq!(distance.bits(), 60.0);
        assert_eq!(distance.times(4).bits(), 59.0);
        assert_eq!(distance.times(1 << 20).bits(), 50.0);
        assert_eq!(distance.times(3).and(distance), distance.times(4));
        // 2^-100 and eight times as much: nine, the square of three.
        let sum = Distance::of_bits(50.0).and(Distance::of_bits(48.5));
        assert_eq!(sum, Distance::of_bits(50.0).times(9));
        assert!((sum.bits() - (50.0 - 3_f64.log2())).abs() < 1e-12);
    }

    #[test]
    fn nothing_told_changes_nothing() {
        assert_eq!(Distance::NONE.bits(), f64::INFINITY);
        assert_eq!(Distance::NONE.and(Distance::of_bits(57.0)), Distance::of_bits(57.0));
        assert_eq!(Distance::of_bits(57.0).times(0), Distance::NONE);
    }

    #[test]
    fn the_least_of_a_ciphertext_serves_4096_of_them_2_to_the_20_times() {
        assert_eq!(Distance::of_bits(CIPHERTEXT_BITS).times(4096 << 20).bits(), 40.0);
    }
}
