//! Rotations of slots.

use lanner_bfv::{BfvError, GaloisElement};

use super::ProtocolError;

/// A rotation by `step` slots inside each half, after exchanging the halves if `swap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rotation {
    /// Slots to the left, modulo half the slots.
    pub step: usize,
    /// Whether the halves are exchanged.
    pub swap: bool,
}

impl Rotation {
    /// No rotation.
    pub const IDENTITY: Self = Self { step: 0, swap: false };

    /// The exchange of the halves alone.
    pub const SWAP: Self = Self { step: 0, swap: true };

    /// A rotation inside each half, to the right if `step` is negative.
    #[must_use]
    pub const fn by(step: isize, slots: usize) -> Self {
        Self { step: step.rem_euclid((slots / 2) as isize) as usize, swap: false }
    }

    /// The slot that `slot` of the result is taken from, among `slots`.
    #[must_use]
    pub const fn source(self, slot: usize, slots: usize) -> usize {
        let half = slots / 2;
        let row = (slot / half) ^ self.swap as usize;
        row * half + (slot % half + self.step) % half
    }

    /// This rotation and another one, in either order.
    #[must_use]
    pub const fn then(self, other: Self, slots: usize) -> Self {
        Self { step: (self.step + other.step) % (slots / 2), swap: self.swap ^ other.swap }
    }

    /// The rotation that undoes this one.
    #[must_use]
    pub const fn inverse(self, slots: usize) -> Self {
        let half = slots / 2;
        Self { step: (half - self.step) % half, swap: self.swap }
    }
}

/// The automorphism of a rotation.
///
/// # Errors
/// [`ProtocolError::Bfv`] if the degree is not a power of two.
pub fn galois_element(rotation: Rotation, degree: usize) -> Result<GaloisElement, ProtocolError> {
    let step = GaloisElement::rotation(rotation.step as isize, degree).map_err(BfvError::from)?;
    if !rotation.swap {
        return Ok(step);
    }
    let swap = GaloisElement::row_swap(degree).map_err(BfvError::from)?;
    let exponent = step.exponent() * swap.exponent() % (2 * degree);
    power_of(exponent, degree)
}

/// The automorphism that takes `X` to a power of it.
///
/// # Errors
/// [`ProtocolError::Bfv`] if the degree is not a power of two, or the exponent not an odd number below twice the degree.
pub(crate) fn power_of(exponent: usize, degree: usize) -> Result<GaloisElement, ProtocolError> {
    Ok(GaloisElement::new(exponent, degree).map_err(BfvError::from)?)
}
