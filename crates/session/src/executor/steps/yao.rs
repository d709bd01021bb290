//! Garbled circuits.

use lanner_graph::PublicNetwork;
use lanner_protocol::ProtocolError;
use lanner_protocol::nonlinear::yao;
use lanner_share::Share;
use lanner_wire::Channel;

use super::{
    AnyClientStep, AnyServerStep, Client, ClientStep, Inputs, ModelParts, Server, ServerStep, Sides, Value,
    known, set_up,
};
use crate::executor::Outcome;

impl Sides for yao::Layer {
    fn client(self: Box<Self>, _: &PublicNetwork) -> Result<Box<dyn AnyClientStep>, ProtocolError> {
        Ok(Box::new(yao::ClientLayer::new(*self)))
    }

    fn server(self: Box<Self>, _: &mut ModelParts) -> Result<Box<dyn AnyServerStep>, ProtocolError> {
        Ok(Box::new(yao::ServerLayer::new(*self)))
    }
}

impl Sides for yao::Ranking {
    fn client(self: Box<Self>, _: &PublicNetwork) -> Result<Box<dyn AnyClientStep>, ProtocolError> {
        Ok(Box::new(yao::ClientRanking::new(*self)))
    }

    fn server(self: Box<Self>, _: &mut ModelParts) -> Result<Box<dyn AnyServerStep>, ProtocolError> {
        Ok(Box::new(yao::ServerRanking::new(*self)))
    }
}

impl ClientStep for yao::ClientLayer {
    type Request = yao::ClientRequest;
    type Material = yao::ClientMaterial;

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
        client: &mut Client,
        request: Self::Request,
    ) -> Result<Self::Material, ProtocolError> {
        self.receive(channel, set_up(client.evaluation.as_ref())?, request)
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        client: &Client,
        material: Self::Material,
        inputs: &Inputs,
    ) -> Result<Value, ProtocolError> {
        self.online(channel, set_up(client.evaluation.as_ref())?, material, inputs.one()?).map(Value::Shared)
    }
}

impl ServerStep for yao::ServerLayer {
    type Material = yao::ServerMaterial;

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
        self.online(channel, set_up(server.garbling.as_ref())?, material).map(Some)
    }
}

impl ClientStep for yao::ClientRanking {
    type Request = yao::ClientRequest;
    type Material = yao::ClientRankingMaterial;

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
        let best = self.online(channel, set_up(client.evaluation.as_ref())?, material, inputs.one()?)?;
        let outcome = match self.best() {
            Some(_) => Outcome::TopK(best),
            None => Outcome::Label(best[0]),
        };
        Ok(Value::Known(outcome))
    }
}

impl ServerStep for yao::ServerRanking {
    type Material = yao::ServerRankingMaterial;

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
