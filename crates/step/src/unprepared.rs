//! Steps for which nothing is prepared.

use lanner_wire::{Channel, DecodeError, Reader, Writer};

use crate::{Inputs, PartyState, Result, Step, Value};

/// What a party computes online, without anything that was made for it: [`Online`] is the step.
pub trait Unprepared<P: PartyState>: Send + Sync {
    /// As [`Step::online`].
    ///
    /// # Errors
    /// As there.
    fn online(&self, channel: &mut dyn Channel, inputs: &Inputs) -> Result<Value>;

    /// This party's share of what the step makes, where it follows from the shares that are known before the network's input is.
    ///
    /// # Errors
    /// As [`Step::prepare`].
    fn ahead(&self, _known: &Inputs) -> Result<Option<Value>> {
        Ok(None)
    }
}

/// A step that asks for nothing, and keeps nothing.
pub struct Online<S>(pub S);

impl<P: PartyState, S: Unprepared<P>> Step<P> for Online<S> {
    type Request = ();
    type Material = ();

    fn request(&self, _: &mut dyn Channel, _: &mut P) -> Result<()> {
        Ok(())
    }

    fn prepare(&self, _: &mut dyn Channel, _: &mut P, (): (), known: &Inputs) -> Result<((), Option<Value>)> {
        Ok(((), self.0.ahead(known)?))
    }

    fn encode(&self, (): &(), _: &mut Writer) {}

    fn decode(&self, _: &mut Reader<'_>) -> Result<(), DecodeError> {
        Ok(())
    }

    fn online(&self, channel: &mut dyn Channel, (): (), inputs: &Inputs) -> Result<Value> {
        self.0.online(channel, inputs)
    }
}
