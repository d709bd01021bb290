//! Bounds on noise in place of ciphertexts: what an algorithm will leave, before anything is encrypted.

use lanner_bfv::{NoiseBound, Parameters};

use super::SlotScheme;
use lanner_step::ProtocolError;
use lanner_step::Rotation;

/// Computes on bounds, those of ciphertexts of a number of limbs modulo `t`. They are the ones that ciphertexts carry.
pub struct Bounds {
    parameters: Parameters,
    t: u64,
    limbs: usize,
}

impl Bounds {
    /// Of ciphertexts of these parameters.
    #[must_use]
    pub fn new(parameters: &Parameters, t: u64, limbs: usize) -> Self {
        Self { parameters: parameters.clone(), t, limbs }
    }
}

impl SlotScheme for Bounds {
    type Ciphertext = NoiseBound;
    type Multiplier = ();

    fn multiplier(&self, _: &[u64]) -> Result<(), ProtocolError> {
        Ok(())
    }

    fn rotate(&self, x: &NoiseBound, _: Rotation) -> Result<NoiseBound, ProtocolError> {
        Ok(x.switched_key_at(&self.parameters, self.limbs))
    }

    fn add_assign(&self, sum: &mut NoiseBound, x: &NoiseBound) -> Result<(), ProtocolError> {
        *sum = sum.plus(*x);
        Ok(())
    }

    fn multiply(&self, x: &NoiseBound, (): &()) -> Result<NoiseBound, ProtocolError> {
        Ok(x.multiplied(&self.parameters, self.t))
    }
}
