//! Linear layers and squares on slots.

use lanner_graph::PublicNetwork;
use lanner_plan::protocol::packed::{BuiltLinear, BuiltSquare, SET};
use lanner_protocol::ProtocolError;
use lanner_protocol::linear::gazelle::{self, ClientMaterial, ClientRequest};
use lanner_protocol::nonlinear::square;
use lanner_protocol::nonlinear::square::Target;
use lanner_share::Share;
use lanner_wire::Channel;

use super::{
    AnyClientStep, AnyServerStep, Client, ClientStep, Inputs, ModelParts, Server, ServerStep, Sides, Value,
    known,
};

impl Sides for BuiltLinear {
    fn client(self: Box<Self>, _: &PublicNetwork) -> Result<Box<dyn AnyClientStep>, ProtocolError> {
        Ok(Box::new(gazelle::ClientLayer::new(&self.packing, &self.parameters, self.prime)?))
    }

    fn server(self: Box<Self>, model: &mut ModelParts) -> Result<Box<dyn AnyServerStep>, ProtocolError> {
        let Self { parameters, packing, prime, form } = *self;
        let weights = model.weights()?;
        let bias = weights.bias_of(packing.shape().outputs()?);
        let layer =
            gazelle::ServerLayer::in_form(form, packing, &parameters, prime, weights.weight(), &bias)?;
        Ok(Box::new(layer))
    }
}

impl Sides for BuiltSquare {
    fn client(self: Box<Self>, _: &PublicNetwork) -> Result<Box<dyn AnyClientStep>, ProtocolError> {
        Ok(Box::new(square::client(&self.target, &self.parameters, self.prime)?))
    }

    fn server(self: Box<Self>, model: &mut ModelParts) -> Result<Box<dyn AnyServerStep>, ProtocolError> {
        let Self { parameters, target, prime, form } = *self;
        let square = match target {
            Target::Shares(values) => square::ServerSquare::new(values, &parameters, prime)?,
            Target::Layer(packing) => {
                let weights = model.weights()?;
                let bias = weights.bias_of(packing.shape().outputs()?);
                square::ServerSquare::before(form, *packing, &parameters, prime, weights.weight(), &bias)?
            }
        };
        Ok(Box::new(square))
    }
}

impl ClientStep for gazelle::ClientLayer {
    type Request = ClientRequest;
    type Material = ClientMaterial;

    fn request(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
    ) -> Result<ClientRequest, ProtocolError> {
        self.request(channel, client.keys.get(SET)?, &mut client.rng)
    }

    fn receive(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
        request: ClientRequest,
    ) -> Result<ClientMaterial, ProtocolError> {
        self.receive(channel, client.keys.get(SET)?, request)
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        _: &Client,
        material: ClientMaterial,
        inputs: &Inputs,
    ) -> Result<Value, ProtocolError> {
        self.online(channel, material, inputs.one()?).map(Value::Shared)
    }
}

impl ServerStep for gazelle::ServerLayer {
    type Material = gazelle::ServerMaterial;

    fn offline(
        &self,
        channel: &mut dyn Channel,
        server: &mut Server,
        _: Option<&Inputs>,
    ) -> Result<(Self::Material, Option<Share>), ProtocolError> {
        let material = self.offline(channel, server.keys.get(SET)?, &mut server.rng)?;
        let share = material.share().clone();
        Ok((material, Some(share)))
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        server: &Server,
        material: Self::Material,
        inputs: &Inputs,
    ) -> Result<Option<Share>, ProtocolError> {
        self.online(channel, server.keys.get(SET)?, material, inputs.one()?).map(Some)
    }
}

impl ServerStep for square::ServerSquare {
    type Material = square::ServerMaterial;

    fn offline(
        &self,
        channel: &mut dyn Channel,
        server: &mut Server,
        inputs: Option<&Inputs>,
    ) -> Result<(Self::Material, Option<Share>), ProtocolError> {
        let material = self.offline(channel, server.keys.get(SET)?, known(inputs)?, &mut server.rng)?;
        let share = material.share().clone();
        Ok((material, Some(share)))
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        server: &Server,
        material: Self::Material,
        _: &Inputs,
    ) -> Result<Option<Share>, ProtocolError> {
        self.online(channel, server.keys.get(SET)?, material).map(Some)
    }
}
