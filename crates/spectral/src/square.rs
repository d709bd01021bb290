//! The square of each slot, by a product of ciphertexts.

use lanner_bfv::{Ciphertext, Evaluator, NoiseBound, ParameterSet, Parameters};
use lanner_primitives::parallel;
use lanner_step::{
    BoxedStep, Built, Client, ClientKeys, Encrypted, KeyUse, Memory, ModelParts, Needs, Online,
    ProtocolError, Result, Server, Sets, Spec, ValueType,
};
use serde::{Deserialize, Serialize};

use super::evaluate::{AtServer, Elsewhere, Evaluate, InSession};
use super::primes::{Primes, largest, product};
use super::{ciphertext_bytes, needs};

/// The square of each element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Square {
    /// Ciphertexts modulo each prime.
    pub ciphertexts: usize,
    /// The plaintext moduli.
    pub primes: Vec<u64>,
    /// The parameter set.
    pub set: ParameterSet,
    /// Limbs before and behind.
    pub limbs: [usize; 2],
}

impl Square {
    /// A bound on the noise of squares of ciphertexts with this noise, for limbs before and behind.
    #[must_use]
    pub fn noise(
        input: NoiseBound,
        parameters: &Parameters,
        primes: &[u64],
        [before, behind]: [usize; 2],
    ) -> NoiseBound {
        let product = input.product(input, parameters, largest(primes), before);
        product.switched_product(parameters, before, behind).switched_key_at(parameters, behind)
    }
}

impl Spec for Square {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let input = ValueType::only_encrypted(inputs)?;
        let [before, behind] = self.limbs;
        let fits = (input.set, input.ciphertexts, input.limbs) == (self.set, self.ciphertexts, before)
            && Some(input.modulus) == product(&self.primes);
        if !fits || !(1..=before).contains(&behind) {
            return Err(ProtocolError::WrongInput("the primes, ciphertexts or limbs of a square"));
        }
        let parameters = self.set.parameters()?;
        let noise = Self::noise(input.noise, &parameters, &self.primes, self.limbs);
        Ok(ValueType::Encrypted(Encrypted { limbs: behind, noise, ..input }))
    }

    fn build(&self, sets: &Sets) -> Result<Box<dyn Built>> {
        let parameters = sets.get(self.set)?.clone();
        let primes = Primes::new(&parameters, &self.primes)?;
        Ok(Box::new(BuiltSquare { spec: self.clone(), parameters, primes }))
    }
}

/// The square with its encoders.
struct BuiltSquare {
    spec: Square,
    parameters: Parameters,
    primes: Primes,
}

impl Built for BuiltSquare {
    fn needs(&self) -> Result<Needs> {
        Ok(needs(self.spec.set, [(KeyUse::Product, self.spec.limbs[1])]))
    }

    fn memory(&self) -> Result<Memory> {
        let count = (self.spec.ciphertexts * self.spec.primes.len()) as u64;
        let bytes = ciphertext_bytes(&self.parameters, self.spec.limbs[0]);
        // Beside the squares, each thread's digits, and its products over as many moduli again.
        Ok(Memory { working: count * bytes + parallel::threads() as u64 * 8 * bytes, ..Memory::default() })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let squares = (self.spec.ciphertexts * self.spec.primes.len()) as u64;
        vec![("ciphertext_products", squares), ("limbs", self.spec.limbs[0] as u64)]
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(Online(Elsewhere)))
    }

    fn server(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Server> {
        Ok(Box::new(InSession(AtServer { set: self.spec.set, layer: *self })))
    }
}

impl Evaluate for BuiltSquare {
    fn evaluate(&self, keys: &ClientKeys, inputs: &[Vec<Ciphertext>]) -> Result<Vec<Vec<Ciphertext>>> {
        let evaluator = Evaluator::new(&self.parameters);
        self.primes.each(|number, encoder| {
            let square = |input: &Ciphertext| {
                Ok(evaluator.square_to(input, encoder.modulus(), &keys.evaluation, self.spec.limbs[1])?)
            };
            parallel::map(&inputs[number], square).into_iter().collect()
        })
    }
}
