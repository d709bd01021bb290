//! The 128-bit word that labels, seeds and correlations are made of.

use std::fmt;
use std::ops::{BitAnd, BitAndAssign, BitXor, BitXorAssign, Not};

use bytemuck::{Pod, Zeroable};
use rand_core::Rng;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::DefaultIsZeroes;

/// A 128-bit string; bit `i` is the bit of weight `2^i`, byte 0 holds bits 0 to 7.
///
/// Blocks hold secrets more often than not: comparing two takes the same time whatever they are, and `Debug` prints no
/// bits.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct Block(pub u128);

impl Block {
    /// All bits zero.
    pub const ZERO: Self = Self(0);
    /// All bits one.
    pub const ONES: Self = Self(u128::MAX);
    /// The size in bytes, in memory and on the wire.
    pub const BYTES: usize = 16;

    /// The block of 16 little-endian bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_le_bytes(bytes))
    }

    /// The 16 little-endian bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// A uniform block.
    #[must_use]
    pub fn random<R: Rng + ?Sized>(rng: &mut R) -> Self {
        let mut bytes = [0; 16];
        rng.fill_bytes(&mut bytes);
        Self::from_bytes(bytes)
    }

    /// Bit 0: the colour of a wire label.
    #[must_use]
    pub const fn lsb(self) -> bool {
        self.0 & 1 == 1
    }

    /// The same block with bit 0 set to `bit`.
    #[must_use]
    pub const fn with_lsb(self, bit: bool) -> Self {
        Self(self.0 & !1 | bit as u128)
    }

    /// The product with `X` modulo `X^128 + X^7 + X^2 + X + 1`, bit `i` being the coefficient of `X^i`.
    #[must_use]
    pub const fn double(self) -> Self {
        Self(self.0 << 1 ^ (REDUCED & (self.0 >> 127).wrapping_neg()))
    }

    /// All ones if `bit`, else zero, without a branch. A compiler that sees how a mask is made makes a choice of what it masks, and in loops a
    /// branch of that: so it does not see it.
    #[must_use]
    pub fn mask(bit: bool) -> Self {
        let half = std::hint::black_box(u64::from(bit)).wrapping_neg();
        Self(u128::from(half) << 64 | u128::from(half))
    }

    /// The bytes of a slice of blocks, in order: its form on the wire.
    #[must_use]
    pub fn slice_as_bytes(blocks: &[Self]) -> &[u8] {
        bytemuck::must_cast_slice(blocks)
    }

    /// The bytes of a slice of blocks, to be read into.
    #[must_use]
    pub fn slice_as_bytes_mut(blocks: &mut [Self]) -> &mut [u8] {
        bytemuck::must_cast_slice_mut(blocks)
    }
}

/// `X^128` modulo `X^128 + X^7 + X^2 + X + 1`.
pub(crate) const REDUCED: u128 = 0x87;

impl DefaultIsZeroes for Block {}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Block(..)")
    }
}

impl ConstantTimeEq for Block {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.ct_eq(other).into()
    }
}

impl Eq for Block {}

impl ConditionallySelectable for Block {
    fn conditional_select(a: &Self, b: &Self, choice: Choice) -> Self {
        Self(u128::conditional_select(&a.0, &b.0, choice))
    }
}

impl From<u128> for Block {
    fn from(value: u128) -> Self {
        Self(value)
    }
}

impl BitXor for Block {
    type Output = Self;
    fn bitxor(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }
}

impl BitXorAssign for Block {
    fn bitxor_assign(&mut self, other: Self) {
        self.0 ^= other.0;
    }
}

impl BitAnd for Block {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitAndAssign for Block {
    fn bitand_assign(&mut self, other: Self) {
        self.0 &= other.0;
    }
}

impl Not for Block {
    type Output = Self;
    fn not(self) -> Self {
        Self(!self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_zero_holds_the_low_bits() {
        let block = Block::from_bytes([1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80]);
        assert!(block.0 == 0x8000_0000_0000_0000_0000_0000_0000_0201);
        assert!(Block::slice_as_bytes(&[block])[..2] == [1, 2]);
        assert!(block.lsb() && !block.with_lsb(false).lsb());
    }

    #[test]
    fn a_mask_is_all_or_nothing() {
        assert!(Block::mask(true) == Block::ONES && Block::mask(false) == Block::ZERO);
    }

    #[test]
    fn debug_prints_no_bits() {
        assert_eq!(format!("{:?}", Block(0x1234)), "Block(..)");
    }
}
