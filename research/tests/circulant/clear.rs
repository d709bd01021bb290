//! Slots in the clear: the twin of ciphertexts.

use lanner_research::circulant::SlotScheme;
use lanner_ring::Modulus;
use lanner_step::ProtocolError;
use lanner_step::Rotation;

/// Slots modulo a prime.
pub(crate) struct ClearSlots {
    pub(crate) modulus: Modulus,
    pub(crate) slots: usize,
}

impl ClearSlots {
    pub(crate) fn new(t: u64, slots: usize) -> Self {
        Self { modulus: Modulus::new(t).unwrap(), slots }
    }
}

impl SlotScheme for ClearSlots {
    type Ciphertext = Vec<u64>;
    type Multiplier = Vec<u64>;

    fn multiplier(&self, values: &[u64]) -> Result<Vec<u64>, ProtocolError> {
        assert_eq!(values.len(), self.slots);
        assert!(values.iter().all(|value| *value < self.modulus.value()));
        Ok(values.to_vec())
    }

    fn rotate(&self, x: &Vec<u64>, rotation: Rotation) -> Result<Vec<u64>, ProtocolError> {
        assert_ne!(rotation, Rotation::IDENTITY, "a rotation for nothing");
        Ok((0..self.slots).map(|slot| x[rotation.source(slot, self.slots)]).collect())
    }

    fn add_assign(&self, sum: &mut Vec<u64>, x: &Vec<u64>) -> Result<(), ProtocolError> {
        sum.iter_mut().zip(x).for_each(|(sum, x)| *sum = self.modulus.add(*sum, *x));
        Ok(())
    }

    fn multiply(&self, x: &Vec<u64>, factor: &Vec<u64>) -> Result<Vec<u64>, ProtocolError> {
        Ok(x.iter().zip(factor).map(|(x, factor)| self.modulus.mul(*x, *factor)).collect())
    }
}
