//! A frequency-domain layer as a step of a plan.

use lanner_bfv::function_privacy::Budget;
use lanner_bfv::{ParameterSet, Parameters};
use lanner_primitives::Ring;
use lanner_step::{
    Answering, Answers, BoxedStep, Built, Client, Convolution, CotSupply, Known, LayerWeights, Memory,
    ModelParts, Needs, Result, Server, Sets, Spec, StepCost, ValueType, WORD, WeightForm, Work,
};
use serde::{Deserialize, Serialize};

use super::packing::{Packing, candidates};
use super::{ClientLayer, ServerLayer, Variant, offline_cost, online_cost, output_noise};
use crate::exchange::{halves, sealing};

/// A linear layer over `Z_prime`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linear {
    /// The layer's shape.
    pub shape: Convolution,
    /// The plaintext modulus.
    pub prime: u64,
    /// The parameter set.
    pub set: ParameterSet,
    /// How products are laid out and added.
    pub variant: Variant,
}

impl Spec for Linear {
    fn shape(&self) -> Option<&Convolution> {
        Some(&self.shape)
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let ring = Ring::Prime(self.prime);
        ValueType::only(inputs, ring, self.shape.inputs())?;
        Ok(ValueType::shared(ring, self.shape.outputs()?, Known::SERVER))
    }

    fn work(&self) -> Work {
        let candidates = candidates(&self.shape, self.prime, self.set.degree()).unwrap_or_default();
        let own = candidates.into_iter().find(|(variant, _, _)| *variant == self.variant);
        let products = own.map_or(u64::MAX, |(_, operations, _)| operations.multiplications as u64);
        Work { products, ..Work::default() }
    }

    fn build(&self, sets: &Sets) -> Result<Box<dyn Built>> {
        let parameters = sets.get(self.set)?.clone();
        let packing = Packing::new(&self.shape, self.prime, parameters.degree(), self.variant)?;
        let sealing = sealing(&parameters, self.prime, output_noise(&packing, &parameters))?;
        Ok(Box::new(BuiltLinear {
            set: self.set,
            parameters,
            packing,
            sealing,
            form: WeightForm::Coefficient,
        }))
    }
}

/// A layer with its layout.
struct BuiltLinear {
    set: ParameterSet,
    parameters: Parameters,
    packing: Packing,
    sealing: Budget,
    form: WeightForm,
}

impl Built for BuiltLinear {
    fn needs(&self) -> Result<Needs> {
        Ok(Needs { keys: Some((self.set, [].into())), ..Needs::default() })
    }

    fn cost(&self, _: &mut CotSupply) -> Result<StepCost> {
        Ok(StepCost {
            offline: offline_cost(&self.packing, &self.parameters)?,
            online: online_cost(&self.packing, &self.parameters)?,
        })
    }

    fn answers(&self) -> Result<Answers> {
        let [_, outputs] = self.packing.ciphertexts();
        Ok(Answers { ciphertexts: outputs as u64, each: self.sealing.distance() })
    }

    fn memory(&self) -> Result<Memory> {
        let model = ServerLayer::bytes(&self.packing, &self.parameters, self.form);
        // Every input, and the sum in work.
        let [inputs, outputs] = self.packing.ciphertexts();
        let ciphertext = (2 * self.parameters.limbs() * self.parameters.degree()) as u64 * WORD;
        let working = (inputs as u64 + 1) * ciphertext;
        Ok(Memory { model, working, ..halves([inputs, outputs], &self.parameters, self.sealing) })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let operations = self.packing.operations();
        vec![
            ("degree", self.parameters.degree() as u64),
            ("multiplications", operations.multiplications as u64),
            ("additions", operations.additions as u64),
            ("input_ciphertexts", operations.input_ciphertexts as u64),
            ("output_ciphertexts", operations.output_ciphertexts as u64),
        ]
    }

    fn weights(&mut self) -> Option<(u64, &mut WeightForm)> {
        let bytes = ServerLayer::bytes(&self.packing, &self.parameters, WeightForm::Evaluation);
        Some((bytes, &mut self.form))
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(ClientLayer::new(&self.packing, &self.parameters)?))
    }

    fn server(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Server> {
        let Self { parameters, packing, form, .. } = *self;
        let weights = model.weights(node, packing.shape().outputs()?)?;
        let factors = LayerWeights::shared(weights.weight, model.shared());
        let layer = ServerLayer::in_form(form, &packing, &parameters, factors, &weights.small_bias()?)?;
        Ok(Box::new(Answering(layer)))
    }
}
