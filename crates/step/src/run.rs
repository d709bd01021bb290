//! A step as one party runs it.

use lanner_wire::{Channel, DecodeError, Reader, Writer};

use super::{Inputs, PartyState, ProtocolError, Value};

/// A step as one party runs it.
///
/// In a run of steps the client makes the requests of all before it prepares the first, so that the offline phase is one round for all steps;
/// the server receives in `request` and `prepare` and sends in `prepare` alone, so that it may go from step to step.
pub trait Step<P: PartyState>: Send + Sync {
    /// What was asked for, until it is answered.
    type Request: Send + 'static;
    /// One-time material. It owns its correlations, is used up by value, and cannot be copied.
    type Material: Send + 'static;

    /// Offline, first half: what the step begins with.
    ///
    /// # Errors
    /// Those of the channel; [`ProtocolError::NotSetUp`] if the session has not set up what the step needs.
    fn request(&self, channel: &mut dyn Channel, party: &mut P) -> Result<Self::Request, ProtocolError>;

    /// Offline, second half: makes the material. `known` are this party's shares of what the step reads, where they are known before the
    /// network's input is; the second result is its share of what the step makes, if that is known.
    ///
    /// # Errors
    /// As [`Self::request`]; [`ProtocolError::Channel`] if the peer's messages are not the ones due.
    fn prepare(
        &self,
        channel: &mut dyn Channel,
        party: &mut P,
        request: Self::Request,
        known: &Inputs,
    ) -> Result<(Self::Material, Option<Value>), ProtocolError>;

    /// Appends material, so that it can be kept. The bytes are as secret as keys: with the messages, which the peer knows, some give away
    /// the client's secret key, others the server's weights. They serve once, as the material does.
    fn encode(&self, material: &Self::Material, writer: &mut Writer);

    /// Reads what [`Self::encode`] wrote. Every length follows from the step.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are none that it writes.
    fn decode(&self, reader: &mut Reader<'_>) -> Result<Self::Material, DecodeError>;

    /// Online, in any number of rounds: what the step makes. No randomness is drawn here.
    ///
    /// # Errors
    /// As [`Self::prepare`].
    fn online(
        &self,
        channel: &mut dyn Channel,
        material: Self::Material,
        inputs: &Inputs,
    ) -> Result<Value, ProtocolError>;
}
