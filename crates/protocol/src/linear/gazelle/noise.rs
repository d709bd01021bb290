//! The noise of a packed layer, from public quantities alone: the layer itself, run over bounds instead of ciphertexts.

use lanner_bfv::{NoiseBound, Parameters};

use super::packing::{Packing, Rotation};
use super::scheme::{PackedScheme, evaluate};
use crate::ProtocolError;

/// A bound on the noise of every output ciphertext of a layer, whatever its weights.
///
/// # Errors
/// [`ProtocolError::Shape`] if the layer has no outputs.
pub fn output_noise(packing: &Packing, parameters: &Parameters, t: u64) -> Result<NoiseBound, ProtocolError> {
    let scheme = Bounds { parameters, t };
    let multipliers: Vec<()> = packing.terms().map(|_| ()).collect();
    // The server adds its share to each input.
    let inputs = vec![NoiseBound::fresh().plus_plaintext(); packing.operations().input_ciphertexts];
    let outputs = evaluate(&scheme, packing, &multipliers, &inputs)?;
    outputs.first().copied().ok_or(ProtocolError::Shape { what: "outputs" })
}

struct Bounds<'p> {
    parameters: &'p Parameters,
    t: u64,
}

impl PackedScheme for Bounds<'_> {
    type Ciphertext = NoiseBound;
    type Rotated = NoiseBound;
    type Multiplier = ();
    type Sums = Vec<Option<NoiseBound>>;
    type Error = ProtocolError;

    fn rotate_hoisted(
        &self,
        ciphertext: &NoiseBound,
        rotations: &[Rotation],
        mut visit: impl FnMut(&[NoiseBound]) -> Result<(), ProtocolError>,
    ) -> Result<(), ProtocolError> {
        visit(&vec![ciphertext.switched_key_extended(self.parameters); rotations.len()])
    }

    fn empty_sums(&self, count: usize) -> Result<Self::Sums, ProtocolError> {
        Ok(vec![None; count])
    }

    fn multiply_add(
        &self,
        sums: &mut Self::Sums,
        rotated: &[NoiseBound],
        _: &[()],
    ) -> Result<(), ProtocolError> {
        for rotated in rotated {
            let product = rotated.multiplied(self.parameters, self.t);
            for sum in &mut *sums {
                *sum = Some(sum.map_or(product, |sum| sum.plus(product)));
            }
        }
        Ok(())
    }

    fn finish(&self, sums: Self::Sums) -> Result<Vec<NoiseBound>, ProtocolError> {
        let finish = |sum: Option<NoiseBound>| {
            let sum = sum.ok_or(ProtocolError::Shape { what: "an empty sum" })?;
            Ok(sum.rescaled(self.parameters))
        };
        sums.into_iter().map(finish).collect()
    }

    fn rotate(&self, ciphertext: &NoiseBound, _: Rotation) -> Result<NoiseBound, ProtocolError> {
        Ok(ciphertext.switched_key(self.parameters))
    }

    fn add(&self, sum: &mut NoiseBound, other: &NoiseBound) -> Result<(), ProtocolError> {
        *sum = sum.plus(*other);
        Ok(())
    }
}
