//! A linear layer as a step of a plan.

use std::sync::{Arc, OnceLock};

use lanner_bfv::{Ciphertext, Evaluator, ParameterSet, Parameters};
use lanner_step::{
    BoxedStep, Built, Client, ClientKeys, Convolution, Encrypted, KeyUse, LayerWeights, Memory, ModelParts,
    Needs, Online, ProtocolError, Result, Samples, Server, Sets, Spec, ValueType, Work,
};
use serde::{Deserialize, Serialize};

use super::evaluate::{AtServer, Elsewhere, Evaluate, InSession};
use super::layout::Layout;
use super::linear::Kernel;
use super::primes::{Primes, product};
use super::program::{Gathering, Program};
use super::{ciphertext_bytes, dropped, needs};

/// A linear layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linear {
    /// The layer's shape.
    shape: Convolution,
    /// Where the input's elements lie.
    from: Layout,
    /// Where the output's elements lie.
    to: Layout,
    /// How products come there.
    gathering: Gathering,
    /// How many samples lie in the slots.
    #[serde(default, skip_serializing_if = "Samples::is_one")]
    samples: Samples,
    /// The plaintext moduli.
    primes: Vec<u64>,
    /// The parameter set.
    set: ParameterSet,
    /// Limbs before and behind.
    limbs: [usize; 2],
    #[serde(skip)]
    made: Made,
}

/// The program, which follows from the rest: it is made once, and no part of what the step is.
#[derive(Clone, Debug, Default)]
struct Made(OnceLock<Arc<Program>>);

impl PartialEq for Made {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Made {}

impl Linear {
    /// The layer that a program computes for each of some samples.
    #[must_use]
    pub fn new(
        program: &Arc<Program>,
        samples: Samples,
        primes: &[u64],
        set: ParameterSet,
        limbs: [usize; 2],
    ) -> Self {
        Self {
            shape: program.shape().clone(),
            from: program.from().clone(),
            to: program.to().clone(),
            gathering: program.gathering(),
            samples,
            primes: primes.to_vec(),
            set,
            limbs,
            made: Made(OnceLock::from(Arc::clone(program))),
        }
    }

    /// Where the input's elements lie.
    #[must_use]
    pub fn from(&self) -> &Layout {
        &self.from
    }

    /// Where the output's elements lie.
    #[must_use]
    pub fn to(&self) -> &Layout {
        &self.to
    }

    fn program(&self) -> Result<Arc<Program>> {
        if let Some(program) = self.made.0.get() {
            return Ok(Arc::clone(program));
        }
        let program = Arc::new(Program::of(&self.shape, &self.from, &self.to, self.gathering)?);
        Ok(Arc::clone(self.made.0.get_or_init(|| program)))
    }
}

impl Spec for Linear {
    fn shape(&self) -> Option<&Convolution> {
        Some(&self.shape)
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let input = ValueType::only_encrypted(inputs)?;
        let ([before, behind], program) = (self.limbs, self.program()?);
        let fits = (input.set, input.ciphertexts, input.limbs) == (self.set, self.from.ciphertexts(), before)
            && Some(input.modulus) == product(&self.primes)
            && self.from.slots() == self.samples.slots(self.set.degree());
        if !fits || !(1..=before).contains(&behind) {
            return Err(ProtocolError::WrongInput("the primes, ciphertexts or limbs of an encrypted layer"));
        }
        let parameters = self.set.parameters()?;
        let noise = program.noise(input.noise, &parameters, &self.primes, before);
        let noise = noise.switched_modulus(&parameters, before, behind);
        Ok(ValueType::Encrypted(Encrypted {
            ciphertexts: self.to.ciphertexts(),
            limbs: behind,
            noise,
            ..input
        }))
    }

    fn work(&self) -> Work {
        let products = self.program().map_or(u64::MAX, |program| program.counts().multiplications as u64);
        Work { products: products.saturating_mul(self.primes.len() as u64), ..Work::default() }
    }

    fn build(&self, sets: &Sets) -> Result<Box<dyn Built>> {
        let parameters = sets.get(self.set)?.clone();
        let (primes, program) = (Primes::new(&parameters, &self.primes)?, self.program()?);
        Ok(Box::new(BuiltLinear { spec: self.clone(), parameters, primes, program }))
    }
}

/// The layer with its program.
struct BuiltLinear {
    spec: Linear,
    parameters: Parameters,
    primes: Primes,
    program: Arc<Program>,
}

impl Built for BuiltLinear {
    fn needs(&self) -> Result<Needs> {
        let key = |rotation| (KeyUse::Rotation(self.spec.samples.rotation(rotation)), self.spec.limbs[0]);
        Ok(needs(self.spec.set, self.program.rotations().into_iter().map(key)))
    }

    fn memory(&self) -> Result<Memory> {
        let (counts, limbs) = (self.program.counts(), self.spec.limbs[0]);
        let (primes, products) = (self.spec.primes.len() as u64, counts.multiplications as u64);
        let (babies, giants) = self.program.steps();
        // Sums have a limb more; of rotated inputs one is in work; of an input that is decomposed each limb has so many.
        let extended = ciphertext_bytes(&self.parameters, limbs + 1);
        let rotated = babies.len() as u64 * ciphertext_bytes(&self.parameters, 1);
        let digits = (counts.ciphertexts * limbs) as u64 * extended / 2;
        // With what they are divided to, and that rotated.
        let working = rotated + digits + 3 * giants.len() as u64 * extended;
        // Values that repeat are laid out sum by sum, of one limb modulo one prime.
        let period = self.program.period().map(|period| period * self.spec.samples.count());
        let values = period.map_or(0, |period| products * (2 * period * size_of::<u64>()) as u64);
        let diagonals =
            |prime: &u64| products * Kernel::diagonal_bytes(period, &self.parameters, *prime, limbs);
        let model = self.spec.primes.iter().map(diagonals).sum();
        Ok(Memory { model, working: primes * working + values, ..Memory::default() })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = self.program.counts();
        let each = [
            ("hoisted_rotations", counts.hoisted),
            ("rotations", counts.hoisted + counts.rotations),
            ("multiplications", counts.multiplications),
            ("input_ciphertexts", counts.ciphertexts),
            ("output_ciphertexts", self.spec.to.ciphertexts()),
            ("limbs", self.spec.limbs[0]),
            ("primes", self.spec.primes.len()),
        ];
        each.map(|(name, count)| (name, count as u64)).to_vec()
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(Online(Elsewhere)))
    }

    fn server(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Server> {
        let Self { spec, parameters, primes, program } = *self;
        let weights = model.weights(node, spec.shape.outputs()?)?;
        let (set, [limbs, behind]) = (spec.set, spec.limbs);
        let kernel = Kernel::new(
            &program,
            spec.samples,
            LayerWeights::shared(weights.weight, model.shared()),
            &weights.bias,
            &parameters,
            limbs,
            primes.encoders(),
        )?;
        Ok(Box::new(InSession(AtServer { set, layer: Layer { parameters, kernel, behind } })))
    }
}

/// The layer with its weights.
struct Layer {
    parameters: Parameters,
    kernel: Kernel,
    /// Limbs that are left.
    behind: usize,
}

impl Evaluate for Layer {
    fn evaluate(&self, keys: &ClientKeys, inputs: &[Vec<Ciphertext>]) -> Result<Vec<Vec<Ciphertext>>> {
        let evaluator = Evaluator::new(&self.parameters);
        let outputs = self.kernel.apply(&evaluator, inputs, &keys.evaluation)?;
        let behind = |output| dropped(&evaluator, output, self.behind);
        lanner_primitives::parallel::map(outputs, |outputs| outputs.into_iter().map(behind).collect())
            .into_iter()
            .collect()
    }
}
