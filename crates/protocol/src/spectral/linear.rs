//! A linear layer on ciphertexts.

use std::collections::BTreeMap;

use lanner_bfv::{
    Ciphertext, EvaluationKeys, Evaluator, ExtendedCiphertext, ExtendedCombinations, Factor, Multiplier,
    Parameters, PeriodicMultiplier, Plaintext, Product, SlotEncoder,
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
    /// Giant steps: rotation and ciphertext.
    giants: Vec<(Rotation, usize)>,
    folds: Vec<Rotation>,
    /// Each diagonal's baby step, giant step, and values.
    diagonals: Vec<(usize, usize, Diagonal)>,
    /// For each ciphertext of the output.
    biases: Vec<Plaintext>,
}

/// The values of a diagonal.
enum Diagonal {
    Slots(Multiplier),
    Periodic(PeriodicMultiplier),
}

impl Diagonal {
    fn factor(&self) -> Factor<'_> {
        match self {
            Self::Slots(values) => Factor::Slots(values),
            Self::Periodic(values) => Factor::Periodic(values),
        }
    }
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
        let (slots, prime) = (encoder.slots(), encoder.modulus().value());
        if weights.len() != program.shape().weights() || bias.len() != program.to().len() {
            return Err(ProtocolError::Shape { what: "the weights of a layer" });
        }
        let (babies, giants) = program.steps();
        let numbers: BTreeMap<_, _> =
            program.diagonals().enumerate().map(|(number, diagonal)| (diagonal, number)).collect();
        let different = program.period().map_or(slots, |period| 2 * period);
        let mut values = vec![vec![0; different]; numbers.len()];
        program.each_product(|product| {
            let value: &mut u64 = &mut values[numbers[&product.diagonal]][program.slot(&product)];
            *value = (*value + residue(weights[product.weight].into(), prime)) % prime;
        });
        let periodic = program.period().map(|period| encoder.periodic(period)).transpose()?;
        let encode = |values: &[u64]| match &periodic {
            Some(encoder) => encoder.multiplier(values, limbs).map(Diagonal::Periodic),
            None => encoder.compact_multiplier(values)?.prepare_extended(limbs).map(Diagonal::Slots),
        };
        let encoded = parallel::map(program.diagonals().zip(&values), |(diagonal, values)| {
            let (baby, giant) = program.split(diagonal);
            Ok((babies[&baby], giants[&giant], encode(values)?))
        });
        let residues: Vec<u64> = bias.iter().map(|b| residue(*b, prime)).collect();
        let biases =
            program.to().pack(&residues).iter().map(|bias| encoder.encode(bias)).collect::<Result<_, _>>()?;
        Ok(Self {
            parameters: parameters.clone(),
            babies: babies.into_keys().map(|(at, step)| (at, Rotation::by(step, slots))).collect(),
            giants: giants.into_keys().map(|giant| (giant.rotation(slots), giant.output)).collect(),
            folds: program.folds(),
            diagonals: encoded.into_iter().collect::<Result<_, ProtocolError>>()?,
            biases,
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
    ) -> Result<Vec<Ciphertext>, ProtocolError> {
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
        let rotated = parallel::map(sums.finish().into_iter().zip(&self.giants), |(sum, (rotation, _))| {
            Ok::<_, ProtocolError>(evaluator.apply(&sum, element(*rotation)?, keys)?)
        });
        let mut outputs: Vec<Option<Ciphertext>> = vec![None; self.biases.len()];
        for (giant, (_, output)) in rotated.into_iter().zip(&self.giants) {
            match &mut outputs[*output] {
                Some(sum) => evaluator.add_assign(sum, &giant?)?,
                none => *none = Some(giant?),
            }
        }
        outputs
            .into_iter()
            .zip(&self.biases)
            .map(|(sum, bias)| self.finish(evaluator, sum, bias, keys))
            .collect()
    }

    /// The folds of a sum, and its bias.
    fn finish(
        &self,
        evaluator: &Evaluator,
        sum: Option<Ciphertext>,
        bias: &Plaintext,
        keys: &EvaluationKeys,
    ) -> Result<Ciphertext, ProtocolError> {
        let mut sum = sum.ok_or(ProtocolError::Shape { what: "a layer without weights" })?;
        for fold in &self.folds {
            let element = galois_element(*fold, self.parameters.degree())?;
            let folded = evaluator.apply(&sum, element, keys)?;
            evaluator.add_assign(&mut sum, &folded)?;
        }
        Ok(evaluator.add_plain(&sum, bias)?)
    }

    /// Bytes of the values of each of a program's diagonals, to within small change.
    #[must_use]
    pub fn diagonal_bytes(program: &Program, parameters: &Parameters, prime: u64, limbs: usize) -> u64 {
        let bytes = match program.period() {
            Some(period) => PeriodicMultiplier::bytes(period, limbs),
            None => Multiplier::bytes_with(parameters, prime, limbs + 1),
        };
        bytes as u64
    }

    fn products(&self) -> Vec<Product<'_>> {
        self.diagonals
            .iter()
            .map(|(operand, row, diagonal)| Product {
                operand: *operand,
                row: *row,
                factor: diagonal.factor(),
            })
            .collect()
    }
}
