//! Squares by encryption as steps of a plan.

use lanner_bfv::function_privacy::Budget;
use lanner_bfv::{ParameterSet, Parameters};
use lanner_primitives::Ring;
use lanner_step::{
    Answering, Answers, BoxedStep, Built, Client, Convolution, CotSupply, Known, LayerWeights, Memory,
    ModelParts, Needs, Result, Samples, Server, Sets, Spec, StepCost, ValueType, WeightForm, Work, limb,
};
use serde::{Deserialize, Serialize};

use super::{ClientSquare, ServerSquare, Target};
use crate::exchange::{halves, sealing};
use crate::gazelle::{self, Linear};

/// The square of each element, over `Z_prime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Square {
    /// Number of elements.
    pub values: usize,
    /// The plaintext modulus.
    pub prime: u64,
    /// The parameter set.
    pub set: ParameterSet,
}

/// The square of each element and the linear layer that takes the squares, whose set has a special limb.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SquareLinear(pub Linear);

impl Spec for Square {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let ring = Ring::Prime(self.prime);
        ValueType::only_known(inputs, ring, self.values)?;
        Ok(ValueType::shared(ring, self.values, Known::SERVER))
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { values: samples.times(self.values), ..*self })
    }

    fn build(&self, sets: &Sets) -> Result<Box<dyn Built>> {
        BuiltSquare::of(Target::Shares(self.values), self.prime, self.set, sets)
    }
}

impl Spec for SquareLinear {
    fn shape(&self) -> Option<&Convolution> {
        self.0.shape()
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let Linear { prime, ref shape, samples, .. } = self.0;
        ValueType::only_known(inputs, Ring::Prime(prime), samples.times(shape.inputs()))?;
        self.0.infer(inputs)
    }

    fn work(&self) -> Work {
        self.0.work()
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        self.0.of_samples(samples).map(Self)
    }

    fn build(&self, sets: &Sets) -> Result<Box<dyn Built>> {
        let Linear { set, prime, .. } = self.0;
        let packing = self.0.packing(sets)?;
        BuiltSquare::of(Target::Layer(Box::new(packing)), prime, set, sets)
    }
}

/// Squares with what becomes of them.
struct BuiltSquare {
    set: ParameterSet,
    parameters: Parameters,
    target: Target,
    prime: u64,
    sealing: Budget,
    form: WeightForm,
}

impl BuiltSquare {
    fn of(target: Target, prime: u64, set: ParameterSet, sets: &Sets) -> Result<Box<dyn Built>> {
        let parameters = sets.get(set)?.clone();
        let sealing = sealing(&parameters, prime, target.noise(&parameters, prime)?)?;
        Ok(Box::new(Self { set, parameters, target, prime, sealing, form: WeightForm::Coefficient }))
    }
}

impl Built for BuiltSquare {
    fn needs(&self) -> Result<Needs> {
        Ok(match &self.target {
            Target::Shares(_) => Needs { keys: Some((self.set, [].into())), ..Needs::default() },
            Target::Layer(packing) => gazelle::needs(self.set, packing),
        })
    }

    fn cost(&self, _: &mut CotSupply) -> Result<StepCost> {
        Ok(StepCost {
            offline: self.target.offline_cost(&self.parameters, self.prime)?,
            online: self.target.online_cost(&self.parameters, self.prime)?,
        })
    }

    fn answers(&self) -> Result<Answers> {
        let [_, outputs] = self.target.ciphertexts(&self.parameters);
        Ok(Answers { ciphertexts: outputs as u64, each: self.sealing.distance() })
    }

    fn memory(&self) -> Result<Memory> {
        let [inputs, outputs] = self.target.ciphertexts(&self.parameters);
        let mut material = halves([inputs, outputs], &self.parameters, self.sealing);
        // The server also keeps its own share, once for the two inputs that carry it: ready to multiply with its coefficients, and to add.
        let own_share = self.parameters.limbs() as u64 + 1 + 1;
        material.server_material += (inputs / 2) as u64 * own_share * limb(&self.parameters);
        Ok(match &self.target {
            Target::Shares(_) => material,
            Target::Layer(packing) => {
                material.beside(gazelle::weights_memory(packing, &self.parameters, self.prime, self.form)?)
            }
        })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        match &self.target {
            Target::Shares(_) => Vec::new(),
            Target::Layer(packing) => gazelle::counts(packing),
        }
    }

    fn weights(&mut self) -> Option<(u64, &mut WeightForm)> {
        let Target::Layer(packing) = &self.target else { return None };
        let bytes =
            gazelle::ServerLayer::bytes(packing, &self.parameters, self.prime, WeightForm::Evaluation);
        Some((bytes, &mut self.form))
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(ClientSquare::new(&self.target, &self.parameters, self.prime)?))
    }

    fn server(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Server> {
        let Self { parameters, target, prime, form, .. } = *self;
        let layer = match target {
            Target::Shares(values) => ServerSquare::new(values, &parameters, prime)?,
            Target::Layer(packing) => {
                let weights = model.weights(node, packing.shape().outputs()?)?;
                ServerSquare::before(
                    form,
                    *packing,
                    &parameters,
                    prime,
                    LayerWeights::shared(weights.weight, model.shared()),
                    &weights.small_bias()?,
                )?
            }
        };
        Ok(Box::new(Answering(layer)))
    }
}
