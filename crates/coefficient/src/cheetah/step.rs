//! A coefficient-encoded layer as a step of a plan.

use lanner_bfv::{CoefficientFactor, ParameterSet};
use lanner_primitives::Ring;
use lanner_step::{
    Answering, Answers, BoxedStep, Built, Client, Convolution, CotSupply, Known, LayerWeights, Memory,
    ModelParts, Needs, Result, Samples, Server, Sets, Shared, Spec, StepCost, ValueType, WORD, WeightForm,
    Weights, Work, limb,
};
use serde::{Deserialize, Serialize};

use super::packing::AnswerForm;
use super::price::whole;
use super::server::Filters;
use super::{Accuracy, ClientLayer, Packing, Scheme, ServerLayer, Stacked};

/// A linear layer over `Z_2^bits`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linear {
    /// The layer's shape.
    pub shape: Convolution,
    /// The ring.
    pub bits: u32,
    /// The parameter set.
    pub set: ParameterSet,
    /// How often outputs may be off by one.
    pub accuracy: Accuracy,
    /// Samples that share ciphertexts.
    #[serde(default, skip_serializing_if = "Samples::is_one")]
    pub samples: Samples,
}

impl Spec for Linear {
    fn shape(&self) -> Option<&Convolution> {
        Some(&self.shape)
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let ring = Ring::Pow2(self.bits);
        ValueType::only(inputs, ring, self.samples.times(self.shape.inputs()))?;
        let ring = Ring::Pow2(self.bits + self.accuracy.guard());
        Ok(ValueType::shared(ring, self.samples.times(self.shape.outputs()?), Known::SERVER))
    }

    fn work(&self) -> Work {
        Stacked::new(&self.shape, self.samples).map_or(MOST, |layer| work_at(&layer, self.set.degree()))
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { samples, ..self.clone() })
    }

    fn build(&self, sets: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(BuiltLinear::new(self, sets)?))
    }
}

/// What a layer takes in ciphertexts of the usual degree.
#[must_use]
pub fn work(shape: &Convolution) -> Work {
    Stacked::try_from(shape).map_or(MOST, |layer| work_at(&layer, ParameterSet::A1.degree()))
}

/// Of what is no layer.
const MOST: Work =
    Work { products: u64::MAX, ciphertexts: u64::MAX, window_elements: 0, circuit_values: 0, taps: 0 };

fn work_at(layer: &Stacked, degree: usize) -> Work {
    // That of halves in whole; where they are narrower, others may be cheaper, by no more.
    Packing::cheapest(layer, degree, AnswerForm::Apart, |packing| Some(whole(packing))).map_or(
        MOST,
        |packing| Work {
            products: packing.products() as u64,
            ciphertexts: packing.ciphertexts().iter().sum::<usize>() as u64,
            ..Work::default()
        },
    )
}

/// A layer with its layout, and the modulus in which outputs are sent.
pub(crate) struct BuiltLinear {
    spec: Linear,
    scheme: Scheme,
    form: WeightForm,
}

impl BuiltLinear {
    /// Builds the layer.
    pub(crate) fn new(spec: &Linear, sets: &Sets) -> Result<Self> {
        let layer = Stacked::new(&spec.shape, spec.samples)?;
        let scheme = Scheme::new(&layer, spec.bits, spec.accuracy, sets.get(spec.set)?)?;
        Ok(Self { spec: spec.clone(), scheme, form: WeightForm::Coefficient })
    }

    /// What the plan stores of it.
    pub(crate) fn spec(&self) -> &Linear {
        &self.spec
    }

    /// All that both parties know of it.
    pub(crate) fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// As the client runs it.
    pub(crate) fn client_layer(self) -> Result<ClientLayer> {
        ClientLayer::new(self.scheme)
    }

    /// As the server runs it, with its weights.
    pub(crate) fn server_layer(self, weights: &Weights<'_>, shared: &Shared) -> Result<ServerLayer> {
        let Self { spec, scheme, form } = self;
        let purpose = (&spec, form);
        let factors = LayerWeights::shared(weights.weight, shared);
        let make = || Filters::new(form, &scheme, factors, &purpose);
        let filters = shared.get_or(&purpose, weights.weight, make)?;
        ServerLayer::with_filters(scheme, filters, &weights.small_bias()?)
    }

    /// Bytes of the weights.
    fn weight_bytes(&self, form: WeightForm) -> u64 {
        let (packing, parameters) = (self.scheme.packing(), self.scheme.parameters());
        match form {
            WeightForm::Evaluation => (packing.factors() * CoefficientFactor::bytes(parameters)) as u64,
            WeightForm::Coefficient => (packing.shape().weights() * size_of::<i32>()) as u64,
        }
    }
}

impl Built for BuiltLinear {
    fn needs(&self) -> Result<Needs> {
        Ok(Needs { keys: Some((self.spec.set, self.scheme.key_uses()?)), ..Needs::default() })
    }

    fn cost(&self, _: &mut CotSupply) -> Result<StepCost> {
        Ok(StepCost { offline: self.scheme.offline_cost(), online: self.scheme.online_cost() })
    }

    fn answers(&self) -> Result<Answers> {
        Ok(self.scheme.answers())
    }

    fn memory(&self) -> Result<Memory> {
        let (packing, parameters) = (self.scheme.packing(), self.scheme.parameters());
        let [inputs, outputs] = packing.ciphertexts().map(|count| count as u64);
        let half = limb(parameters) * parameters.limbs() as u64;
        // Both halves of an answer's products, and as much again while they are packed.
        let products = if packing.packed() > 1 { 4 * packing.packed() as u64 } else { 0 };
        // At most all coefficients of an output are masked, each by two words.
        let masks = 2 * limb(parameters);
        // The model's own integers stay beside those that are ready to multiply.
        let integers = packing.shape().weights() as u64 * WORD;
        Ok(Memory {
            model: self.weight_bytes(self.form) + integers,
            client_material: inputs * half + outputs * masks,
            server_material: outputs * (half + masks),
            // Every input, and the sum in work.
            working: (2 * (inputs + 1) + products) * half,
            layouts: packing.layout_bytes(),
            ..Memory::default()
        })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let packing = self.scheme.packing();
        let [inputs, outputs] = packing.ciphertexts();
        let mut counts = vec![
            ("degree", self.scheme.parameters().degree() as u64),
            ("multiplications", packing.products() as u64),
            ("input_ciphertexts", inputs as u64),
            ("output_ciphertexts", outputs as u64),
        ];
        if packing.packed() > 1 {
            counts.push(("rotations", packing.switches() as u64));
        }
        counts
    }

    fn weights(&mut self) -> Option<(u64, &mut WeightForm)> {
        Some((self.weight_bytes(WeightForm::Evaluation), &mut self.form))
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(self.client_layer()?))
    }

    fn server(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Server> {
        let weights = model.weights(node, self.scheme.packing().shape().outputs()?)?;
        Ok(Box::new(Answering(self.server_layer(&weights, model.shared())?)))
    }
}
