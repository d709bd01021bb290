//! The choice among parameter sets and layouts.

use lanner_bfv::function_privacy::Budget;
use lanner_bfv::{ParameterSet, Parameters, PlaintextModulus};
use lanner_step::{Convolution, ProtocolError, Result, Sets};

use super::arrangement::{Operations, Variant};
use super::noise;
use super::packing::candidates;

/// A way to compute a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The parameter set.
    pub set: ParameterSet,
    /// The layout.
    pub variant: Variant,
    /// What it costs.
    pub operations: Operations,
}

/// Every way to compute a layer whose noise can be hidden.
///
/// # Errors
/// [`ProtocolError::Parameters`] if the shape is not one, or too large to lay out.
pub fn choices(shape: &Convolution, prime: u64, sets: &Sets) -> Result<Vec<Choice>> {
    let mut choices = Vec::new();
    for set in SETS {
        let parameters = sets.get(set)?;
        let Ok(modulus) = PlaintextModulus::new(parameters, prime) else { continue };
        let hides = |terms| Budget::new(&modulus, noise::after(parameters, prime, terms)).is_ok();
        let all = candidates(shape, prime, parameters.degree())?.into_iter();
        let hidden = all.filter(|(_, _, terms)| hides(*terms));
        choices.extend(hidden.map(|(variant, operations, _)| Choice { set, variant, operations }));
    }
    Ok(choices)
}

/// The way that costs least.
///
/// # Errors
/// As [`choices`], and if no set has room for the layer's noise.
pub fn cheapest(shape: &Convolution, prime: u64, sets: &Sets) -> Result<Choice> {
    let with_cost = |choice: Choice| Ok((cost(sets.get(choice.set)?, &choice.operations), choice));
    let costs: Vec<_> = choices(shape, prime, sets)?.into_iter().map(with_cost).collect::<Result<_>>()?;
    let best = costs.into_iter().min_by_key(|(cost, _)| *cost).map(|(_, choice)| choice);
    best.ok_or(ProtocolError::Parameters("noise of a frequency-domain layer"))
}

/// The sets that these layers use, smallest first. A special limb is not used.
const SETS: [ParameterSet; 2] = [ParameterSet::A2, ParameterSet::B];

/// Relative time and traffic of a layer.
fn cost(parameters: &Parameters, operations: &Operations) -> u128 {
    let limbs = parameters.limbs() as u128;
    let values = operations.multiplications as u128 * limbs * PRODUCT
        + operations.input_ciphertexts as u128 * limbs * INPUT
        + operations.output_ciphertexts as u128 * (OUTPUT + limbs * TRANSFORM);
    values * parameters.degree() as u128
}

/// For each value: of a product with a multiplier from memory, of an upload, of both halves of a one-limb reply, of a transform on the way there.
const PRODUCT: u128 = 1;
const INPUT: u128 = 60;
const OUTPUT: u128 = 75;
const TRANSFORM: u128 = 10;
