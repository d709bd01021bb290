//! Whole numbers of up to 512 bits, bit by bit: slow and plain.

/// Words, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whole([u64; 8]);

impl From<u128> for Whole {
    fn from(value: u128) -> Self {
        Self([value as u64, (value >> 64) as u64, 0, 0, 0, 0, 0, 0])
    }
}

impl Whole {
    /// Modulo `2^128`.
    pub(super) fn low(self) -> u128 {
        u128::from(self.0[0]) | u128::from(self.0[1]) << 64
    }

    pub(super) fn below(self, other: Self) -> bool {
        self.0.iter().rev().lt(other.0.iter().rev())
    }

    pub(super) fn plus(self, other: Self) -> Self {
        let mut carry = 0;
        Self(std::array::from_fn(|i| {
            let sum = u128::from(self.0[i]) + u128::from(other.0[i]) + carry;
            carry = sum >> 64;
            sum as u64
        }))
    }

    /// `other` is not larger.
    pub(super) fn minus(self, other: Self) -> Self {
        assert!(!self.below(other));
        self.plus(Self(other.0.map(|word| !word))).plus(Self::from(1))
    }

    pub(super) fn times(self, factor: u64) -> Self {
        self.product(Self::from(u128::from(factor)))
    }

    pub(super) fn product(self, other: Self) -> Self {
        let set = (0..512).filter(|bit| other.0[bit / 64] >> (bit % 64) & 1 == 1);
        set.fold(Self::from(0), |sum, bit| sum.plus(self.shifted(bit as u32)))
    }

    pub(super) fn shifted(self, bits: u32) -> Self {
        (0..bits).fold(self, |value, _| value.plus(value))
    }

    /// `floor(self / 2^bits)`.
    pub(super) fn unshifted(self, bits: u32) -> Self {
        (0..bits).fold(self, |value, _| {
            Self(std::array::from_fn(|i| value.0[i] >> 1 | value.0.get(i + 1).unwrap_or(&0) << 63))
        })
    }

    /// Quotient and remainder.
    pub(super) fn divided(self, by: Self) -> (Self, Self) {
        let (mut quotient, mut rest) = (Self::from(0), Self::from(0));
        for bit in (0..512).rev() {
            let next = self.0[bit / 64] >> (bit % 64) & 1;
            rest = rest.plus(rest).plus(Self::from(u128::from(next)));
            quotient = quotient.plus(quotient);
            if !rest.below(by) {
                rest = rest.minus(by);
                quotient = quotient.plus(Self::from(1));
            }
        }
        (quotient, rest)
    }
}

#[test]
fn small_numbers_are_those_of_the_machine() {
    for (a, b) in [(7, 3), (1 << 90, 12345), (u128::from(u64::MAX), 10), (0, 1)] {
        let (x, y) = (Whole::from(a), Whole::from(b));
        assert_eq!((x.plus(y).low(), x.product(Whole::from(5)).low()), (a + b, a * 5));
        assert_eq!((x.divided(y).0.low(), x.divided(y).1.low()), (a / b, a % b));
        assert_eq!((x.shifted(9).low(), x.unshifted(9).low(), x.below(y)), (a << 9, a >> 9, a < b));
    }
}
