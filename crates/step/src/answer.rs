//! Steps in which the server asks for nothing.

use lanner_wire::{Channel, DecodeError, Reader, Writer};

use crate::{Inputs, Result, Server, Step, Value};

/// What the server does in a step that the client begins: [`Answering`] is the step.
pub trait Answer: Send + Sync {
    /// As [`Step::Material`].
    type Material: Send + 'static;

    /// As [`Step::prepare`].
    ///
    /// # Errors
    /// As there.
    fn prepare(&self, asked: Asked<'_>) -> Result<(Self::Material, Option<Value>)>;

    /// As [`Step::encode`].
    fn encode(&self, material: &Self::Material, writer: &mut Writer);

    /// As [`Step::decode`].
    ///
    /// # Errors
    /// As there.
    fn decode(&self, reader: &mut Reader<'_>) -> Result<Self::Material, DecodeError>;

    /// As [`Step::online`].
    ///
    /// # Errors
    /// As there.
    fn online(&self, channel: &mut dyn Channel, material: Self::Material, inputs: &Inputs) -> Result<Value>;
}

/// What the server has in the offline phase.
pub struct Asked<'a> {
    /// To the client.
    pub channel: &'a mut dyn Channel,
    /// Its state of the session.
    pub server: &'a mut Server,
    /// Its shares of what the step reads, where they are known.
    pub known: &'a Inputs,
}

/// The server's side of a step that asks for nothing.
pub struct Answering<S>(pub S);

impl<S: Answer> Step<Server> for Answering<S> {
    type Request = ();
    type Material = S::Material;

    fn request(&self, _: &mut dyn Channel, _: &mut Server) -> Result<()> {
        Ok(())
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        server: &mut Server,
        (): (),
        known: &Inputs,
    ) -> Result<(S::Material, Option<Value>)> {
        self.0.prepare(Asked { channel, server, known })
    }

    fn encode(&self, material: &S::Material, writer: &mut Writer) {
        self.0.encode(material, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<S::Material, DecodeError> {
        self.0.decode(reader)
    }

    fn online(&self, channel: &mut dyn Channel, material: S::Material, inputs: &Inputs) -> Result<Value> {
        self.0.online(channel, material, inputs)
    }
}
