//! What a client asks of a session after the handshake: material ahead of time, predictions, the end.
//!
//! The client leads. Each request is one byte; both parties then run the phase it names. Material is a queue on both sides,
//! first made first used, and what was taken is gone whether or not the prediction succeeds.

use std::collections::VecDeque;
use std::sync::Arc;

use lanner_wire::{Channel, ChannelError, Kind};

use crate::executor::{
    ClientPlan, ClientSession, ExecutionError, Outcome, Prepared, ServedModel, ServerSession, StepCost,
};

/// Predictions that a client may have prepared and not used: a bound on the server's memory.
pub const MAX_PREPARED: usize = 64;

const REQUEST: Kind = Kind(0x20);
const PREPARE: u8 = 1;
const PREDICT: u8 = 2;
const END: u8 = 3;

/// Serves one client until it ends the session; returns the number of predictions.
///
/// `predicted` is called after each prediction.
///
/// # Errors
/// [`ExecutionError`] if the peer's messages are not the ones due, or the connection fails.
pub fn serve(
    channel: &mut dyn Channel,
    model: Arc<ServedModel>,
    mut predicted: impl FnMut(),
) -> Result<(), ExecutionError> {
    let mut session = ServerSession::setup(channel, model)?;
    let mut prepared = VecDeque::new();
    loop {
        let mut request = [0];
        channel.receive_into(REQUEST, &mut request)?;
        match request[0] {
            PREPARE if prepared.len() < MAX_PREPARED => prepared.push_back(session.prepare(channel)?),
            PREDICT => {
                let material = prepared.pop_front().ok_or(ChannelError::Malformed { what: "request" })?;
                session.predict(channel, material)?;
                predicted();
            }
            END => return Ok(()),
            _ => return Err(ChannelError::Malformed { what: "request" }.into()),
        }
    }
}

/// A client's session.
pub struct Dialogue {
    session: ClientSession,
    prepared: VecDeque<Prepared>,
    setup: StepCost,
}

impl Dialogue {
    /// Set-up, after the handshake.
    ///
    /// # Errors
    /// [`ExecutionError`] if the peer's messages are not the ones due, or the connection fails.
    pub fn start(channel: &mut dyn Channel, plan: Arc<ClientPlan>) -> Result<Self, ExecutionError> {
        let (session, setup) = ClientSession::setup(channel, plan)?;
        Ok(Self { session, prepared: VecDeque::new(), setup })
    }

    /// What the set-up took.
    #[must_use]
    pub fn setup(&self) -> &StepCost {
        &self.setup
    }

    /// Predictions that are prepared and not used.
    #[must_use]
    pub fn prepared(&self) -> usize {
        self.prepared.len()
    }

    /// Makes the material of one prediction.
    ///
    /// # Errors
    /// [`ExecutionError::Mismatch`] if [`MAX_PREPARED`] are waiting; as [`Self::start`].
    pub fn prepare(&mut self, channel: &mut dyn Channel) -> Result<(), ExecutionError> {
        if self.prepared.len() >= MAX_PREPARED {
            return Err(ExecutionError::Mismatch { what: "more prepared predictions than a session may hold" });
        }
        channel.send(REQUEST, &[PREPARE])?;
        self.prepared.push_back(self.session.prepare(channel)?);
        Ok(())
    }

    /// Predicts, with material made earlier or now.
    ///
    /// # Errors
    /// [`ExecutionError::Mismatch`] if the input has another length; as [`Self::start`].
    pub fn predict(
        &mut self,
        channel: &mut dyn Channel,
        input: &[i64],
    ) -> Result<(Outcome, Vec<StepCost>), ExecutionError> {
        if self.prepared.is_empty() {
            self.prepare(channel)?;
        }
        let material = self.prepared.pop_front().ok_or(ExecutionError::Mismatch { what: "no material" })?;
        channel.send(REQUEST, &[PREDICT])?;
        self.session.predict(channel, material, input)
    }

    /// Ends the session.
    ///
    /// # Errors
    /// [`ExecutionError::Channel`] if the connection fails.
    pub fn end(self, channel: &mut dyn Channel) -> Result<(), ExecutionError> {
        channel.send(REQUEST, &[END])?;
        Ok(channel.flush()?)
    }
}
