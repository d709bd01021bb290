//! Garbled circuits as steps of a plan.

use lanner_primitives::Ring;
use lanner_step::{
    Answer, Answering, Asked, BoxedStep, Built, Client, CotSupply, Function, Inputs, Known, LABEL, Memory,
    ModelParts, Needs, Result, Samples, Server, Sets, Spec, Step, StepCost, Value, ValueType, WORD, Windows,
    Work,
};
use lanner_wire::{Channel, DecodeError, Reader, Writer};
use serde::{Deserialize, Serialize};

use super::{
    ClientLayer, ClientMaterial, ClientRequest, ClientRevealed, ClientRevealedMaterial, Layer, Revealed,
    ServerLayer, ServerMaterial, ServerRevealed, ServerRevealedMaterial,
};

/// A circuit on each window, from ring to ring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activation {
    /// What it computes.
    pub function: Function,
    /// The windows.
    pub windows: Windows,
    /// The ring of the input.
    pub from: Ring,
    /// The ring of the output.
    pub to: Ring,
}

/// Whether any value of each window is zero, as shares of a bit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnyZero {
    /// The windows.
    pub windows: Windows,
    /// The ring of the input, modulo a power of two.
    pub from: Ring,
    /// The ring of the output.
    pub to: Ring,
}

impl Spec for Activation {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        ValueType::only_known(inputs, self.from, self.windows.inputs())?;
        Ok(ValueType::shared(self.to, self.windows.count()?, Known::NOBODY))
    }

    fn work(&self) -> Work {
        self.windows.work()
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { windows: self.windows.of_samples(samples), ..self.clone() })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(Layer::new(self.function, &self.windows, self.from, self.to)?))
    }
}

impl Spec for AnyZero {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        ValueType::only_known(inputs, self.from, self.windows.inputs())?;
        Ok(ValueType::shared(self.to, self.windows.count()?, Known::NOBODY))
    }

    fn work(&self) -> Work {
        self.windows.work()
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { windows: self.windows.of_samples(samples), ..self.clone() })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(Layer::any_zero(&self.windows, self.from, self.to)?))
    }
}

/// What circuits need.
fn needs() -> Needs {
    Needs { garbling: true, ..Needs::default() }
}

impl Built for Layer {
    fn needs(&self) -> Result<Needs> {
        Ok(needs())
    }

    fn cost(&self, _: &mut CotSupply) -> Result<StepCost> {
        Ok(StepCost { offline: self.offline_cost()?, online: self.online_cost() })
    }

    fn memory(&self) -> Result<Memory> {
        let labels = (self.circuit().evaluator_inputs() * self.instances()) as u64 * LABEL;
        let products = self.output_bits() as u64 * WORD;
        let tables = self.circuit().table_bytes(self.instances()) as u64;
        let client_material = tables + labels + products;
        Ok(Memory { client_material, server_material: products, ..Memory::default() })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let gates = self.circuit().and_count() * self.instances();
        vec![("instances", self.instances() as u64), ("and_gates", gates as u64)]
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(ClientLayer::new(*self)))
    }

    fn server(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Server> {
        Ok(Box::new(Answering(ServerLayer::new(*self))))
    }
}

impl Built for Revealed {
    fn needs(&self) -> Result<Needs> {
        Ok(needs())
    }

    fn cost(&self, _: &mut CotSupply) -> Result<StepCost> {
        Ok(StepCost { offline: self.offline_cost(), online: self.online_cost() })
    }

    fn memory(&self) -> Result<Memory> {
        let labels = (self.circuit().evaluator_inputs() * self.instances()) as u64 * LABEL;
        let client_material = self.circuit().table_bytes(self.instances()) as u64 + labels;
        Ok(Memory { client_material, ..Memory::default() })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let gates = self.circuit().and_count() * self.instances();
        vec![("instances", self.instances() as u64), ("and_gates", gates as u64)]
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(ClientRevealed::new(*self)))
    }

    fn server(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Server> {
        Ok(Box::new(Answering(ServerRevealed::new(*self))))
    }
}

impl Step<Client> for ClientLayer {
    type Request = ClientRequest;
    type Material = ClientMaterial;

    fn request(&self, channel: &mut dyn Channel, client: &mut Client) -> Result<ClientRequest> {
        self.request(channel, client.evaluation_mut()?)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
        request: ClientRequest,
        _: &Inputs,
    ) -> Result<(ClientMaterial, Option<Value>)> {
        Ok((self.receive(channel, client.evaluation()?, request)?, None))
    }

    fn encode(&self, material: &ClientMaterial, writer: &mut Writer) {
        self.encode(material, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ClientMaterial, DecodeError> {
        self.decode(reader)
    }

    fn online(&self, channel: &mut dyn Channel, material: ClientMaterial, inputs: &Inputs) -> Result<Value> {
        self.online(channel, material, inputs.share()?).map(Value::Shared)
    }
}

impl Answer for ServerLayer {
    type Material = ServerMaterial;

    fn prepare(
        &self,
        Asked { channel, server, known }: Asked<'_>,
    ) -> Result<(ServerMaterial, Option<Value>)> {
        let (garbling, rng) = server.garbling_mut()?;
        Ok((self.offline(channel, garbling, known.share()?, rng)?, None))
    }

    fn encode(&self, material: &ServerMaterial, writer: &mut Writer) {
        self.encode(material, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ServerMaterial, DecodeError> {
        self.decode(reader)
    }

    fn online(&self, channel: &mut dyn Channel, material: ServerMaterial, _: &Inputs) -> Result<Value> {
        self.online(channel, material).map(Value::Shared)
    }
}

impl Step<Client> for ClientRevealed {
    type Request = ClientRequest;
    type Material = ClientRevealedMaterial;

    fn request(&self, channel: &mut dyn Channel, client: &mut Client) -> Result<ClientRequest> {
        self.request(channel, client.evaluation_mut()?)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        _: &mut Client,
        request: ClientRequest,
        _: &Inputs,
    ) -> Result<(ClientRevealedMaterial, Option<Value>)> {
        Ok((self.receive(channel, request)?, None))
    }

    fn encode(&self, material: &ClientRevealedMaterial, writer: &mut Writer) {
        material.0.encode(writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ClientRevealedMaterial, DecodeError> {
        self.decode(reader)
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        material: ClientRevealedMaterial,
        inputs: &Inputs,
    ) -> Result<Value> {
        self.online(channel, material, inputs.share()?).map(Value::Revealed)
    }
}

impl Answer for ServerRevealed {
    type Material = ServerRevealedMaterial;

    fn prepare(
        &self,
        Asked { channel, server, known }: Asked<'_>,
    ) -> Result<(ServerRevealedMaterial, Option<Value>)> {
        let (garbling, rng) = server.garbling_mut()?;
        Ok((self.offline(channel, garbling, known.share()?, rng)?, None))
    }

    fn encode(&self, material: &ServerRevealedMaterial, writer: &mut Writer) {
        material.0.encode(writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ServerRevealedMaterial, DecodeError> {
        self.decode(reader)
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        material: ServerRevealedMaterial,
        _: &Inputs,
    ) -> Result<Value> {
        self.online(channel, material)?;
        Ok(Value::AtPeer)
    }
}
