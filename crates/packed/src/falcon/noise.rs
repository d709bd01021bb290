//! The noise of a frequency-domain layer, from public quantities alone.

use lanner_bfv::{NoiseBound, Parameters};

use super::packing::Packing;

/// A bound on the noise of every output ciphertext of a layer, whatever its weights.
#[must_use]
pub fn output_noise(packing: &Packing, parameters: &Parameters) -> NoiseBound {
    after(parameters, packing.prime(), packing.terms())
}

/// The noise of a sum of a given number of products.
pub(super) fn after(parameters: &Parameters, prime: u64, terms: usize) -> NoiseBound {
    // The server adds its share to each input.
    NoiseBound::fresh().plus_plaintext().multiplied(parameters, prime).times(terms)
}
