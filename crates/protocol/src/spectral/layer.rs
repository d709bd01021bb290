//! A linear layer as a step of a plan.

use lanner_bfv::{Ciphertext, Evaluator, ParameterSet, Parameters};
use serde::{Deserialize, Serialize};

use super::evaluate::{AtServer, Elsewhere, Evaluate};
use super::layout::Layout;
use super::linear::Kernel;
use super::primes::{Primes, product};
use super::program::{Gathering, Program};
use super::{ciphertext_bytes, dropped, needs};
use crate::ProtocolError;
use crate::linear::keys::ClientKeys;
use crate::linear::{Convolution, Sets, layer_name};
use crate::step::{
    BoxedStep, Built, Client, Encrypted, KeyUse, Memory, ModelParts, Needs, Server, Spec, ValueType, Work,
};

/// A linear layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linear {
    /// The layer's shape.
    pub shape: Convolution,
    /// Where the input's elements lie.
    pub from: Layout,
    /// Where the output's elements lie.
    pub to: Layout,
    /// How products come there.
    pub gathering: Gathering,
    /// The plaintext moduli.
    pub primes: Vec<u64>,
    /// The parameter set.
    pub set: ParameterSet,
    /// Limbs before and behind.
    pub limbs: [usize; 2],
}

impl Linear {
    fn program(&self) -> Result<Program, ProtocolError> {
        Program::of(&self.shape, &self.from, &self.to, self.gathering)
    }
}

impl Spec for Linear {
    fn name(&self) -> &'static str {
        layer_name(&self.shape, ["spectral.fc", "spectral.conv"])
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType, ProtocolError> {
        let input = ValueType::only_encrypted(inputs)?;
        let [before, behind] = self.limbs;
        let fits = (input.set, input.ciphertexts, input.limbs) == (self.set, self.from.ciphertexts(), before)
            && Some(input.modulus) == product(&self.primes);
        if !fits || !(1..=before).contains(&behind) {
            return Err(ProtocolError::Shape { what: "the input of an encrypted layer" });
        }
        let parameters = self.set.parameters()?;
        let noise = self.program()?.noise(input.noise, &parameters, &self.primes, before);
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

    fn build(&self, sets: &Sets) -> Result<Box<dyn Built>, ProtocolError> {
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
    program: Program,
}

impl Built for BuiltLinear {
    fn needs(&self) -> Result<Needs, ProtocolError> {
        let key = |rotation| (KeyUse::Rotation(rotation), self.spec.limbs[0]);
        Ok(needs(self.spec.set, self.program.rotations().into_iter().map(key)))
    }

    fn memory(&self) -> Result<Memory, ProtocolError> {
        let (counts, limbs) = (self.program.counts(), self.spec.limbs[0]);
        let (primes, products) = (self.spec.primes.len() as u64, counts.multiplications as u64);
        let (babies, giants) = self.program.steps();
        // Rotated inputs and sums have a limb more; of an input that is decomposed each limb has so many.
        let rotated = (babies.len() + giants.len()) as u64 * ciphertext_bytes(&self.parameters, limbs + 1);
        let digits = (counts.ciphertexts * limbs) as u64 * ciphertext_bytes(&self.parameters, limbs + 1) / 2;
        let working = rotated + digits;
        let diagonals =
            |prime: &u64| products * Kernel::diagonal_bytes(&self.program, &self.parameters, *prime, limbs);
        let model = self.spec.primes.iter().map(diagonals).sum();
        Ok(Memory { model, working: primes * working, ..Memory::default() })
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
        ];
        each.map(|(name, count)| (name, count as u64)).to_vec()
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(Elsewhere))
    }

    fn server(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Server> {
        let Self { spec, parameters, primes, program } = *self;
        let weights = model.weights(node, spec.shape.outputs()?)?;
        let kernel = |_, encoder: &_| {
            Kernel::new(&program, weights.weight, &weights.bias, &parameters, spec.limbs[0], encoder)
        };
        let kernels = primes.each(kernel)?;
        let set = spec.set;
        Ok(Box::new(AtServer { set, layer: Layer { parameters, kernels, behind: spec.limbs[1] } }))
    }
}

/// The layer with its weights, modulo each prime.
struct Layer {
    parameters: Parameters,
    kernels: Vec<Kernel>,
    /// Limbs that are left.
    behind: usize,
}

impl Evaluate for Layer {
    fn evaluate(
        &self,
        keys: &ClientKeys,
        inputs: &[Vec<Ciphertext>],
    ) -> Result<Vec<Vec<Ciphertext>>, ProtocolError> {
        let evaluator = Evaluator::new(&self.parameters);
        let apply = |(kernel, inputs): (&Kernel, &Vec<Ciphertext>)| {
            let outputs = kernel.apply(&evaluator, inputs, &keys.evaluation)?;
            outputs.into_iter().map(|output| dropped(&evaluator, output, self.behind)).collect()
        };
        lanner_primitives::parallel::map(self.kernels.iter().zip(inputs), apply).into_iter().collect()
    }
}
