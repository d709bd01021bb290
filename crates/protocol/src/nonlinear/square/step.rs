//! Squares by encryption as steps of a plan.

use lanner_bfv::Parameters;
use lanner_share::Ring;
use lanner_wire::{Channel, DecodeError, Reader, Writer};
use serde::{Deserialize, Serialize};

use super::{ClientSquare, ServerMaterial, ServerSquare, Target};
use crate::ProtocolError;
use crate::linear::exchange::{halves, limb};
use crate::linear::gazelle::packing::Packing;
use crate::linear::gazelle::{self, Kernel, SET};
use crate::linear::{Convolution, Form, OfSet, Sets, layer_name};
use crate::nonlinear::ot_nonlinear::CotSupply;
use crate::step::{
    BoxedStep, Built, Client, Inputs, Known, Memory, ModelParts, Needs, Server, Spec, Step, StepCost, Value,
    ValueType, Work,
};

/// The square of each element, over `Z_prime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Square {
    /// Number of elements.
    pub values: usize,
    /// The plaintext modulus.
    pub prime: u64,
}

/// The square of each element and the linear layer that takes the squares, over `Z_prime`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SquareLinear {
    /// The layer's shape.
    pub shape: Convolution,
    /// The plaintext modulus.
    pub prime: u64,
    /// The layer's kernel.
    pub kernel: Kernel,
}

impl Spec for Square {
    fn name(&self) -> &'static str {
        "gazelle.square"
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType, ProtocolError> {
        let ring = Ring::Prime(self.prime);
        ValueType::only_known(inputs, ring, self.values)?;
        Ok(ValueType::shared(ring, self.values, Known::SERVER))
    }

    fn build(&self, sets: &Sets) -> Result<Box<dyn Built>, ProtocolError> {
        Ok(BuiltSquare::of(Target::Shares(self.values), self.prime, sets))
    }
}

impl Spec for SquareLinear {
    fn name(&self) -> &'static str {
        layer_name(&self.shape, ["gazelle.square_fc", "gazelle.square_conv"])
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType, ProtocolError> {
        let ring = Ring::Prime(self.prime);
        ValueType::only_known(inputs, ring, self.shape.inputs())?;
        Ok(ValueType::shared(ring, self.shape.outputs()?, Known::SERVER))
    }

    fn work(&self) -> Work {
        gazelle::work(&self.shape)
    }

    fn build(&self, sets: &Sets) -> Result<Box<dyn Built>, ProtocolError> {
        let packing = Packing::of(&self.shape, sets.get(SET).degree(), self.kernel)?;
        Ok(BuiltSquare::of(Target::Layer(Box::new(packing)), self.prime, sets))
    }
}

/// Squares with what becomes of them.
struct BuiltSquare {
    parameters: Parameters,
    target: Target,
    prime: u64,
    form: Form,
}

impl BuiltSquare {
    fn of(target: Target, prime: u64, sets: &Sets) -> Box<dyn Built> {
        Box::new(Self { parameters: sets.get(SET).clone(), target, prime, form: Form::Compact })
    }
}

impl Built for BuiltSquare {
    fn needs(&self) -> Result<Needs, ProtocolError> {
        Ok(match &self.target {
            Target::Shares(_) => Needs { keys: Some((SET, [].into())), ..Needs::default() },
            Target::Layer(packing) => gazelle::needs(packing),
        })
    }

    fn cost(&self, _: &mut CotSupply) -> Result<StepCost, ProtocolError> {
        Ok(StepCost {
            offline: self.target.offline_cost(&self.parameters, self.prime)?,
            online: self.target.online_cost(&self.parameters, self.prime)?,
        })
    }

    fn memory(&self) -> Result<Memory, ProtocolError> {
        let [inputs, outputs] = self.target.ciphertexts(&self.parameters);
        let mut material = halves([inputs, outputs], &self.parameters);
        // The server also keeps its own share, ready to multiply and to add: once for the two inputs that carry it.
        material.server_material += (inputs / 2) as u64 * OWN_SHARE_LIMBS * limb(&self.parameters);
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

    fn weights(&mut self) -> Option<(u64, &mut Form)> {
        let Target::Layer(packing) = &self.target else { return None };
        let bytes = gazelle::ServerLayer::bytes(packing, &self.parameters, self.prime, Form::Prepared);
        Some((bytes, &mut self.form))
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        let layer = ClientSquare::new(&self.target, &self.parameters, self.prime)?;
        Ok(Box::new(OfSet { set: SET, layer }))
    }

    fn server(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Server> {
        let Self { parameters, target, prime, form } = *self;
        let layer = match target {
            Target::Shares(values) => ServerSquare::new(values, &parameters, prime)?,
            Target::Layer(packing) => {
                let weights = model.weights(node, packing.shape().outputs()?)?;
                ServerSquare::before(form, *packing, &parameters, prime, weights.weight, &weights.bias)?
            }
        };
        Ok(Box::new(OfSet { set: SET, layer }))
    }
}

impl Step<Server> for OfSet<ServerSquare> {
    type Request = ();
    type Material = ServerMaterial;

    fn request(&self, _: &mut dyn Channel, _: &mut Server) -> Result<(), ProtocolError> {
        Ok(())
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        server: &mut Server,
        (): (),
        known: &Inputs,
    ) -> Result<(ServerMaterial, Option<Value>), ProtocolError> {
        let keys = server.keys.get(self.set)?;
        let material = self.layer.offline(channel, keys, known.share()?, &mut server.rng)?;
        let share = material.share().clone();
        Ok((material, Some(Value::Shared(share))))
    }

    fn encode(&self, material: &ServerMaterial, writer: &mut Writer) {
        material.encode(writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ServerMaterial, DecodeError> {
        self.layer.decode(reader)
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        _: &Server,
        material: ServerMaterial,
        _: &Inputs,
    ) -> Result<Value, ProtocolError> {
        self.layer.online(channel, material).map(Value::Shared)
    }
}

/// Limbs of a prepared multiplier with its coefficients, and of a plaintext.
const OWN_SHARE_LIMBS: u64 = 3 + 1 + 1;
