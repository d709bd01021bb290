//! Linear layers in the frequency domain.

use lanner_graph::PublicNetwork;
use lanner_plan::protocol::falcon::BuiltLinear;
use lanner_protocol::ProtocolError;
use lanner_protocol::linear::falcon::{
    ClientLayer, ClientMaterial, ClientRequest, ServerLayer, ServerMaterial,
};
use lanner_share::Share;
use lanner_wire::Channel;

use super::{
    AnyClientStep, AnyServerStep, Client, ClientStep, Inputs, ModelParts, OfSet, Server, ServerStep, Sides,
    Value,
};

impl Sides for BuiltLinear {
    fn client(self: Box<Self>, _: &PublicNetwork) -> Result<Box<dyn AnyClientStep>, ProtocolError> {
        let layer = ClientLayer::new(&self.packing, &self.parameters)?;
        Ok(Box::new(OfSet { set: self.set, layer }))
    }

    fn server(self: Box<Self>, model: &mut ModelParts) -> Result<Box<dyn AnyServerStep>, ProtocolError> {
        let Self { set, parameters, packing, form } = *self;
        let weights = model.weights()?;
        let bias = weights.bias_of(packing.shape().outputs()?);
        let layer = ServerLayer::in_form(form, &packing, &parameters, weights.weight(), &bias)?;
        Ok(Box::new(OfSet { set, layer }))
    }
}

impl ClientStep for OfSet<ClientLayer> {
    type Request = ClientRequest;
    type Material = ClientMaterial;

    fn request(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
    ) -> Result<ClientRequest, ProtocolError> {
        self.layer.request(channel, client.keys.get(self.set)?, &mut client.rng)
    }

    fn receive(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
        request: ClientRequest,
    ) -> Result<ClientMaterial, ProtocolError> {
        self.layer.receive(channel, client.keys.get(self.set)?, request)
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        _: &Client,
        material: ClientMaterial,
        inputs: &Inputs,
    ) -> Result<Value, ProtocolError> {
        self.layer.online(channel, material, inputs.one()?).map(Value::Shared)
    }
}

impl ServerStep for OfSet<ServerLayer> {
    type Material = ServerMaterial;

    fn offline(
        &self,
        channel: &mut dyn Channel,
        server: &mut Server,
        inputs: Option<&Inputs>,
    ) -> Result<(ServerMaterial, Option<Share>), ProtocolError> {
        let (input, key) = (inputs.map(Inputs::one).transpose()?, &server.keys.get(self.set)?.public);
        let material = self.layer.offline(channel, key, input, &mut server.rng)?;
        let share = material.share().clone();
        Ok((material, Some(share)))
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        _: &Server,
        material: ServerMaterial,
        inputs: &Inputs,
    ) -> Result<Option<Share>, ProtocolError> {
        self.layer.online(channel, material, inputs.one()?).map(Some)
    }
}
