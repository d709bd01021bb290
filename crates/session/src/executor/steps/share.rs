//! Protocols that move shares between the parties, without encryption.

use lanner_graph::PublicNetwork;
use lanner_plan::protocol::share::{Remask, Reveal};
use lanner_protocol::ProtocolError;
use lanner_protocol::convert::remask;
use lanner_share::Share;
use lanner_wire::Channel;

use super::{
    AnyClientStep, AnyServerStep, Client, ClientStep, Inputs, ModelParts, Server, ServerStep, Sides, Value,
};
use crate::executor::Outcome;

impl Sides for Remask {
    fn client(self: Box<Self>, _: &PublicNetwork) -> Result<Box<dyn AnyClientStep>, ProtocolError> {
        Ok(self)
    }

    fn server(self: Box<Self>, _: &mut ModelParts) -> Result<Box<dyn AnyServerStep>, ProtocolError> {
        Ok(self)
    }
}

impl Sides for Reveal {
    fn client(self: Box<Self>, _: &PublicNetwork) -> Result<Box<dyn AnyClientStep>, ProtocolError> {
        Ok(self)
    }

    fn server(self: Box<Self>, _: &mut ModelParts) -> Result<Box<dyn AnyServerStep>, ProtocolError> {
        Ok(self)
    }
}

impl ClientStep for Remask {
    type Request = ();
    type Material = ();

    fn request(&self, _: &mut dyn Channel, _: &mut Client) -> Result<(), ProtocolError> {
        Ok(())
    }

    fn receive(&self, _: &mut dyn Channel, _: &mut Client, (): ()) -> Result<(), ProtocolError> {
        Ok(())
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        _: &Client,
        (): (),
        inputs: &Inputs,
    ) -> Result<Value, ProtocolError> {
        remask::client(channel, inputs.one()?).map(Value::Shared)
    }
}

impl ServerStep for Remask {
    /// The share to come.
    type Material = Share;

    fn offline(
        &self,
        _: &mut dyn Channel,
        server: &mut Server,
        _: Option<&Inputs>,
    ) -> Result<(Share, Option<Share>), ProtocolError> {
        let fresh = Share::random(self.ring, self.values, &mut server.rng);
        Ok((fresh.clone(), Some(fresh)))
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        _: &Server,
        fresh: Share,
        inputs: &Inputs,
    ) -> Result<Option<Share>, ProtocolError> {
        remask::server(channel, inputs.one()?, fresh).map(Some)
    }
}

impl ClientStep for Reveal {
    type Request = ();
    type Material = ();

    fn request(&self, _: &mut dyn Channel, _: &mut Client) -> Result<(), ProtocolError> {
        Ok(())
    }

    fn receive(&self, _: &mut dyn Channel, _: &mut Client, (): ()) -> Result<(), ProtocolError> {
        Ok(())
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        _: &Client,
        (): (),
        inputs: &Inputs,
    ) -> Result<Value, ProtocolError> {
        Ok(Value::Known(Outcome::Logits(remask::learn(channel, inputs.one()?)?)))
    }
}

impl ServerStep for Reveal {
    type Material = ();

    fn offline(
        &self,
        _: &mut dyn Channel,
        _: &mut Server,
        _: Option<&Inputs>,
    ) -> Result<((), Option<Share>), ProtocolError> {
        Ok(((), None))
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        _: &Server,
        (): (),
        inputs: &Inputs,
    ) -> Result<Option<Share>, ProtocolError> {
        remask::reveal(channel, inputs.one()?)?;
        Ok(None)
    }
}
