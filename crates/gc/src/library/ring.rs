//! The rings of the shares, and the garbler's constants by which a circuit adds two shares.

use crate::GcError;
use crate::circuit::{CircuitBuilder, Wire};

/// The ring whose additive shares a circuit takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareRing {
    /// Z_p for an odd p of 3 to 62 bits; the element v stands for v or v - p, whichever is nearer to zero.
    Prime(u64),
    /// Z_{2^l} for l of 2 to 64; elements are in two's complement.
    PowerOfTwo(u32),
}

impl ShareRing {
    /// Bits of an element.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Prime(p) => u64::BITS - p.leading_zeros(),
            Self::PowerOfTwo(bits) => bits,
        }
    }

    /// The largest element.
    #[must_use]
    pub const fn largest(self) -> u64 {
        match self {
            Self::Prime(p) => p.wrapping_sub(1),
            Self::PowerOfTwo(bits) => u64::MAX >> (u64::BITS - bits),
        }
    }

    /// The exclusive bound of |x| for inputs of a circuit that rescales by `d` bits.
    ///
    /// For Z_p with b bits it is `min(p - 2^(b-1), 2^(b-1)) - 2^(d-1)`, for Z_{2^l} `2^(l-1) - 2^(d-1)`; the last term is
    /// missing if `d = 0`.
    ///
    /// # Errors
    /// [`GcError::Parameters`] if the ring is not one of those above, fewer than two bits would be left, or the range
    /// would be empty.
    pub fn signed_bound(self, d: u32) -> Result<u64, GcError> {
        let valid = match self {
            Self::Prime(p) => p % 2 == 1 && (3..=62).contains(&self.bits()),
            Self::PowerOfTwo(bits) => (2..=64).contains(&bits),
        };
        if !valid {
            return Err(GcError::Parameters("the ring's modulus is not supported"));
        }
        if d + 2 > self.bits() {
            return Err(GcError::Parameters("rescaling would leave fewer than two bits"));
        }
        let top = 1_u64 << (self.bits() - 1);
        let bound = match self {
            Self::Prime(p) => top.min(p - top),
            Self::PowerOfTwo(_) => top,
        };
        match bound.checked_sub(half(d)) {
            Some(bound) if bound > 0 => Ok(bound),
            _ => Err(GcError::Parameters("no value would be in range")),
        }
    }

    /// Whether every share is an element, found without a branch on any one of them.
    pub(super) fn contains(self, shares: &[u64]) -> bool {
        let largest = self.largest();
        let excess = shares.iter().fold(0, |bad, share| bad | u64::from(*share > largest));
        excess == 0
    }

    /// The garbler's constants for one shared value, as (word, bits); see [`ShareRing::reconstruct`].
    pub(super) fn words(self, share: u64, d: u32) -> [(u64, u32); 2] {
        let bits = self.bits();
        match self {
            Self::Prime(p) => {
                // The representative of the share nearest to zero; `p / 2 - share` is negative for the upper half.
                let upper = ((p / 2).wrapping_sub(share) >> 63).wrapping_neg();
                let shifted = share.wrapping_sub(p & upper).wrapping_add(half(d));
                [(shifted, bits + 1), (shifted.wrapping_sub(p), bits)]
            }
            Self::PowerOfTwo(_) => [(share.wrapping_add(half(d)), bits), (0, 0)],
        }
    }

    /// Adds two shares: `rescale(x, d)` as a word of `bits - d` bits in two's complement.
    ///
    /// Z_p: with s the garbler's share nearest to zero, `t = c + s` is x or x + p. Both `t + 2^(d-1)` and
    /// `t - p + 2^(d-1)` are computed, and the range of x puts the first one below `2^(b-1)` exactly if t = x, which its
    /// upper two bits tell. That takes 2b - 1 ANDs for the sums and b - d to select. Z_{2^l}: l - 1 ANDs.
    pub(super) fn reconstruct(self, builder: &mut CircuitBuilder, d: u32) -> Vec<Wire> {
        let bits = self.bits();
        let mut share = builder.evaluator_word(bits);
        let dropped = d as usize;
        if let Self::PowerOfTwo(_) = self {
            let constant = builder.garbler_word(bits);
            return builder.add(&share, &constant).split_off(dropped);
        }
        let (constant, reduced) = (builder.garbler_word(bits + 1), builder.garbler_word(bits));
        let without_p = builder.add(&share, &reduced);
        share.push(Wire::ZERO);
        let mut sum = builder.add(&share, &constant);
        let top = sum.pop().unwrap_or(Wire::ZERO);
        let wraps = builder.xor(top, sum[sum.len() - 1]);
        builder.mux_word(wraps, &without_p[dropped..], &sum[dropped..])
    }
}

/// What rescaling by `d` bits adds before it drops them.
const fn half(d: u32) -> u64 {
    if d == 0 { 0 } else { 1 << (d - 1) }
}
