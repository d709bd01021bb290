//! What the server computes by itself, on ciphertexts and with the client's keys.

use std::sync::Arc;

use lanner_bfv::{Ciphertext, ParameterSet};
use lanner_step::{Client, ClientKeys, Inputs, Result, Server, Step, Value};
use lanner_wire::{Channel, DecodeError, Reader, Writer};

/// A layer on ciphertexts.
pub(super) trait Evaluate: Send + Sync {
    /// The ciphertexts of what the layer makes, prime by prime.
    fn evaluate(&self, keys: &ClientKeys, inputs: &[Vec<Ciphertext>]) -> Result<Vec<Vec<Ciphertext>>>;
}

/// The server's side of such a layer.
pub(super) struct AtServer<L> {
    pub(super) set: ParameterSet,
    pub(super) layer: L,
}

/// The client's, which has nothing to do.
pub(super) struct Elsewhere;

impl<L: Evaluate> Step<Server> for AtServer<L> {
    type Request = ();
    /// The session's keys.
    type Material = Arc<ClientKeys>;

    fn request(&self, _: &mut dyn Channel, _: &mut Server) -> Result<()> {
        Ok(())
    }

    fn prepare(
        &self,
        _: &mut dyn Channel,
        server: &mut Server,
        (): (),
        _: &Inputs,
    ) -> Result<(Arc<ClientKeys>, Option<Value>)> {
        Ok((server.keys.shared(self.set)?, None))
    }

    fn encode(&self, _: &Arc<ClientKeys>, _: &mut Writer) {}

    fn decode(&self, _: &mut Reader<'_>) -> Result<Arc<ClientKeys>, DecodeError> {
        Err(OF_A_SESSION)
    }

    fn online(&self, _: &mut dyn Channel, keys: Arc<ClientKeys>, inputs: &Inputs) -> Result<Value> {
        Ok(Value::Encrypted(self.layer.evaluate(&keys, inputs.encrypted()?)?))
    }
}

impl Step<Client> for Elsewhere {
    type Request = ();
    type Material = ();

    fn request(&self, _: &mut dyn Channel, _: &mut Client) -> Result<()> {
        Ok(())
    }

    fn prepare(
        &self,
        _: &mut dyn Channel,
        _: &mut Client,
        (): (),
        _: &Inputs,
    ) -> Result<((), Option<Value>)> {
        Ok(((), None))
    }

    fn encode(&self, (): &(), _: &mut Writer) {}

    fn decode(&self, _: &mut Reader<'_>) -> Result<(), DecodeError> {
        Ok(())
    }

    fn online(&self, _: &mut dyn Channel, (): (), _: &Inputs) -> Result<Value> {
        Ok(Value::AtPeer)
    }
}

/// Why material that lives as long as its session cannot be read.
pub(super) const OF_A_SESSION: DecodeError = DecodeError::Invalid { what: "material of a session" };
