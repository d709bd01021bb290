//! What each party does in a run of steps that need nothing but a session's keys.

use std::sync::Arc;

use lanner_bfv::{Ciphertext, ParameterSet};
use lanner_step::{Client, ClientKeys, Inputs, PartyState, Result, Server, Step, Unprepared, Value};
use lanner_wire::{Channel, DecodeError, Reader, Writer};

/// One party's part of a step whose material lives as long as its session.
pub(super) trait OfSession<P: PartyState>: Send + Sync {
    /// What is held of the session, and drawn for one run.
    type Held: Send + 'static;

    /// As [`Step::prepare`].
    fn hold(&self, party: &mut P) -> Result<Self::Held>;

    /// As [`Step::online`].
    fn online(&self, channel: &mut dyn Channel, held: Self::Held, inputs: &Inputs) -> Result<Value>;
}

/// Such a step.
pub(super) struct InSession<S>(pub(super) S);

impl<P: PartyState, S: OfSession<P>> Step<P> for InSession<S> {
    type Request = ();
    type Material = S::Held;

    fn request(&self, _: &mut dyn Channel, _: &mut P) -> Result<()> {
        Ok(())
    }

    fn prepare(
        &self,
        _: &mut dyn Channel,
        party: &mut P,
        (): (),
        _: &Inputs,
    ) -> Result<(S::Held, Option<Value>)> {
        Ok((self.0.hold(party)?, None))
    }

    fn encode(&self, _: &S::Held, _: &mut Writer) {}

    fn decode(&self, _: &mut Reader<'_>) -> Result<S::Held, DecodeError> {
        Err(DecodeError::Invalid { what: "material of a session" })
    }

    fn online(&self, channel: &mut dyn Channel, held: S::Held, inputs: &Inputs) -> Result<Value> {
        self.0.online(channel, held, inputs)
    }
}

/// A layer on ciphertexts.
pub(super) trait Evaluate: Send + Sync {
    /// The ciphertexts of what the layer makes, prime by prime.
    fn evaluate(&self, keys: &ClientKeys, inputs: &[Vec<Ciphertext>]) -> Result<Vec<Vec<Ciphertext>>>;
}

/// The server's side of such a layer, with the keys of a set.
pub(super) struct AtServer<L> {
    pub(super) set: ParameterSet,
    pub(super) layer: L,
}

/// The client's, which has nothing to do.
pub(super) struct Elsewhere;

impl<L: Evaluate> OfSession<Server> for AtServer<L> {
    type Held = Arc<ClientKeys>;

    fn hold(&self, server: &mut Server) -> Result<Arc<ClientKeys>> {
        server.keys.shared(self.set)
    }

    fn online(&self, _: &mut dyn Channel, keys: Arc<ClientKeys>, inputs: &Inputs) -> Result<Value> {
        Ok(Value::Encrypted(self.layer.evaluate(&keys, inputs.encrypted()?)?))
    }
}

impl Unprepared<Client> for Elsewhere {
    fn online(&self, _: &mut dyn Channel, _: &Inputs) -> Result<Value> {
        Ok(Value::AtPeer)
    }
}
