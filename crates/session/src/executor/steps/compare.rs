//! Nonlinear layers by oblivious transfer: the same on both sides.

use lanner_graph::PublicNetwork;
use lanner_protocol::nonlinear::ot_nonlinear::{Layer, Material, Request};
use lanner_protocol::{Party, ProtocolError};
use lanner_share::Share;
use lanner_wire::Channel;

use super::{
    AnyClientStep, AnyServerStep, Client, ClientStep, Inputs, ModelParts, Server, ServerStep, Sides, Value,
    set_up,
};

impl Sides for Layer {
    fn client(self: Box<Self>, _: &PublicNetwork) -> Result<Box<dyn AnyClientStep>, ProtocolError> {
        Ok(self)
    }

    fn server(self: Box<Self>, _: &mut ModelParts) -> Result<Box<dyn AnyServerStep>, ProtocolError> {
        Ok(self)
    }
}

impl ClientStep for Layer {
    type Request = Request;
    type Material = Material;

    fn request(&self, channel: &mut dyn Channel, client: &mut Client) -> Result<Request, ProtocolError> {
        self.request(channel, set_up(client.transfers.as_mut())?)
    }

    fn receive(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
        request: Request,
    ) -> Result<Material, ProtocolError> {
        self.prepare(channel, set_up(client.transfers.as_mut())?, request, &mut client.rng)
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        _: &Client,
        material: Material,
        inputs: &Inputs,
    ) -> Result<Value, ProtocolError> {
        self.online(channel, Party::Client, material, inputs.one()?).map(Value::Shared)
    }
}

impl ServerStep for Layer {
    type Material = Material;

    fn offline(
        &self,
        channel: &mut dyn Channel,
        server: &mut Server,
        _: Option<&Inputs>,
    ) -> Result<(Material, Option<Share>), ProtocolError> {
        let transfers = set_up(server.transfers.as_mut())?;
        let request = self.request(channel, transfers)?;
        Ok((self.prepare(channel, transfers, request, &mut server.rng)?, None))
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        _: &Server,
        material: Material,
        inputs: &Inputs,
    ) -> Result<Option<Share>, ProtocolError> {
        self.online(channel, Party::Server, material, inputs.one()?).map(Some)
    }
}
