//! A linear layer on ciphertexts.

use lanner_bfv::{
    Ciphertext, EvaluationKeys, Evaluator, ExtendedCiphertext, ExtendedCombinations, Multiplier, Parameters,
    Plaintext, Product, SlotEncoder,
};
use lanner_primitives::parallel;

use super::primes::residue;
use super::program::Program;
use crate::ProtocolError;
use crate::linear::gazelle::galois_element;
use crate::linear::gazelle::packing::Rotation;

/// A layer's weights modulo one prime, ready to multiply.
pub struct Kernel {
    parameters: Parameters,
    /// Baby steps: ciphertext and rotation.
    babies: Vec<(usize, Rotation)>,
    /// Giant steps.
    giants: Vec<Rotation>,
    folds: Vec<Rotation>,
    /// Each diagonal's baby step, giant step, and values.
    diagonals: Vec<(usize, usize, Multiplier)>,
    bias: Plaintext,
}

impl Kernel {
    /// Encodes a layer's weights, and one bias for each output element, for inputs of so many limbs.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if weights or biases do not fit the layer.
    pub fn new(
        program: &Program,
        weights: &[i64],
        bias: &[i128],
        parameters: &Parameters,
        limbs: usize,
        encoder: &SlotEncoder,
    ) -> Result<Self, ProtocolError> {
        let (slots, half, prime) = (encoder.slots(), encoder.slots() / 2, encoder.modulus().value());
        if weights.len() != program.shape().weights() || bias.len() != program.to().len() {
            return Err(ProtocolError::Shape { what: "the weights of a layer" });
        }
        let (babies, giants) = program.steps();
        let numbers: std::collections::BTreeMap<_, _> =
            program.diagonals().enumerate().map(|(number, diagonal)| (diagonal, number)).collect();
        let mut values = vec![vec![0; slots]; numbers.len()];
        program.each_product(|product| {
            let (_, (step, swap)) = program.split(product.diagonal);
            // The giant step comes after: it takes the product to its accumulator.
            let column = (product.accumulator % half) as isize + step;
            let row = usize::from(product.accumulator >= half) ^ usize::from(swap);
            let slot = row * half + column.rem_euclid(half as isize) as usize;
            let value: &mut u64 = &mut values[numbers[&product.diagonal]][slot];
            *value = (*value + residue(weights[product.weight].into(), prime)) % prime;
        });
        let encoded = parallel::map(program.diagonals().zip(&values), |(diagonal, values)| {
            let (baby, giant) = program.split(diagonal);
            Ok((babies[&baby], giants[&giant], encoder.compact_multiplier(values)?.prepare_extended(limbs)?))
        });
        let rotation = |(step, swap): (isize, bool)| Rotation { swap, ..Rotation::by(step, slots) };
        let residues: Vec<u64> = bias.iter().map(|b| residue(*b, prime)).collect();
        let packed = program.to().pack(&residues);
        Ok(Self {
            parameters: parameters.clone(),
            babies: babies.into_keys().map(|(at, step)| (at, rotation((step, false)))).collect(),
            giants: giants.into_keys().map(rotation).collect(),
            folds: program.folds(),
            diagonals: encoded.into_iter().collect::<Result<_, ProtocolError>>()?,
            bias: encoder.encode(packed.first().ok_or(ProtocolError::Shape { what: "a layer's output" })?)?,
        })
    }

    /// The layer on ciphertexts of as many limbs.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if keys are missing, or ciphertexts are of other parameters or several numbers of limbs.
    pub fn apply(
        &self,
        evaluator: &Evaluator,
        inputs: &[Ciphertext],
        keys: &EvaluationKeys,
    ) -> Result<Ciphertext, ProtocolError> {
        let element = |rotation| galois_element(rotation, self.parameters.degree());
        let limbs = inputs.first().map_or(0, Ciphertext::limbs);
        let hoisted = inputs.iter().map(|input| evaluator.hoist(input)).collect::<Result<Vec<_>, _>>()?;
        let babies = parallel::map(&self.babies, |(ciphertext, rotation)| {
            let hoisted =
                hoisted.get(*ciphertext).ok_or(ProtocolError::Shape { what: "the number of ciphertexts" })?;
            Ok(hoisted.apply_extended(element(*rotation)?, keys)?)
        });
        let babies = babies.into_iter().collect::<Result<Vec<ExtendedCiphertext>, ProtocolError>>()?;
        drop(hoisted);
        let mut sums = ExtendedCombinations::at(&self.parameters, self.giants.len(), limbs)?;
        sums.add_products(&babies, &self.products())?;
        drop(babies);
        let rotated = parallel::map(sums.finish().into_iter().zip(&self.giants), |(sum, rotation)| {
            Ok::<_, ProtocolError>(evaluator.apply(&sum, element(*rotation)?, keys)?)
        });
        let mut rotated = rotated.into_iter();
        let mut sum = rotated.next().ok_or(ProtocolError::Shape { what: "a layer without weights" })??;
        for giant in rotated {
            evaluator.add_assign(&mut sum, &giant?)?;
        }
        for fold in &self.folds {
            let folded = evaluator.apply(&sum, element(*fold)?, keys)?;
            evaluator.add_assign(&mut sum, &folded)?;
        }
        Ok(evaluator.add_plain(&sum, &self.bias)?)
    }

    /// Bytes of each factor, to within small change.
    #[must_use]
    pub fn factor_bytes(parameters: &Parameters, prime: u64, limbs: usize) -> u64 {
        Multiplier::bytes_with(parameters, prime, limbs + 1) as u64
    }

    fn products(&self) -> Vec<Product<'_>> {
        self.diagonals
            .iter()
            .map(|(baby, giant, factor)| Product { operand: *baby, row: *giant, factor })
            .collect()
    }
}
