//! A linear layer on ciphertexts.

use std::collections::BTreeMap;

use lanner_bfv::{
    BfvError, Ciphertext, Encoded, EvaluationKeys, Evaluator, Factor, HoistedTerms, Multiplier,
    MultiplierForm, Parameters, PeriodicForm, PeriodicMultiplier, Plaintext, Product, SlotEncoder,
};
use lanner_primitives::parallel;
use lanner_ring::Extent;
use lanner_step::{LayerWeights, ProtocolError, Result, Rotation, Samples, galois_element, moduli};
use zeroize::Zeroizing;

use super::primes::residue;
use super::program::Program;

/// A layer's weights modulo some primes, ready to multiply.
pub struct Kernel {
    parameters: Parameters,
    /// Baby steps: ciphertext and rotation.
    babies: Vec<(usize, Rotation)>,
    /// Giant steps: rotation and ciphertext.
    giants: Vec<(Rotation, usize)>,
    folds: Vec<Rotation>,
    /// Each diagonal's baby step and giant step.
    steps: Vec<(usize, usize)>,
    residues: Vec<Residues>,
}

/// What there is modulo one prime.
struct Residues {
    diagonals: Vec<Diagonal>,
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

/// What is known of a diagonal but its words.
enum DiagonalForm {
    Slots(MultiplierForm),
    Periodic(PeriodicForm),
}

impl Encoded for Diagonal {
    type Form = DiagonalForm;

    fn length(form: &DiagonalForm) -> usize {
        match form {
            DiagonalForm::Slots(form) => Multiplier::length(form),
            DiagonalForm::Periodic(form) => PeriodicMultiplier::length(form),
        }
    }

    fn words(&self) -> Vec<&[u64]> {
        match self {
            Self::Slots(values) => values.words(),
            Self::Periodic(values) => values.words(),
        }
    }

    fn over(form: &DiagonalForm, words: Extent) -> Result<Self, BfvError> {
        Ok(match form {
            DiagonalForm::Slots(form) => Self::Slots(Multiplier::over(form, words)?),
            DiagonalForm::Periodic(form) => Self::Periodic(PeriodicMultiplier::over(form, words)?),
        })
    }
}

impl Kernel {
    /// Encodes a layer's weights, and one bias for each output element, for inputs of so many limbs with these samples.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] if weights or biases do not fit the layer.
    pub fn new(
        program: &Program,
        samples: Samples,
        weights: LayerWeights<'_>,
        bias: &[i128],
        parameters: &Parameters,
        limbs: usize,
        encoders: &[SlotEncoder],
    ) -> Result<Self> {
        ProtocolError::check_length("weights of a linear layer", program.shape().weights(), weights.len())?;
        ProtocolError::check_length("biases of a linear layer", program.to().len(), bias.len())?;
        let slots = program.from().slots();
        let by = |rotation| samples.rotation(rotation);
        let (babies, giants) = program.steps();
        let steps = program.diagonals().map(|diagonal| {
            let (baby, giant) = program.split(diagonal);
            (babies[&baby], giants[&giant])
        });
        let residues = encoders.iter().map(|encoder| {
            let (form, prime) = (form(program, samples, limbs, encoder)?, encoder.modulus().value());
            let purpose = ("diagonals", program, samples, moduli(parameters), prime, limbs);
            let make = || diagonals(program, samples, &weights, limbs, encoder);
            let diagonals = weights.encoded_by(&purpose, &form, program.diagonals().count(), make)?;
            Ok(Residues { diagonals, biases: biases(program, samples, bias, encoder)? })
        });
        let residues = residues.collect::<Result<_>>()?;
        Ok(Self {
            parameters: parameters.clone(),
            steps: steps.collect(),
            babies: babies.into_keys().map(|(at, step)| (at, by(Rotation::by(step, slots)))).collect(),
            giants: giants.into_keys().map(|giant| (by(giant.rotation(slots)), giant.output)).collect(),
            folds: program.folds().into_iter().map(by).collect(),
            residues,
        })
    }

    /// The layer on ciphertexts modulo each prime, all of as many limbs.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] unless there are ciphertexts modulo each prime; [`ProtocolError::Bfv`] if keys are missing, or ciphertexts are of
    /// other parameters or several numbers of limbs.
    pub fn apply(
        &self,
        evaluator: &Evaluator,
        inputs: &[Vec<Ciphertext>],
        keys: &EvaluationKeys,
    ) -> Result<Vec<Vec<Ciphertext>>> {
        ProtocolError::check_length("primes of an encrypted input", self.residues.len(), inputs.len())?;
        let element = |rotation| galois_element(rotation, self.parameters.degree());
        let products: Vec<_> = self.residues.iter().map(|residues| self.products(residues)).collect();
        let terms = inputs.iter().zip(&products);
        let terms: Vec<_> =
            terms.map(|(ciphertexts, products)| HoistedTerms { ciphertexts, products }).collect();
        let babies = self.babies.iter().map(|(ciphertext, rotation)| Ok((*ciphertext, element(*rotation)?)));
        let babies = babies.collect::<Result<Vec<_>>>()?;
        let sums = evaluator.sum_hoisted(&terms, &babies, self.giants.len(), keys)?;
        // The rotations by one key follow each other.
        let in_turn = self
            .giants
            .iter()
            .enumerate()
            .flat_map(|(giant, (rotation, _))| sums.iter().map(move |sums| (&sums[giant], *rotation)));
        let rotated =
            parallel::map(in_turn, |(sum, rotation)| Ok(evaluator.apply(sum, element(rotation)?, keys)?));
        let rotated = rotated.into_iter().collect::<Result<Vec<_>>>()?;
        let outputs = self.residues.iter().enumerate().flat_map(|(prime, residues)| {
            residues.biases.iter().enumerate().map(move |(output, bias)| (prime, output, bias))
        });
        let finished = parallel::map(outputs, |(prime, output, bias)| {
            let rotated = rotated.iter().skip(prime).step_by(inputs.len()).zip(&self.giants);
            let giants = rotated.filter(|(_, (_, to))| *to == output).map(|(sum, _)| sum);
            self.finish(evaluator, giants, bias, keys)
        });
        let mut finished = finished.into_iter();
        self.residues.iter().map(|residues| finished.by_ref().take(residues.biases.len()).collect()).collect()
    }

    /// The sum of giant steps, its folds, and its bias.
    fn finish<'a>(
        &self,
        evaluator: &Evaluator,
        mut giants: impl Iterator<Item = &'a Ciphertext>,
        bias: &Plaintext,
        keys: &EvaluationKeys,
    ) -> Result<Ciphertext> {
        let first = giants.next().ok_or(ProtocolError::WrongModel("a layer has no weights"))?;
        let mut sum = first.clone();
        giants.try_for_each(|giant| evaluator.add_assign(&mut sum, giant))?;
        for fold in &self.folds {
            let element = galois_element(*fold, self.parameters.degree())?;
            let folded = evaluator.apply(&sum, element, keys)?;
            evaluator.add_assign(&mut sum, &folded)?;
        }
        Ok(evaluator.add_plain(&sum, bias)?)
    }

    /// Bytes of the values of a diagonal that repeats after so many slots, or does not, to within small change.
    #[must_use]
    pub(super) fn diagonal_bytes(
        period: Option<usize>,
        parameters: &Parameters,
        prime: u64,
        limbs: usize,
    ) -> u64 {
        let bytes = match period {
            Some(period) => PeriodicMultiplier::bytes(period, limbs),
            None => Multiplier::bytes_with(parameters, prime, limbs + 1),
        };
        bytes as u64
    }

    fn products<'a>(&self, residues: &'a Residues) -> Vec<Product<'a>> {
        let product = |(&(operand, row), diagonal): (_, &'a Diagonal)| Product {
            operand,
            row,
            factor: diagonal.factor(),
        };
        self.steps.iter().zip(&residues.diagonals).map(product).collect()
    }
}

/// What is known of a layer's diagonals modulo an encoder's prime.
fn form(program: &Program, samples: Samples, limbs: usize, encoder: &SlotEncoder) -> Result<DiagonalForm> {
    Ok(match program.period() {
        Some(period) => DiagonalForm::Periodic(encoder.periodic(period * samples.count())?.form(limbs)?),
        None => DiagonalForm::Slots(MultiplierForm::new(encoder.modulus()).prepare_extended(limbs)?),
    })
}

/// A layer's diagonals modulo an encoder's prime.
fn diagonals(
    program: &Program,
    samples: Samples,
    weights: &[i64],
    limbs: usize,
    encoder: &SlotEncoder,
) -> Result<Vec<Diagonal>> {
    let (slots, prime) = (program.from().slots(), encoder.modulus().value());
    let numbers: BTreeMap<_, _> =
        program.diagonals().enumerate().map(|(number, diagonal)| (diagonal, number)).collect();
    let different = program.period().map_or(slots, |period| 2 * period);
    let mut values = Zeroizing::new(vec![vec![0; different]; numbers.len()]);
    program.each_product(|product| {
        let value: &mut u64 = &mut values[numbers[&product.diagonal]][program.slot(&product)];
        *value = (*value + residue(weights[product.weight].into(), prime)) % prime;
    });
    let periodic = program.period().map(|period| encoder.periodic(period * samples.count())).transpose()?;
    let encode = |values: &Vec<u64>| {
        let values = Zeroizing::new(samples.spread(values));
        Ok(match &periodic {
            Some(encoder) => Diagonal::Periodic(encoder.multiplier(&values, limbs)?),
            None => Diagonal::Slots(encoder.compact_multiplier(&values)?.prepare_extended(limbs)?),
        })
    };
    parallel::map(values.iter(), encode).into_iter().collect()
}

/// What is added to each ciphertext of the output, modulo an encoder's prime.
fn biases(
    program: &Program,
    samples: Samples,
    bias: &[i128],
    encoder: &SlotEncoder,
) -> Result<Vec<Plaintext>> {
    let prime = encoder.modulus().value();
    let residues: Zeroizing<Vec<u64>> = Zeroizing::new(bias.iter().map(|b| residue(*b, prime)).collect());
    let biases = program.to().pack(Samples::ONE, &residues);
    let biases = biases.iter().map(|bias| encoder.encode(&samples.spread(bias)));
    Ok(biases.collect::<Result<_, _>>()?)
}
