//! Steps whatever their types are: what walks over a plan holds them so.

use std::any::Any;

use lanner_wire::{Channel, DecodeError, Reader, Writer};

use super::{Inputs, PartyState, Step, Value};
use crate::{ProtocolError, Result};

/// What a step keeps from one phase to the next, known to the step alone.
pub type AnyState = Box<dyn Any + Send>;

/// A step whatever its types are, if its parameters fit.
pub type BoxedStep<P> = Result<Box<dyn DynStep<P>>>;

/// [`Step`] whatever its types are; see there.
#[allow(clippy::missing_errors_doc, reason = "as the trait's")]
pub trait DynStep<P>: Send + Sync {
    /// As [`Step::request`].
    fn request(&self, channel: &mut dyn Channel, party: &mut P) -> Result<AnyState>;

    /// As [`Step::prepare`].
    fn prepare(
        &self,
        channel: &mut dyn Channel,
        party: &mut P,
        request: AnyState,
        known: &Inputs,
    ) -> Result<(AnyState, Option<Value>)>;

    /// As [`Step::encode`]; fails for material of another step.
    fn encode(&self, material: &AnyState, writer: &mut Writer) -> Result<()>;

    /// As [`Step::decode`].
    fn decode(&self, reader: &mut Reader<'_>) -> Result<AnyState, DecodeError>;

    /// As [`Step::online`].
    fn online(&self, channel: &mut dyn Channel, material: AnyState, inputs: &Inputs) -> Result<Value>;
}

impl<P: PartyState, S: Step<P>> DynStep<P> for S {
    fn request(&self, channel: &mut dyn Channel, party: &mut P) -> Result<AnyState> {
        Ok(Box::new(Step::request(self, channel, party)?))
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        party: &mut P,
        request: AnyState,
        known: &Inputs,
    ) -> Result<(AnyState, Option<Value>)> {
        let (material, made) = Step::prepare(self, channel, party, own(request)?, known)?;
        Ok((Box::new(material), made))
    }

    fn encode(&self, material: &AnyState, writer: &mut Writer) -> Result<()> {
        let material = material.downcast_ref().ok_or(OF_ANOTHER_STEP)?;
        Step::encode(self, material, writer);
        Ok(())
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<AnyState, DecodeError> {
        Ok(Box::new(Step::decode(self, reader)?))
    }

    fn online(&self, channel: &mut dyn Channel, material: AnyState, inputs: &Inputs) -> Result<Value> {
        Step::online(self, channel, own(material)?, inputs)
    }
}

/// What the step kept.
fn own<T: 'static>(kept: AnyState) -> Result<T> {
    Ok(*kept.downcast().map_err(|_| OF_ANOTHER_STEP)?)
}

const OF_ANOTHER_STEP: ProtocolError = ProtocolError::WrongMaterial("material of another step");
