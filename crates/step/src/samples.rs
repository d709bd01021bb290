//! Several samples in one ciphertext, slot by slot.
//!
//! A layout says where one sample's elements lie among `N / B` slots. Its slot `v` stands for the slots `v B` to `v B + B - 1` of a ciphertext, one of
//! each of `B` samples. A rotation by `d` becomes one by `d B`, and what multiplies the slots, or is added to them, is the same for all samples:
//! a layer takes as long as for one. Of shared values, those of one sample follow those of the other.

use serde::{Deserialize, Serialize};

use crate::{ProtocolError, Result, Rotation};

/// How many samples a request holds: a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "usize", into = "usize")]
pub struct Samples(usize);

impl Samples {
    /// One alone.
    pub const ONE: Self = Self(1);

    /// How many.
    #[must_use]
    pub const fn count(self) -> usize {
        self.0
    }

    /// Whether there is one alone.
    #[must_use]
    pub const fn is_one(&self) -> bool {
        self.0 == 1
    }

    /// Of all samples, where one has so many elements; the largest number if that is none.
    #[must_use]
    pub const fn times(self, of_one: usize) -> usize {
        of_one.saturating_mul(self.0)
    }

    /// Of the slots of a ciphertext those that a sample has.
    #[must_use]
    pub const fn slots(self, degree: usize) -> usize {
        degree / self.0
    }

    /// A rotation of one sample's slots, of all.
    #[must_use]
    pub fn rotation(self, rotation: Rotation) -> Rotation {
        Rotation { step: rotation.step * self.0, ..rotation }
    }

    /// The same value for each sample.
    #[must_use]
    pub fn spread<T: Copy>(self, slots: &[T]) -> Vec<T> {
        // Never moved while it grows: what lies in slots may be secret.
        let mut spread = Vec::with_capacity(slots.len() * self.0);
        for value in slots {
            spread.extend(std::iter::repeat_n(*value, self.0));
        }
        spread
    }
}

impl Default for Samples {
    fn default() -> Self {
        Self::ONE
    }
}

impl TryFrom<usize> for Samples {
    type Error = ProtocolError;

    fn try_from(count: usize) -> Result<Self> {
        if count.is_power_of_two() {
            Ok(Self(count))
        } else {
            Err(ProtocolError::Parameters("a number of samples that is no power of two"))
        }
    }
}

impl From<Samples> for usize {
    fn from(samples: Samples) -> Self {
        samples.0
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::*;

    /// A rotation brings each sample's slots where one of that sample alone brings them, in both rows.
    #[test]
    fn rotations_keep_samples_apart() {
        let (samples, own) = (Samples::try_from(4).unwrap(), 16);
        let slots: Vec<(usize, usize)> = (0..own * 4).map(|slot| (slot / 4, slot % 4)).collect();
        for rotation in (0..8).flat_map(|step| [false, true].map(|swap| Rotation { step, swap })) {
            let all = samples.rotation(rotation);
            for (slot, (place, sample)) in slots.iter().enumerate() {
                assert_eq!(slots[all.source(slot, own * 4)], (rotation.source(*place, own), *sample));
            }
        }
    }

    #[test]
    fn only_powers_of_two_are_taken() {
        assert!([0, 3, 6, usize::MAX].into_iter().all(|count| Samples::try_from(count).is_err()));
        assert_eq!(Samples::try_from(4).unwrap().count(), 4);
    }
}
