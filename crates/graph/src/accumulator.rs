//! The rings in which layers accumulate.

use serde::{Deserialize, Serialize};

use crate::CompileError;

/// A ring `Z_m` in which a linear layer's sums live: modulo a prime, or a power of two.
///
/// Invariant: one of [`Accumulator::PRIMES`] or [`Accumulator::powers_of_two`]. The primes are 1 mod 2^14, so that their elements pack
/// into the slots of a BFV plaintext of degree 8192. Signed values are represented by their residues; see [`Accumulator::limit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Accumulator {
    modulus: u64,
    bits: u32,
}

impl Accumulator {
    /// Every prime ring that a network may use, by size.
    pub const PRIMES: [Self; 9] = [
        Self { modulus: 114_689, bits: 17 },
        Self { modulus: 1_032_193, bits: 20 },
        Self { modulus: 4_079_617, bits: 22 },
        Self { modulus: 8_273_921, bits: 23 },
        Self { modulus: 16_760_833, bits: 24 },
        Self { modulus: 33_538_049, bits: 25 },
        Self { modulus: 268_369_921, bits: 28 },
        Self { modulus: 1_073_692_673, bits: 30 },
        Self { modulus: 137_438_822_401, bits: 37 },
    ];

    /// Every ring modulo a power of two that a network may use, by size: 16 to 41 bits, the most that linear layers take.
    pub fn powers_of_two() -> impl Iterator<Item = Self> {
        (LEAST_BITS..=MOST_BITS).map(|bits| Self { modulus: 1 << bits, bits })
    }

    /// The ring of a modulus.
    ///
    /// # Errors
    /// [`CompileError::UnknownModulus`] if no network may use it.
    pub fn from_modulus(modulus: u64) -> Result<Self, CompileError> {
        let mut rings = Self::PRIMES.into_iter().chain(Self::powers_of_two());
        rings.find(|ring| ring.modulus == modulus).ok_or(CompileError::UnknownModulus { modulus })
    }

    /// The modulus m.
    #[must_use]
    pub const fn modulus(self) -> u64 {
        self.modulus
    }

    /// The bits of a residue.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// Whether the modulus is a power of two; a prime otherwise.
    #[must_use]
    pub const fn is_power_of_two(self) -> bool {
        self.modulus.is_power_of_two()
    }

    /// The largest absolute value that the nonlinear protocols handle before a rescale by `shift` bits (0: none).
    ///
    /// Modulo a prime of b bits, with h = min(p - 2^(b-1), 2^(b-1)), |x| < h - 2^(shift-1): the top bit of the b-bit two's complement is
    /// then the sign, and the rounding constant cannot change it. Modulo 2^l, |x| < 2^(l-2) - 2^shift - 1: whatever a rescale adds, what
    /// is left is below a quarter of its ring, and differences of two such values have a sign. Negative when nothing fits.
    #[must_use]
    pub const fn limit(self, shift: u32) -> i64 {
        if self.is_power_of_two() {
            let shift = if shift < 62 { shift } else { 62 };
            return (1_i64 << (self.bits - 2)) - (1_i64 << shift) - 2;
        }
        let half = 1_i64 << (self.bits - 1);
        let below = self.modulus as i64 - half;
        let smaller = if below < half { below } else { half };
        smaller - rounding_constant(shift) - 1
    }

    /// The most bits, sign included, of the weights of a layer with sums here: the noise of a layer modulo a power of two grows with its
    /// weights, and what the ring's bits say of them is all that a client knows. Modulo a prime no noise depends on them.
    #[must_use]
    pub const fn weight_bits(self) -> u32 {
        if !self.is_power_of_two() {
            return MOST_WEIGHT_BITS;
        }
        match self.bits {
            ..=26 => 12,
            27..=29 => self.bits - 14,
            _ => 16,
        }
    }

    /// How far the sums of a linear layer may be from their exact values: faithful layers modulo a power of two may be off by one.
    pub(crate) const fn sum_error(self) -> i64 {
        self.is_power_of_two() as i64
    }

    /// As [`Accumulator::centre`], for a value beyond 64 bits; what fits within m/2 is returned as it is.
    pub(crate) const fn reduce(self, value: i128) -> i64 {
        let m = self.modulus as i128;
        let residue = value.rem_euclid(m);
        (if residue > (m - 1) / 2 { residue - m } else { residue }) as i64
    }

    /// A product, brought back into the ring if it is beyond `limit`, which is within m/2; and whether it was.
    pub(crate) const fn confine(self, product: i128, limit: i64) -> (i64, bool) {
        let is_beyond = product.abs() > limit as i128;
        (if is_beyond { self.reduce(product) } else { product as i64 }, is_beyond)
    }

    /// The representative of `value` in [-(p-1)/2, (p-1)/2] for a prime p, in [-2^(l-1), 2^(l-1)) for 2^l.
    #[must_use]
    pub const fn centre(self, value: i64) -> i64 {
        self.reduce(value as i128)
    }
}

/// The smallest and the largest ring modulo a power of two.
const LEAST_BITS: u32 = 16;
const MOST_BITS: u32 = 41;

/// The most bits of a weight whose ring does not say less.
const MOST_WEIGHT_BITS: u32 = 24;

impl TryFrom<u64> for Accumulator {
    type Error = CompileError;

    fn try_from(modulus: u64) -> Result<Self, CompileError> {
        Self::from_modulus(modulus)
    }
}

impl From<Accumulator> for u64 {
    fn from(ring: Accumulator) -> Self {
        ring.modulus
    }
}

/// 2^(shift-1), or 0 for no shift; saturates far outside any ring.
pub(crate) const fn rounding_constant(shift: u32) -> i64 {
    match shift {
        0 => 0,
        1..=62 => 1_i64 << (shift - 1),
        _ => 1_i64 << 61,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prime_has_its_bits_and_is_one_mod_two_to_the_fourteen() {
        for ring in Accumulator::PRIMES {
            assert_eq!(64 - ring.modulus().leading_zeros(), ring.bits());
            assert_eq!(ring.modulus() % (1 << 14), 1);
            let is_prime = (2..=ring.modulus().isqrt()).all(|d| ring.modulus() % d != 0);
            assert!(is_prime && !ring.is_power_of_two(), "{}", ring.modulus());
        }
    }

    #[test]
    fn powers_of_two_have_sixteen_to_forty_one_bits() {
        let bits: Vec<u32> = Accumulator::powers_of_two().map(Accumulator::bits).collect();
        assert_eq!(bits, (16..=41).collect::<Vec<_>>());
        assert!(Accumulator::powers_of_two().all(super::Accumulator::is_power_of_two));
        assert_eq!(Accumulator::from_modulus(1 << 20).unwrap().bits(), 20);
    }

    #[test]
    fn limit_of_the_twenty_bit_ring_is_the_documented_one() {
        let ring = Accumulator::from_modulus(1_032_193).unwrap();
        assert_eq!(ring.limit(0), 507_904);
        assert_eq!(ring.limit(7), 507_904 - 64);
    }

    /// Both ways of rounding, after a layer that is off by one, leave less than a quarter of the ring that is left.
    #[test]
    fn rescaled_values_within_the_limit_leave_room_for_differences() {
        for ring in Accumulator::powers_of_two() {
            for shift in 0..ring.bits() - 3 {
                let limit = ring.limit(shift);
                assert!(limit > 0 || shift + 3 == ring.bits());
                let quarter = 1_i64 << (ring.bits() - shift - 2);
                for off in [-1, 0, 1] {
                    let (low, high) = (-limit + off, limit + off);
                    let faithful = i64::from(shift > 0);
                    assert!((high >> shift) + faithful < quarter && low >> shift > -quarter);
                }
            }
            assert!(ring.limit(ring.bits() - 2) < 0);
        }
    }

    #[test]
    fn centre_is_congruent_and_smallest() {
        for ring in [Accumulator::PRIMES[0], Accumulator::from_modulus(1 << 16).unwrap()] {
            let m = ring.modulus() as i64;
            for value in [0, 1, -1, m / 2, m / 2 + 1, -m / 2, m, 5 * m + 3, -7 * m - 2, i64::MAX, i64::MIN] {
                let centred = ring.centre(value);
                assert!(-m / 2 <= centred && centred <= (m - 1) / 2);
                assert_eq!((i128::from(value) - i128::from(centred)) % i128::from(m), 0);
            }
        }
    }

    #[test]
    fn another_modulus_is_refused() {
        for modulus in [7, 1 << 15, 1 << 49, (1 << 20) + 1, 0] {
            assert_eq!(Accumulator::from_modulus(modulus), Err(CompileError::UnknownModulus { modulus }));
        }
    }
}
