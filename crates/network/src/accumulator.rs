//! The rings in which layers accumulate.

use serde::{Deserialize, Serialize};

use crate::CompileError;

/// A ring `Z_m` in which a linear layer's sums live: modulo a prime, a power of two, or a product of primes.
///
/// Invariant: one of [`Accumulator::PRIMES`], [`Accumulator::small_powers_of_two`], [`Accumulator::powers_of_two`], [`Accumulator::of_chosen_sums`] or [`Accumulator::products`]. The primes are 1 mod 2^14, so that
/// their elements pack into the slots of a BFV plaintext of degree 8192, those of products 1 mod 2^16, for degree 32768. Signed values are
/// represented by their residues; see [`Accumulator::limit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Modulus", into = "Modulus")]
pub struct Accumulator {
    modulus: u128,
    bits: u32,
}

/// How a ring is written: its modulus, or the primes whose product it is.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Modulus {
    Whole(u64),
    Product(Vec<u64>),
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

    /// The rings modulo powers of two for bits and their sums, by size: 4 to 15 bits. No layer of ciphertexts takes them.
    pub fn small_powers_of_two() -> impl Iterator<Item = Self> {
        (SMALLEST_BITS..LEAST_BITS).map(|bits| Self { modulus: 1 << bits, bits })
    }

    /// The ring modulo a power of two for sums of numbers that bits choose: 44 bits. No layer of ciphertexts takes it.
    #[must_use]
    pub const fn of_chosen_sums() -> Self {
        Self { modulus: 1 << SUM_BITS, bits: SUM_BITS }
    }

    /// Every ring modulo a product of primes that a network may use, by size: one to three primes of one size each, 28 to 96 bits in all. Values
    /// modulo each prime are computed by themselves.
    pub fn products() -> impl Iterator<Item = Self> {
        let factors = (1..=MOST_FACTORS).flat_map(|count| FACTORS.iter().map(move |primes| &primes[..count]));
        let ring = |primes: &[u64]| {
            let modulus = primes.iter().map(|prime| u128::from(*prime)).product();
            Self { modulus, bits: u128::BITS - u128::leading_zeros(modulus) }
        };
        let mut rings: Vec<Self> = factors.map(ring).filter(|ring| ring.bits <= MOST_PRODUCT_BITS).collect();
        rings.sort_by_key(|ring| ring.bits);
        rings.into_iter()
    }

    /// The ring of a modulus.
    ///
    /// # Errors
    /// [`CompileError::UnknownModulus`] if no network may use it.
    pub fn from_modulus(modulus: u128) -> Result<Self, CompileError> {
        let powers = Self::small_powers_of_two().chain(Self::powers_of_two()).chain([Self::of_chosen_sums()]);
        let mut rings = Self::PRIMES.into_iter().chain(powers).chain(Self::products());
        rings.find(|ring| ring.modulus == modulus).ok_or(CompileError::UnknownModulus { modulus })
    }

    /// The modulus m.
    #[must_use]
    pub const fn modulus(self) -> u128 {
        self.modulus
    }

    /// The primes whose product the modulus is; none of another ring.
    #[must_use]
    pub fn factors(self) -> Option<&'static [u64]> {
        let mut sets = FACTORS.iter().flat_map(|primes| (1..=MOST_FACTORS).map(|count| &primes[..count]));
        sets.find(|primes| primes.iter().map(|prime| u128::from(*prime)).product::<u128>() == self.modulus)
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

    /// The largest absolute value that the nonlinear protocols handle before a rescale by `shift` bits (0: none), whatever they compute of it.
    ///
    /// Modulo a prime of b bits, with h = min(p - 2^(b-1), 2^(b-1)), |x| < h - 2^(shift-1): the top bit of the b-bit two's complement is
    /// then the sign, and the rounding constant cannot change it. Modulo 2^l, |x| < 2^(l-2) - 2^shift - 1: whatever a rescale adds, what
    /// is left is below a quarter of its ring, and differences of two such values have a sign. Negative when nothing fits.
    #[must_use]
    pub const fn limit(self, shift: u32) -> i128 {
        if self.is_power_of_two() {
            return room_below(self.bits - 2, shift);
        }
        let half = 1_i128 << (self.bits - 1);
        let below = self.modulus as i128 - half;
        let smaller = if below < half { below } else { half };
        smaller - rounding_constant(shift) as i128 - 1
    }

    /// As [`Self::limit`] where a party commits its share bit by bit, in either of two ways where the share is below 2^b - p: modulo a prime, |x| < 2p - 3 * 2^(b-1) - 2^(shift-1),
    /// so that circuits read both alike. Negative when nothing fits.
    #[must_use]
    pub const fn limit_committed(self, shift: u32) -> i128 {
        if self.is_power_of_two() {
            return self.limit(shift);
        }
        let half = 1_i128 << (self.bits - 1);
        2 * self.modulus as i128 - 3 * half - rounding_constant(shift) as i128 - 1
    }

    /// The largest absolute value that the ends of a function's domain may have: modulo 2^l a quarter of it, from which values within the limit are less than
    /// half of the ring away.
    #[must_use]
    pub const fn domain_limit(self) -> i128 {
        if self.is_power_of_two() { 1 << (self.bits - 2) } else { self.limit(0) }
    }

    /// As [`Self::limit`] where no differences of two values are taken: modulo 2^l, |x| < 2^(l-1) - 2^shift - 1, so that the top bit is the sign.
    #[must_use]
    pub const fn limit_without_differences(self, shift: u32) -> i128 {
        if self.is_power_of_two() { room_below(self.bits - 1, shift) } else { self.limit(shift) }
    }

    /// The most bits, sign included, of the weights of a layer with sums here: the noise of a layer modulo a power of two grows with its
    /// weights, and what the ring's bits say of them is all that a client knows. Modulo a prime no noise depends on them.
    #[must_use]
    pub const fn weight_bits(self) -> u32 {
        if !self.is_power_of_two() {
            return MOST_WEIGHT_BITS;
        }
        match self.bits {
            ..LEAST_BITS => 2,
            LEAST_BITS..=26 => 12,
            27..=29 => self.bits - 14,
            30..=MOST_BITS => 16,
            _ => i32::BITS,
        }
    }

    /// How far the sums of a linear layer may be from their exact values: faithful layers modulo a power of two may be off by one.
    #[must_use]
    pub const fn sum_error(self) -> i64 {
        self.is_power_of_two() as i64
    }

    /// A value, brought back into the ring if it is beyond `limit`, which is within m/2; and whether it was.
    #[must_use]
    pub const fn confine(self, value: i128, limit: i128) -> (i128, bool) {
        let is_beyond = value.abs() > limit;
        (if is_beyond { self.centre(value) } else { value }, is_beyond)
    }

    /// The product of two values, likewise; also where it is beyond 128 bits.
    #[must_use]
    pub const fn product(self, a: i128, b: i128, limit: i128) -> (i128, bool) {
        if let Some(product) = a.checked_mul(b) {
            return self.confine(product, limit);
        }
        // Bit by bit from the top: twice a residue and one more stay far below 128 bits.
        let (m, b) = (self.modulus as i128, self.centre(b));
        let (mut sum, mut bit) = (0_i128, i128::BITS - b.unsigned_abs().leading_zeros());
        while bit > 0 {
            bit -= 1;
            sum = 2 * sum % m;
            if b.unsigned_abs() >> bit & 1 == 1 {
                sum = (sum + a % m) % m;
            }
        }
        (self.centre(if b < 0 { -sum } else { sum }), true)
    }

    /// The representative of `value` in [-(m-1)/2, (m-1)/2] for an odd m, in [-2^(l-1), 2^(l-1)) for 2^l.
    #[must_use]
    pub const fn centre(self, value: i128) -> i128 {
        let m = self.modulus as i128;
        let residue = value.rem_euclid(m);
        if residue > (m - 1) / 2 { residue - m } else { residue }
    }
}

/// The smallest ring modulo a power of two for bits.
const SMALLEST_BITS: u32 = 4;

/// The smallest and the largest ring modulo a power of two for whatever there is.
const LEAST_BITS: u32 = 16;
const MOST_BITS: u32 = 41;

/// The ring modulo a power of two for sums of numbers that bits choose.
const SUM_BITS: u32 = 44;

/// The most bits of a weight whose ring does not say less.
const MOST_WEIGHT_BITS: u32 = 24;

/// Primes = 1 mod 2^16 of one size: the largest below 2^28, 2^31, 2^34, 2^37 and 2^40 that are no rings of [`Accumulator::PRIMES`].
const FACTORS: [[u64; MOST_FACTORS]; 5] = [
    [268_238_849, 268_042_241, 267_059_201],
    [2_147_352_577, 2_146_959_361, 2_146_041_857],
    [17_179_672_577, 17_179_410_433, 17_176_854_529],
    [137_438_691_329, 137_437_511_681, 137_436_659_713],
    [1_099_510_054_913, 1_099_507_695_617, 1_099_506_515_969],
];
const MOST_FACTORS: usize = 3;

/// Values of more bits could leave what the reference adds up in.
const MOST_PRODUCT_BITS: u32 = 96;

impl TryFrom<Modulus> for Accumulator {
    type Error = CompileError;

    fn try_from(modulus: Modulus) -> Result<Self, CompileError> {
        let unknown = |modulus| CompileError::UnknownModulus { modulus };
        match modulus {
            Modulus::Whole(modulus) => Self::from_modulus(modulus.into()),
            Modulus::Product(primes) => {
                let product =
                    primes.iter().try_fold(1_u128, |product, prime| product.checked_mul((*prime).into()));
                let ring = Self::from_modulus(product.unwrap_or(0))?;
                // Any other way to write it would be another file of the same network.
                if ring.factors() == Some(&primes) { Ok(ring) } else { Err(unknown(ring.modulus)) }
            }
        }
    }
}

impl From<Accumulator> for Modulus {
    fn from(ring: Accumulator) -> Self {
        ring.factors().map_or(Self::Whole(ring.modulus as u64), |primes| Self::Product(primes.to_vec()))
    }
}

/// The largest x below `2^bits - 2^shift - 1`.
const fn room_below(bits: u32, shift: u32) -> i128 {
    let shift = if shift < 62 { shift } else { 62 };
    (1_i128 << bits) - (1_i128 << shift) - 2
}

/// 2^(shift-1), or 0 for no shift; saturates far outside any ring.
#[must_use]
pub const fn rounding_constant(shift: u32) -> i64 {
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
            assert_eq!(128 - ring.modulus().leading_zeros(), ring.bits());
            assert_eq!(ring.modulus() % (1 << 14), 1);
            assert!(is_prime(ring.modulus() as u64) && !ring.is_power_of_two(), "{}", ring.modulus());
            assert_eq!(ring.factors(), None);
        }
    }

    fn is_prime(n: u64) -> bool {
        (2..=n.isqrt()).all(|d| !n.is_multiple_of(d))
    }

    #[test]
    fn products_are_of_different_primes_and_written_by_them() {
        assert!(FACTORS.iter().flatten().all(|prime| prime % (1 << 16) == 1 && is_prime(*prime)));
        let rings: Vec<Accumulator> = Accumulator::products().collect();
        assert!(rings.is_sorted_by_key(|ring| ring.bits()));
        assert_eq!(
            rings.iter().map(|ring| ring.bits()).collect::<Vec<_>>(),
            [28, 31, 34, 37, 40, 56, 62, 68, 74, 80, 84, 93]
        );
        for ring in rings {
            let factors = ring.factors().unwrap();
            assert_eq!(factors.iter().map(|prime| u128::from(*prime)).product::<u128>(), ring.modulus());
            let json = serde_json::to_string(&ring).unwrap();
            assert_eq!(json, serde_json::to_string(factors).unwrap());
            assert_eq!(serde_json::from_str::<Accumulator>(&json).unwrap(), ring);
            let half = (ring.modulus() / 2) as i128;
            assert!(ring.limit(0) < half && ring.limit(0) > half / 10 * 9);
        }
        let [first, second, _] = FACTORS[1];
        for other in
            [vec![second, first], vec![first, first], vec![], vec![u64::MAX; 3], vec![first, FACTORS[2][0]]]
        {
            let json = serde_json::to_string(&other).unwrap();
            assert!(serde_json::from_str::<Accumulator>(&json).is_err(), "{json}");
        }
    }

    #[test]
    fn products_beyond_the_machine_come_back_into_the_ring() {
        for ring in Accumulator::products().filter(|ring| ring.bits() > 70) {
            let m = ring.modulus() as i128;
            for (a, b) in [(m / 2, m / 2), (-m / 2, m / 2), (m / 2, 3 - m / 2), (m / 2 - 7, -(m / 3))] {
                let (product, is_beyond) = ring.product(a, b, ring.limit(0));
                let modulo =
                    |x: i128| ring.factors().unwrap().iter().map(move |p| x.rem_euclid(i128::from(*p)));
                let times = |(p, (a, b)): (&u64, (i128, i128))| a * b % i128::from(*p);
                let expected = ring.factors().unwrap().iter().zip(modulo(a).zip(modulo(b))).map(times);
                assert!(is_beyond && modulo(product).eq(expected), "{a} {b}");
            }
            assert_eq!(ring.product(-3, 5, ring.limit(0)), (-15, false));
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
                let quarter = 1_i128 << (ring.bits() - shift - 2);
                for off in [-1, 0, 1] {
                    let (low, high) = (-limit + off, limit + off);
                    let faithful = i128::from(shift > 0);
                    assert!((high >> shift) + faithful < quarter && low >> shift > -quarter);
                }
            }
            assert!(ring.limit(ring.bits() - 2) < 0);
        }
    }

    /// Both ways of rounding, after a layer that is off by one, leave the sign in the top bit of the ring that is left.
    #[test]
    fn rescaled_values_of_which_no_differences_are_taken_keep_their_sign() {
        for ring in Accumulator::powers_of_two() {
            for shift in 0..ring.bits() - 2 {
                let limit = ring.limit_without_differences(shift);
                assert!(limit > ring.limit(shift) && limit < (ring.modulus() / 2) as i128);
                let half = 1_i128 << (ring.bits() - shift - 1);
                for off in [-1, 0, 1] {
                    let (low, high) = (-limit + off, limit + off);
                    let faithful = i128::from(shift > 0);
                    assert!((high >> shift) + faithful < half && low >> shift >= -half);
                }
            }
        }
        let prime = Accumulator::PRIMES[1];
        assert_eq!(prime.limit_without_differences(7), prime.limit(7));
    }

    #[test]
    fn centre_is_congruent_and_smallest() {
        for ring in [Accumulator::PRIMES[0], Accumulator::from_modulus(1 << 16).unwrap()] {
            let m = ring.modulus() as i128;
            for value in [0, 1, -1, m / 2, m / 2 + 1, -m / 2, m, 5 * m + 3, -7 * m - 2, i128::MAX, i128::MIN]
            {
                let centred = ring.centre(value);
                assert!(-m / 2 <= centred && centred <= (m - 1) / 2);
                assert_eq!((value % m - centred) % m, 0);
            }
        }
    }

    #[test]
    fn another_modulus_is_refused() {
        for modulus in [7, 1 << 3, 1 << 42, 1 << 49, (1 << 20) + 1, 0] {
            assert_eq!(Accumulator::from_modulus(modulus), Err(CompileError::UnknownModulus { modulus }));
        }
    }
}
