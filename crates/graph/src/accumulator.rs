//! The prime rings in which layers accumulate.

use serde::{Deserialize, Serialize};

use crate::CompileError;

/// A ring `Z_p` in which a linear layer's sums live, with the bit width of its circuits.
///
/// Invariant: one of [`Accumulator::ALL`]; p is a prime of `bits` bits and p = 1 mod 2^14, so that its elements pack into the slots of
/// a BFV plaintext of degree 8192. Signed values are represented by their residues; see [`Accumulator::limit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Accumulator {
    prime: u64,
    bits: u32,
}

impl Accumulator {
    /// Every ring that a network may use, by size.
    pub const ALL: [Self; 9] = [
        Self { prime: 114_689, bits: 17 },
        Self { prime: 1_032_193, bits: 20 },
        Self { prime: 4_079_617, bits: 22 },
        Self { prime: 8_273_921, bits: 23 },
        Self { prime: 16_760_833, bits: 24 },
        Self { prime: 33_538_049, bits: 25 },
        Self { prime: 268_369_921, bits: 28 },
        Self { prime: 1_073_692_673, bits: 30 },
        Self { prime: 137_438_822_401, bits: 37 },
    ];

    /// The ring of a prime.
    ///
    /// # Errors
    /// [`CompileError::UnknownPrime`] if the prime is not in [`Accumulator::ALL`].
    pub fn from_prime(prime: u64) -> Result<Self, CompileError> {
        Self::ALL.into_iter().find(|ring| ring.prime == prime).ok_or(CompileError::UnknownPrime { prime })
    }

    /// The prime p.
    #[must_use]
    pub const fn prime(self) -> u64 {
        self.prime
    }

    /// The bits of a residue: the width of the circuits on this ring.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// The largest absolute value that the circuits handle before a rescale by `shift` bits (0: none).
    ///
    /// With h = min(p - 2^(b-1), 2^(b-1)), values satisfy |x| < h - 2^(shift-1): the top bit of the b-bit two's complement is then the
    /// sign, and the rounding constant cannot change it. Negative when nothing fits.
    #[must_use]
    pub const fn limit(self, shift: u32) -> i64 {
        let half = 1_i64 << (self.bits - 1);
        let below = self.prime as i64 - half;
        let smaller = if below < half { below } else { half };
        smaller - rounding_constant(shift) - 1
    }

    /// As [`Accumulator::centre`], for a value beyond 64 bits; what fits within p/2 is returned as it is.
    pub(crate) const fn reduce(self, value: i128) -> i64 {
        let p = self.prime as i128;
        let residue = value.rem_euclid(p);
        (if residue > (p - 1) / 2 { residue - p } else { residue }) as i64
    }

    /// The representative of `value` mod p in [-(p-1)/2, (p-1)/2].
    #[must_use]
    pub const fn centre(self, value: i64) -> i64 {
        let p = self.prime as i64;
        let residue = value.rem_euclid(p);
        if residue > (p - 1) / 2 { residue - p } else { residue }
    }
}

impl TryFrom<u64> for Accumulator {
    type Error = CompileError;

    fn try_from(prime: u64) -> Result<Self, CompileError> {
        Self::from_prime(prime)
    }
}

impl From<Accumulator> for u64 {
    fn from(ring: Accumulator) -> Self {
        ring.prime
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
        for ring in Accumulator::ALL {
            assert_eq!(64 - ring.prime().leading_zeros(), ring.bits());
            assert_eq!(ring.prime() % (1 << 14), 1);
            let is_prime = (2..=ring.prime().isqrt()).all(|d| ring.prime() % d != 0);
            assert!(is_prime, "{}", ring.prime());
        }
    }

    #[test]
    fn limit_of_the_twenty_bit_ring_is_the_documented_one() {
        let ring = Accumulator::from_prime(1_032_193).unwrap();
        assert_eq!(ring.limit(0), 507_904);
        assert_eq!(ring.limit(7), 507_904 - 64);
    }

    #[test]
    fn centre_is_congruent_and_smallest() {
        let ring = Accumulator::ALL[0];
        let p = ring.prime() as i64;
        for value in [0, 1, -1, p / 2, p / 2 + 1, -p / 2, p, 5 * p + 3, -7 * p - 2, i64::MAX, i64::MIN] {
            let centred = ring.centre(value);
            assert!(centred.abs() <= p / 2);
            assert_eq!((i128::from(value) - i128::from(centred)) % i128::from(p), 0);
        }
    }

    #[test]
    fn a_prime_outside_the_list_is_refused() {
        assert_eq!(Accumulator::from_prime(7), Err(CompileError::UnknownPrime { prime: 7 }));
    }
}
