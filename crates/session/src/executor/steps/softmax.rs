//! The label and its probability.

use lanner_graph::PublicNetwork;
use lanner_protocol::ProtocolError;
use lanner_protocol::nonlinear::softmax;
use lanner_share::Share;
use lanner_wire::Channel;

use super::{
    AnyClientStep, AnyServerStep, Client, ClientStep, Inputs, ModelParts, Server, ServerStep, Sides, Value,
    known, set_up,
};
use crate::executor::Outcome;

impl Sides for softmax::Softmax {
    fn client(self: Box<Self>, _: &PublicNetwork) -> Result<Box<dyn AnyClientStep>, ProtocolError> {
        Ok(Box::new(softmax::ClientSoftmax::new(*self)))
    }

    fn server(self: Box<Self>, _: &mut ModelParts) -> Result<Box<dyn AnyServerStep>, ProtocolError> {
        Ok(Box::new(softmax::ServerSoftmax::new(*self)))
    }
}

impl ClientStep for softmax::ClientSoftmax {
    type Request = softmax::ClientRequest;
    type Material = softmax::ClientMaterial;

    fn request(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
    ) -> Result<Self::Request, ProtocolError> {
        self.request(channel, set_up(client.evaluation.as_mut())?)
    }

    fn receive(
        &self,
        channel: &mut dyn Channel,
        _: &mut Client,
        request: Self::Request,
    ) -> Result<Self::Material, ProtocolError> {
        self.receive(channel, request)
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        client: &Client,
        material: Self::Material,
        inputs: &Inputs,
    ) -> Result<Value, ProtocolError> {
        let likely = self.online(channel, set_up(client.evaluation.as_ref())?, material, inputs.one()?)?;
        Ok(Value::Known(Outcome::Probability(likely)))
    }
}

impl ServerStep for softmax::ServerSoftmax {
    type Material = softmax::ServerMaterial;

    fn offline(
        &self,
        channel: &mut dyn Channel,
        server: &mut Server,
        inputs: Option<&Inputs>,
    ) -> Result<(Self::Material, Option<Share>), ProtocolError> {
        Ok((self.offline(channel, set_up(server.garbling.as_mut())?, known(inputs)?, &mut server.rng)?, None))
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        server: &Server,
        material: Self::Material,
        _: &Inputs,
    ) -> Result<Option<Share>, ProtocolError> {
        self.online(channel, set_up(server.garbling.as_ref())?, material)?;
        Ok(None)
    }
}
