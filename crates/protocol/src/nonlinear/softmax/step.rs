//! The label and its probability as a step of a plan.

use lanner_primitives::Ring;
use lanner_wire::{Channel, DecodeError, Reader, Writer};
use serde::{Deserialize, Serialize};

use super::{ClientMaterial, ClientRequest, ClientSoftmax, ServerMaterial, ServerSoftmax, Softmax};
use crate::ProtocolError;
use crate::linear::Sets;
use crate::nonlinear::ot_nonlinear::CotSupply;
use crate::nonlinear::yao;
use crate::step::{
    BoxedStep, Built, Client, Inputs, Memory, ModelParts, Needs, Outcome, Server, Spec, Step, StepCost,
    Value, ValueType,
};

/// The label and its probability to some decimal digits, which the client learns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelAndProbability {
    /// Number of scores.
    pub classes: usize,
    /// Decimal digits.
    pub digits: u32,
    /// What one unit of a score stands for: finite and above zero.
    pub scale: f64,
    /// The ring of the scores.
    pub from: Ring,
}

// A checked network's output scale is a number.
impl Eq for LabelAndProbability {}

impl Spec for LabelAndProbability {
    fn name(&self) -> &'static str {
        "falcon.softmax"
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType, ProtocolError> {
        ValueType::only_known(inputs, self.from, self.classes)?;
        Ok(ValueType::Revealed)
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>, ProtocolError> {
        Ok(Box::new(Softmax::new(self.classes, self.digits, self.scale, self.from)?))
    }
}

impl Built for Softmax {
    fn needs(&self) -> Result<Needs, ProtocolError> {
        Ok(yao::needs())
    }

    fn cost(&self, _: &mut CotSupply) -> Result<StepCost, ProtocolError> {
        Ok(StepCost { offline: self.offline_cost(), online: self.online_cost() })
    }

    fn memory(&self) -> Result<Memory, ProtocolError> {
        Ok(yao::revealing_memory(self.circuit()))
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("instances", 1), ("and_gates", self.circuit().and_count() as u64)]
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(ClientSoftmax::new(*self)))
    }

    fn server(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Server> {
        Ok(Box::new(ServerSoftmax::new(*self)))
    }
}

impl Step<Client> for ClientSoftmax {
    type Request = ClientRequest;
    type Material = ClientMaterial;

    fn request(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
    ) -> Result<ClientRequest, ProtocolError> {
        self.request(channel, client.evaluation_mut()?)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        _: &mut Client,
        request: ClientRequest,
        _: &Inputs,
    ) -> Result<(ClientMaterial, Option<Value>), ProtocolError> {
        Ok((self.receive(channel, request)?, None))
    }

    fn encode(&self, material: &ClientMaterial, writer: &mut Writer) {
        material.0.encode(writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ClientMaterial, DecodeError> {
        self.decode(reader)
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        material: ClientMaterial,
        inputs: &Inputs,
    ) -> Result<Value, ProtocolError> {
        let likely = self.online(channel, material, inputs.share()?)?;
        Ok(Value::Revealed(Outcome::Probability(likely)))
    }
}

impl Step<Server> for ServerSoftmax {
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
        let (garbling, rng) = server.garbling_mut()?;
        Ok((self.offline(channel, garbling, known.share()?, rng)?, None))
    }

    fn encode(&self, material: &ServerMaterial, writer: &mut Writer) {
        material.0.encode(writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ServerMaterial, DecodeError> {
        self.decode(reader)
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        material: ServerMaterial,
        _: &Inputs,
    ) -> Result<Value, ProtocolError> {
        self.online(channel, material)?;
        Ok(Value::AtPeer)
    }
}
