//! The noise of a packed layer, from public quantities alone: the layer itself, run over bounds instead of ciphertexts.

use lanner_bfv::{NoiseBound, Parameters};
use lanner_step::{ProtocolError, Result, Rotation};

use super::packing::Packing;
use super::program::Term;
use super::scheme::{PackedScheme, evaluate};

/// A bound on the noise of every output ciphertext of a layer, whatever its weights.
///
/// # Errors
/// None: bounds have no keys to miss.
pub fn output_noise(packing: &Packing, parameters: &Parameters, t: u64) -> Result<NoiseBound> {
    // The server adds its share to each input.
    noise_after(packing, parameters, t, NoiseBound::fresh().plus_plaintext())
}

/// As [`output_noise`], given a bound for the inputs.
///
/// # Errors
/// As [`output_noise`].
pub fn noise_after(
    packing: &Packing,
    parameters: &Parameters,
    t: u64,
    input: NoiseBound,
) -> Result<NoiseBound> {
    let scheme = Bounds { parameters };
    let norm = match packing.constant_bound(t) {
        Some(bound) => bound as f64,
        None => (t as f64 / 2.0) * (parameters.degree() as f64).sqrt(),
    };
    let multipliers = vec![norm; packing.multipliers()];
    // Frames are alike.
    let inputs = vec![input; packing.program().inputs.len()];
    let outputs = evaluate(&scheme, packing, &multipliers, &inputs)?;
    let largest = |a: NoiseBound, b: NoiseBound| if a > b { a } else { b };
    Ok(outputs.into_iter().fold(NoiseBound::NONE, largest))
}

struct Bounds<'p> {
    parameters: &'p Parameters,
}

impl PackedScheme for Bounds<'_> {
    type Ciphertext = NoiseBound;
    type Unreduced = NoiseBound;
    /// The largest 2-norm of its coefficients.
    type Multiplier = f64;
    type Sums = Vec<NoiseBound>;
    type Error = ProtocolError;

    fn rotate_hoisted(
        &self,
        ciphertext: &NoiseBound,
        rotations: &[Rotation],
        mut visit: impl FnMut(&[NoiseBound]) -> Result<()>,
    ) -> Result<()> {
        visit(&vec![ciphertext.switched_key_extended(self.parameters); rotations.len()])
    }

    fn empty_sums(&self, count: usize) -> Result<Vec<NoiseBound>> {
        Ok(vec![NoiseBound::NONE; count])
    }

    fn multiply_add(
        &self,
        sums: &mut Vec<NoiseBound>,
        rotated: &[NoiseBound],
        terms: &[&[Term]],
        norms: &[f64],
    ) -> Result<()> {
        for (rotated, terms) in rotated.iter().zip(terms) {
            for term in *terms {
                sums[term.sum] = sums[term.sum].plus(rotated.multiplied_by_norm(norms[term.multiplier]));
            }
        }
        Ok(())
    }

    fn open(&self, sums: Vec<NoiseBound>) -> Vec<NoiseBound> {
        sums
    }

    fn rotate_add(&self, sum: &mut NoiseBound, ciphertext: &NoiseBound, _: Rotation) -> Result<()> {
        *sum = sum.plus(ciphertext.switched_key_extended(self.parameters));
        Ok(())
    }

    fn reduce(&self, sum: NoiseBound) -> NoiseBound {
        sum.rescaled(self.parameters)
    }

    fn rotate(&self, ciphertext: &NoiseBound, _: Rotation) -> Result<NoiseBound> {
        Ok(ciphertext.switched_key(self.parameters))
    }

    fn add(&self, sum: &mut NoiseBound, other: &NoiseBound) -> Result<()> {
        *sum = sum.plus(*other);
        Ok(())
    }
}
