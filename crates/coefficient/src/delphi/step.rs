//! A layer that is encrypted ahead of time as a step of a plan.

use lanner_primitives::Ring;
use lanner_step::{
    Answering, Answers, BoxedStep, Built, Client, Convolution, CotSupply, Known, Memory, ModelParts, Needs,
    Result, Server, Sets, Spec, StepCost, ValueType, WORD, WeightForm, Work, limb,
};
use serde::{Deserialize, Serialize};

use super::{ClientLayer, Product, ServerLayer, cost};
use crate::cheetah::{self, BuiltLinear};

/// A linear layer over `Z_2^bits`, by the one that is run ahead of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linear(pub cheetah::Linear);

impl Spec for Linear {
    fn shape(&self) -> Option<&Convolution> {
        Some(&self.0.shape)
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let cheetah::Linear { shape, bits, accuracy, .. } = &self.0;
        ValueType::only(inputs, Ring::Pow2(*bits), shape.inputs())?;
        let ring = Ring::Pow2(bits + accuracy.guard());
        Ok(ValueType::shared(ring, shape.outputs()?, Known::CLIENT))
    }

    fn work(&self) -> Work {
        self.0.work()
    }

    fn build(&self, sets: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(BuiltSplit(BuiltLinear::new(&self.0, sets)?)))
    }
}

/// The layer that is run ahead of time.
struct BuiltSplit(BuiltLinear);

impl Built for BuiltSplit {
    fn needs(&self) -> Result<Needs> {
        self.0.needs()
    }

    fn cost(&self, _: &mut CotSupply) -> Result<StepCost> {
        Ok(cost(self.0.scheme()))
    }

    fn answers(&self) -> Result<Answers> {
        self.0.answers()
    }

    fn memory(&self) -> Result<Memory> {
        let (scheme, layer) = (self.0.scheme(), self.0.memory()?);
        let (packing, parameters) = (scheme.packing(), scheme.parameters());
        let (inputs, outputs) = (packing.shape().inputs() as u64, packing.shape().outputs()? as u64);
        let [ciphertexts, _] = packing.ciphertexts();
        let halves = ciphertexts as u64 * limb(parameters) * parameters.limbs() as u64;
        Ok(Memory {
            model: layer.model + Product::bytes(packing.shape(), self.0.spec().bits)?,
            // Shares alone: what the encrypted layer keeps between its phases is gone when this layer is prepared.
            client_material: (inputs + outputs) * WORD,
            server_material: outputs * WORD,
            // First halves are received before second ones are worked on.
            working: layer.working + layer.server_material + halves,
            client_working: layer.client_working + layer.client_material,
            ..layer
        })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        self.0.counts()
    }

    fn weights(&mut self) -> Option<(u64, &mut WeightForm)> {
        self.0.weights()
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(ClientLayer::of(self.0.client_layer()?)?))
    }

    fn server(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Server> {
        let cheetah::Linear { shape, bits, .. } = self.0.spec().clone();
        let weights = model.weights(node, shape.outputs()?)?;
        let purpose = ("plaintext product", &shape, bits);
        let make = || Product::new(&shape, bits, weights.weight);
        let product = model.shared().get_or(&purpose, weights.weight, make)?;
        let layer = self.0.server_layer(&weights, model.shared())?;
        Ok(Box::new(Answering(ServerLayer::of(layer, product))))
    }
}
