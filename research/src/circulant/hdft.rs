//! Algorithm 1: the discrete Fourier transform of encrypted blocks.
//!
//! Of a block `x_0, ..., x_(k-1)` that stands `k` times in the slots, copy `c` is multiplied by `w^0, w^c, w^(2c), ...`, all copies at once, and `log2 k` rotations
//! whose results are added sum each copy up: value `c` of the transform.

use lanner_ring::Dft;

use super::{Counted, Operations, SlotScheme};
use lanner_step::ProtocolError;
use lanner_step::Rotation;

/// The transform of blocks in slots, or its inverse.
///
/// Element `b` of a block stands where digit [`Self::elements`] of the slot's number is `b`, and is summed over it, from the slot on: every slot of the result whose
/// digit is 0 is right, and where the digit is the topmost one of all slots, so that rotations close a circle, every slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hdft {
    /// Slots of a ciphertext.
    pub slots: usize,
    /// Where the elements stand; as many as there are values `k`, a power of two.
    pub elements: Digit,
    /// Where the copies stand.
    pub copies: Digit,
    /// The value of the transform that the first copy gives.
    pub first: usize,
    /// Whether it is the inverse transform, with the factor `1/k`.
    pub inverse: bool,
}

/// A digit of slots' numbers: `slot / stride % size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digit {
    /// Slots from one value of the digit to the next.
    pub stride: usize,
    /// Values.
    pub size: usize,
}

impl Digit {
    /// Of a slot.
    #[must_use]
    pub const fn of(self, slot: usize) -> usize {
        slot / self.stride % self.size
    }
}

impl Hdft {
    /// The slots of what multiplies the stacked blocks: twiddles, and zero where there is no value of the transform, or `holds` denies a slot.
    #[must_use]
    pub fn twiddles(&self, transform: &Dft, holds: impl Fn(usize) -> bool) -> Vec<u64> {
        let powers = self.powers(transform);
        let twiddle = |slot: usize| {
            let (element, value) = (self.elements.of(slot), self.copies.of(slot) + self.first);
            let is_value = value < self.elements.size && holds(slot);
            if is_value { powers[element * value % self.elements.size] } else { 0 }
        };
        (0..self.slots).map(twiddle).collect()
    }

    /// The powers of the root, or of its inverse and divided by `k`.
    pub(super) fn powers(&self, transform: &Dft) -> Vec<u64> {
        let (modulus, size) = (transform.modulus(), self.elements.size);
        let root = transform.root();
        let (root, first) = if self.inverse {
            (modulus.inverse(root), modulus.inverse(modulus.reduce(size as u64)))
        } else {
            (root, 1)
        };
        std::iter::successors(Some(first), |power| Some(modulus.mul(*power, root))).take(size).collect()
    }

    /// The rotations whose results are added, one after the other.
    #[must_use]
    pub fn rotations(&self) -> Vec<Rotation> {
        halves(self.elements.stride, self.elements.size, self.slots)
    }

    /// One product, `log2 k` rotations and additions.
    #[must_use]
    pub fn operations(&self) -> Operations {
        Operations::PRODUCT + Operations::rotate_and_add(self.elements.size.ilog2() as usize)
    }

    /// Transforms stacked blocks, with [`Self::twiddles`] ready to multiply.
    ///
    /// # Errors
    /// The scheme's.
    pub fn apply<S: SlotScheme>(
        &self,
        scheme: &mut Counted<'_, S>,
        stacked: &S::Ciphertext,
        twiddles: &S::Multiplier,
    ) -> Result<S::Ciphertext, ProtocolError> {
        let product = scheme.multiply(stacked, twiddles)?;
        scheme.fold(product, &self.rotations())
    }
}

/// The rotation that brings what lies a power of two of slots ahead; half of them are a row.
pub(super) const fn turn(step: usize, slots: usize) -> Rotation {
    if step == slots / 2 { Rotation::SWAP } else { Rotation::by(step as isize, slots) }
}

/// The rotation that undoes it.
pub(super) const fn back(step: usize, slots: usize) -> Rotation {
    turn(step, slots).inverse(slots)
}

/// Rotations whose results are added to bring a copy to every multiple of `period` below `period copies`, where all other slots are zero.
pub(super) fn stack(period: usize, copies: usize, slots: usize) -> Vec<Rotation> {
    (0..copies.ilog2()).map(|bit| back(period << bit, slots)).collect()
}

/// Rotations whose results are added to sum up `count` slots that lie `unit` apart, both powers of two.
pub(super) fn halves(unit: usize, count: usize, slots: usize) -> Vec<Rotation> {
    (0..count.ilog2()).rev().map(|bit| turn(unit << bit, slots)).collect()
}
