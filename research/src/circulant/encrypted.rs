//! The scheme that is meant: slots of BFV ciphertexts, at any number of limbs.

use lanner_bfv::{Ciphertext, EvaluationKeys, Evaluator, Multiplier, SlotEncoder};

use super::SlotScheme;
use lanner_step::ProtocolError;
use lanner_step::Rotation;
use lanner_step::galois_element;

/// Computes on ciphertexts under a client's keys.
pub struct EncryptedSlots<'k> {
    evaluator: Evaluator,
    encoder: SlotEncoder,
    keys: &'k EvaluationKeys,
    limbs: usize,
}

impl<'k> EncryptedSlots<'k> {
    /// Factors are made ready for ciphertexts of so many limbs, and serve any of fewer.
    #[must_use]
    pub fn new(encoder: &SlotEncoder, keys: &'k EvaluationKeys, limbs: usize) -> Self {
        let evaluator = Evaluator::new(encoder.modulus().parameters());
        Self { evaluator, encoder: encoder.clone(), keys, limbs }
    }
}

impl SlotScheme for EncryptedSlots<'_> {
    type Ciphertext = Ciphertext;
    type Multiplier = Multiplier;

    fn multiplier(&self, values: &[u64]) -> Result<Multiplier, ProtocolError> {
        Ok(self.encoder.compact_multiplier(values)?.prepare_at(self.limbs)?)
    }

    fn rotate(&self, x: &Ciphertext, rotation: Rotation) -> Result<Ciphertext, ProtocolError> {
        let element = galois_element(rotation, self.encoder.slots())?;
        Ok(self.evaluator.apply(x, element, self.keys)?)
    }

    fn add_assign(&self, sum: &mut Ciphertext, x: &Ciphertext) -> Result<(), ProtocolError> {
        Ok(self.evaluator.add_assign(sum, x)?)
    }

    fn multiply(&self, x: &Ciphertext, factor: &Multiplier) -> Result<Ciphertext, ProtocolError> {
        Ok(self.evaluator.mul_plain(x, factor)?)
    }
}
