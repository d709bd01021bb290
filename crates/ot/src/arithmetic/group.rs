use lanner_primitives::Block;

use crate::OtError;

/// The additive group `Z_m` of the shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// `m`, up to `2^64`.
    modulus: u128,
}

impl Group {
    /// `Z_m` for `2 <= m <= 2^50`, prime or not.
    ///
    /// # Errors
    /// [`OtError::Range`] if `m` is outside.
    pub const fn modulo(m: u64) -> Result<Self, OtError> {
        if m < 2 || m > 1 << 50 {
            return Err(OtError::Range { what: "modulus" });
        }
        Ok(Self { modulus: m as u128 })
    }

    /// `Z_(2^bits)` for `1 <= bits <= 64`.
    ///
    /// # Errors
    /// [`OtError::Range`] if `bits` is outside.
    pub const fn power_of_two(bits: u32) -> Result<Self, OtError> {
        if bits < 1 || bits > 64 {
            return Err(OtError::Range { what: "ring width" });
        }
        Ok(Self { modulus: 1 << bits })
    }

    /// The bits of an element on the wire: `ceil(log2 m)`.
    #[must_use]
    pub const fn bits(self) -> u32 {
        128 - (self.modulus - 1).leading_zeros()
    }

    /// Whether `a < m`.
    #[must_use]
    pub const fn contains(self, a: u64) -> bool {
        (a as u128) < self.modulus
    }

    /// `a + b` for elements below `m`.
    #[must_use]
    pub fn add(self, a: u64, b: u64) -> u64 {
        if let Ok(modulus) = u64::try_from(self.modulus)
            && modulus <= 1 << 63
        {
            let sum = (a + b).wrapping_sub(modulus);
            return sum.wrapping_add(modulus & (sum >> 63).wrapping_neg());
        }
        // Below 2m: one subtraction, undone by a mask where it borrows.
        let sum = (u128::from(a) + u128::from(b)).wrapping_sub(self.modulus);
        let borrow = (sum >> 127).wrapping_neg();
        sum.wrapping_add(self.modulus & borrow) as u64
    }

    /// `-a` for an element below `m`.
    #[must_use]
    pub fn negate(self, a: u64) -> u64 {
        self.add((self.modulus - u128::from(a) - 1) as u64, 1)
    }

    /// Maps a uniform block into the group: `floor(block * m / 2^128)`.
    #[must_use]
    pub fn map(self, block: Block) -> u64 {
        let (low, high) = (block.0 & u128::from(u64::MAX), block.0 >> 64);
        if self.modulus >> 64 == 1 {
            return high as u64;
        }
        // Below 2^128: (2^64 - 1) * m and a carry below m.
        ((high * self.modulus + ((low * self.modulus) >> 64)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_modular_at_the_edges() {
        let groups =
            [Group::modulo(2), Group::modulo(114_689), Group::modulo(1 << 50), Group::power_of_two(64)];
        for group in groups.map(Result::unwrap) {
            let top = (group.modulus - 1) as u64;
            for a in [0, 1, top / 2, top] {
                assert_eq!(group.add(a, group.negate(a)), 0);
                for b in [0, 1, top / 2, top] {
                    let sum = (u128::from(a) + u128::from(b)) % group.modulus;
                    assert_eq!(u128::from(group.add(a, b)), sum);
                }
            }
            assert_eq!(group.map(Block::ONES), top);
            assert_eq!(group.map(Block::ZERO), 0);
        }
    }

    #[test]
    fn widths_and_ranges_are_exact() {
        assert_eq!(Group::modulo(2).unwrap().bits(), 1);
        assert_eq!(Group::modulo(114_689).unwrap().bits(), 17);
        assert_eq!(Group::modulo(1 << 17).unwrap().bits(), 17);
        assert_eq!(Group::power_of_two(64).unwrap().bits(), 64);
        assert!(Group::modulo(1).is_err() && Group::modulo((1 << 50) + 1).is_err());
        assert!(Group::power_of_two(0).is_err() && Group::power_of_two(65).is_err());
    }

    #[test]
    fn the_map_is_the_floor() {
        for m in [3_u64, 114_689, (1 << 50) - 1] {
            let group = Group::modulo(m).unwrap();
            let step = u128::MAX / u128::from(m) + 1;
            for i in [1, u128::from(m) / 2, u128::from(m) - 1] {
                assert_eq!(u128::from(group.map(Block(i * step))), i);
                assert_eq!(u128::from(group.map(Block(i * step - u128::from(m)))), i - 1);
            }
        }
    }
}
