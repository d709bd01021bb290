//! The noise of a packed layer, from public quantities alone: the layer itself, run over bounds instead of ciphertexts.

use lanner_bfv::{NoiseBound, Parameters};

use super::packing::Packing;
use super::rotation::Rotation;
use super::scheme::{PackedScheme, evaluate};
use crate::ProtocolError;

/// A bound on the noise of every output ciphertext of a layer, whatever its weights, given one for its inputs.
///
/// # Errors
/// [`ProtocolError::Shape`] if the layer has no outputs.
pub fn output_noise(
    packing: &Packing,
    parameters: &Parameters,
    t: u64,
    input: NoiseBound,
) -> Result<NoiseBound, ProtocolError> {
    let scheme = Bounds { parameters };
    let norm = match packing.constant_bound(t) {
        Some(bound) => bound as f64,
        None => (t as f64 / 2.0) * (parameters.degree() as f64).sqrt(),
    };
    let multipliers = vec![norm; packing.multipliers()];
    // Frames are alike.
    let inputs = vec![input; packing.program().inputs.len()];
    let outputs = evaluate(&scheme, packing, &multipliers, &inputs)?;
    let largest = outputs.into_iter().max_by(|a, b| a.deviation().total_cmp(&b.deviation()));
    largest.ok_or(ProtocolError::Shape { what: "outputs" })
}

struct Bounds<'p> {
    parameters: &'p Parameters,
}

impl PackedScheme for Bounds<'_> {
    type Ciphertext = NoiseBound;
    type Rotated = NoiseBound;
    /// The largest 2-norm of its coefficients.
    type Multiplier = f64;
    type Sum = Option<NoiseBound>;
    type Error = ProtocolError;

    fn rotate_hoisted(
        &self,
        ciphertext: &NoiseBound,
        rotations: &[Rotation],
        mut visit: impl FnMut(usize, &NoiseBound) -> Result<(), ProtocolError>,
    ) -> Result<(), ProtocolError> {
        let rotated = ciphertext.switched_key_extended(self.parameters);
        (0..rotations.len()).try_for_each(|index| visit(index, &rotated))
    }

    fn empty_sum(&self) -> Result<Option<NoiseBound>, ProtocolError> {
        Ok(None)
    }

    fn multiply_add(
        &self,
        sum: &mut Option<NoiseBound>,
        rotated: &NoiseBound,
        norm: &f64,
    ) -> Result<(), ProtocolError> {
        let product = rotated.multiplied_by_norm(*norm);
        *sum = Some(sum.map_or(product, |sum| sum.plus(product)));
        Ok(())
    }

    fn rotate_add(
        &self,
        sum: &mut Option<NoiseBound>,
        ciphertext: &NoiseBound,
        _: Rotation,
    ) -> Result<(), ProtocolError> {
        self.multiply_add(sum, &ciphertext.switched_key_extended(self.parameters), &1.0)
    }

    fn finish(&self, sum: Option<NoiseBound>) -> Result<NoiseBound, ProtocolError> {
        Ok(sum.unwrap_or(NoiseBound::NONE).rescaled(self.parameters))
    }

    fn rotate(&self, ciphertext: &NoiseBound, _: Rotation) -> Result<NoiseBound, ProtocolError> {
        Ok(ciphertext.switched_key(self.parameters))
    }

    fn add(&self, sum: &mut NoiseBound, other: &NoiseBound) -> Result<(), ProtocolError> {
        *sum = sum.plus(*other);
        Ok(())
    }
}
