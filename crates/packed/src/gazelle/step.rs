//! A packed layer as a step of a plan.

use lanner_bfv::function_privacy::Budget;
use lanner_bfv::{ParameterSet, Parameters};
use lanner_primitives::Ring;
use lanner_step::{
    Answering, Answers, BoxedStep, Built, Client, Convolution, CotSupply, KeyUse, Known, LayerWeights,
    Memory, ModelParts, Needs, Result, Samples, Server, Sets, Spec, StepCost, ValueType, WeightForm, Work,
};
use serde::{Deserialize, Serialize};

use super::packing::Packing;
use super::{ClientLayer, Kernel, ServerLayer, offline_cost, online_cost, output_noise, working_bytes};
use crate::exchange::{halves, sealing};

/// A linear layer over `Z_prime`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linear {
    /// The layer's shape.
    pub shape: Convolution,
    /// The plaintext modulus.
    pub prime: u64,
    /// The parameter set: one with a special limb.
    pub set: ParameterSet,
    /// The kernel.
    pub kernel: Kernel,
    /// Samples that share ciphertexts.
    #[serde(default, skip_serializing_if = "Samples::is_one")]
    pub samples: Samples,
}

/// The parameter sets of packed layers, the cheapest first. A plan has one for all its layers, which share their keys.
pub const SETS: [ParameterSet; 2] = [ParameterSet::B, ParameterSet::W];

impl Linear {
    /// How its elements lie in ciphertexts.
    pub(crate) fn packing(&self, sets: &Sets) -> Result<Packing> {
        Packing::of_samples(&self.shape, sets.get(self.set)?.degree(), self.kernel, self.samples)
    }
}

impl Spec for Linear {
    fn shape(&self) -> Option<&Convolution> {
        Some(&self.shape)
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let ring = Ring::Prime(self.prime);
        ValueType::only(inputs, ring, self.samples.times(self.shape.inputs()))?;
        Ok(ValueType::shared(ring, self.samples.times(self.shape.outputs()?), Known::SERVER))
    }

    fn work(&self) -> Work {
        work(&self.shape, self.samples)
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { samples, ..self.clone() })
    }

    fn build(&self, sets: &Sets) -> Result<Box<dyn Built>> {
        let (set, prime, parameters) = (self.set, self.prime, sets.get(self.set)?.clone());
        let packing = self.packing(sets)?;
        let sealing = sealing(&parameters, prime, output_noise(&packing, &parameters, prime)?)?;
        Ok(Box::new(BuiltLinear { set, parameters, packing, prime, sealing, form: WeightForm::Coefficient }))
    }
}

/// A layer with its layout.
struct BuiltLinear {
    set: ParameterSet,
    parameters: Parameters,
    packing: Packing,
    prime: u64,
    sealing: Budget,
    form: WeightForm,
}

impl Built for BuiltLinear {
    fn needs(&self) -> Result<Needs> {
        Ok(needs(self.set, &self.packing))
    }

    fn cost(&self, _: &mut CotSupply) -> Result<StepCost> {
        let Self { parameters, packing, prime, .. } = self;
        Ok(StepCost {
            offline: offline_cost(packing, parameters, *prime)?,
            online: online_cost(packing, parameters, *prime)?,
        })
    }

    fn answers(&self) -> Result<Answers> {
        let [_, outputs] = self.packing.ciphertexts();
        Ok(Answers { ciphertexts: outputs as u64, each: self.sealing.distance() })
    }

    fn memory(&self) -> Result<Memory> {
        let material = halves(self.packing.ciphertexts(), &self.parameters, self.sealing);
        Ok(material.beside(weights_memory(&self.packing, &self.parameters, self.prime, self.form)?))
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        counts(&self.packing)
    }

    fn weights(&mut self) -> Option<(u64, &mut WeightForm)> {
        let bytes = ServerLayer::bytes(&self.packing, &self.parameters, self.prime, WeightForm::Evaluation);
        Some((bytes, &mut self.form))
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(ClientLayer::new(&self.packing, &self.parameters, self.prime)?))
    }

    fn server(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Server> {
        let Self { parameters, packing, prime, form, .. } = *self;
        let weights = model.weights(node, packing.shape().outputs()?)?;
        let factors = LayerWeights::shared(weights.weight, model.shared());
        let layer = ServerLayer::in_form(form, packing, &parameters, prime, factors, &weights.small_bias()?)?;
        Ok(Box::new(Answering(layer)))
    }
}

/// What a layer with this packing needs of the session.
pub(crate) fn needs(set: ParameterSet, packing: &Packing) -> Needs {
    let key = |rotation| (KeyUse::Rotation(rotation), usize::MAX);
    Needs { keys: Some((set, packing.keys().into_iter().map(key).collect())), ..Needs::default() }
}

/// At most about so many products and keys of a layer for several samples, whatever its layout.
#[must_use]
pub fn work(shape: &Convolution, samples: Samples) -> Work {
    let area = |size: [usize; 2]| (size[0] as u64).saturating_mul(size[1] as u64);
    let taps = area(shape.kernel);
    let outputs = shape.output_image().map_or(u64::MAX, area);
    let pixels = area(shape.image.map(|size| size.max(1))).max(outputs);
    let positions = (samples.slots(SLOTS as usize) as u64
        / pixels.checked_next_power_of_two().unwrap_or(u64::MAX))
    .max(2);
    let inputs = (shape.in_channels as u64).saturating_mul(area(shape.strides));
    let ciphertexts = |channels: u64| channels.div_ceil(positions);
    let dense = taps
        .saturating_mul(inputs.min(positions))
        .saturating_mul(ciphertexts(inputs))
        .saturating_mul(ciphertexts(shape.out_channels as u64));
    // Each of a group's channels meets each output ciphertext in as many diagonals as copies and their ends lie apart, a few.
    let of_group = (shape.group_inputs() as u64).saturating_mul(area(shape.strides));
    let ends = (shape.group_outputs() as u64).saturating_add(of_group).saturating_add(1);
    let grouped = taps
        .saturating_mul(of_group.saturating_mul(shape.group_outputs() as u64).max(ends))
        .saturating_mul(2)
        .saturating_mul(ciphertexts(inputs).max(ciphertexts(shape.out_channels as u64)));
    let products = if shape.groups == 1 { dense } else { dense.min(grouped) };
    Work { products, taps, ..Work::default() }
}

/// What a layer's weights take, and its work.
pub(crate) fn weights_memory(
    packing: &Packing,
    parameters: &Parameters,
    prime: u64,
    form: WeightForm,
) -> Result<Memory> {
    let model = ServerLayer::bytes(packing, parameters, prime, form);
    Ok(Memory { model, working: working_bytes(packing, parameters)?, ..Memory::default() })
}

/// What a layer costs the server.
pub(crate) fn counts(packing: &Packing) -> Vec<(&'static str, u64)> {
    let operations = packing.operations();
    vec![
        ("hoisted_rotations", operations.hoisted_rotations as u64),
        ("rotations", operations.rotations as u64),
        ("multiplications", operations.multiplications as u64),
        ("input_ciphertexts", operations.input_ciphertexts as u64),
        ("output_ciphertexts", operations.output_ciphertexts as u64),
    ]
}

/// Slots of the ciphertexts of [`SETS`].
pub const SLOTS: u64 = 8192;
