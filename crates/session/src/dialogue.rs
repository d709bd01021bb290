//! What a client asks of a session after the handshake: material ahead of time, predictions, the end.
//!
//! The client leads. Each request is one byte; both parties then run the phase it names. Each party keeps the material of
//! prediction `i` of a session in a store under a name that is never used again, first made first used; what was taken is
//! gone whether or not the prediction succeeds.

use std::sync::Arc;

use lanner_primitives::{Direction, Label, Prg};
use lanner_wire::{Channel, ChannelError, Kind};

use crate::executor::{
    ClientPlan, ClientSession, ExecutionError, Outcome, Prepared, ServedModel, ServerSession, StepCost,
};
use crate::store::{Capacity, MaterialId, MemoryStore, OneTime, Store};

/// Predictions that a client may have prepared and not used.
pub const MAX_PREPARED: usize = 64;

/// Bytes that either party keeps of them.
pub const MAX_PREPARED_BYTES: u64 = 4 << 30;

const REQUEST: Kind = Kind(0x20);

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Material for one prediction.
    Prepare,
    /// A prediction with the oldest material.
    Predict,
    /// The end of the session.
    End,
}

impl Request {
    const fn code(self) -> u8 {
        match self {
            Self::Prepare => 1,
            Self::Predict => 2,
            Self::End => 3,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Prepare),
            2 => Some(Self::Predict),
            3 => Some(Self::End),
            _ => None,
        }
    }
}

/// The server's side of a session.
pub struct Service {
    session: ServerSession,
    prepared: Queue<Prepared>,
    computed: Vec<StepCost>,
    /// Whether a phase failed: what it has drawn and sent must not be met again.
    broken: bool,
}

impl Service {
    /// Set-up, after the handshake whose hash is `transcript`. All randomness of the session comes from `rng`.
    ///
    /// # Errors
    /// [`ExecutionError`] if the peer's messages are not the ones due, or the connection fails.
    pub fn start(
        channel: &mut dyn Channel,
        transcript: [u8; 32],
        model: Arc<ServedModel>,
        rng: Prg,
    ) -> Result<Self, ExecutionError> {
        let prepared = Queue::new(transcript, model.memory().server_material);
        let session = ServerSession::setup(channel, model, rng)?;
        Ok(Self { session, prepared, computed: Vec::new(), broken: false })
    }

    /// Waits for the client's next request.
    ///
    /// # Errors
    /// [`ExecutionError::Channel`] if it is none, or the connection fails.
    pub fn receive(channel: &mut dyn Channel) -> Result<Request, ExecutionError> {
        let mut code = [0];
        channel.receive_into(REQUEST, &mut code)?;
        Request::from_code(code[0]).ok_or_else(|| ChannelError::Malformed { what: "request" }.into())
    }

    /// Runs the phase that the client asked for. After a failure the session is of no use any more.
    ///
    /// # Errors
    /// [`ExecutionError`] if nothing is prepared for a prediction, too much is, or as [`Self::start`]; [`ExecutionError::Broken`] ever
    /// after.
    pub fn answer(&mut self, channel: &mut dyn Channel, request: Request) -> Result<(), ExecutionError> {
        if std::mem::replace(&mut self.broken, true) {
            return Err(ExecutionError::Broken);
        }
        self.run(channel, request)?;
        self.broken = false;
        Ok(())
    }

    fn run(&mut self, channel: &mut dyn Channel, request: Request) -> Result<(), ExecutionError> {
        let out_of_turn = || ChannelError::Malformed { what: "request: out of turn" };
        match request {
            Request::Prepare if !self.prepared.has_room() => Err(out_of_turn().into()),
            Request::Prepare => {
                let Self { session, prepared, computed, .. } = self;
                prepared.make(channel, |channel| {
                    let made = session.prepare(channel)?;
                    made.costs().clone_into(computed);
                    Ok(made)
                })
            }
            Request::Predict if self.prepared.len() == 0 => Err(out_of_turn().into()),
            Request::Predict => {
                self.computed = self.session.predict(channel, self.prepared.take()?)?;
                Ok(())
            }
            Request::End => Ok(()),
        }
    }

    /// What the server computed for the last material or prediction, step by step.
    #[must_use]
    pub fn computed(&self) -> &[StepCost] {
        &self.computed
    }
}

/// A client's session.
pub struct Dialogue {
    session: ClientSession,
    prepared: Queue<Prepared>,
    setup: StepCost,
    /// Whether an exchange failed half-way: the parties are then out of step, and old messages may lie in the channel.
    broken: bool,
}

impl Dialogue {
    /// Set-up, after the handshake whose hash is `transcript`. All randomness of the session comes from `rng`.
    ///
    /// # Errors
    /// [`ExecutionError`] if the peer's messages are not the ones due, or the connection fails.
    pub fn start(
        channel: &mut dyn Channel,
        transcript: [u8; 32],
        plan: Arc<ClientPlan>,
        rng: Prg,
    ) -> Result<Self, ExecutionError> {
        let prepared = Queue::new(transcript, plan.memory().client_material);
        let (session, setup) = ClientSession::setup(channel, plan, rng)?;
        Ok(Self { session, prepared, setup, broken: false })
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
    /// [`ExecutionError::Mismatch`] if a session would hold more than [`MAX_PREPARED`] or [`MAX_PREPARED_BYTES`]; as [`Self::start`].
    pub fn prepare(&mut self, channel: &mut dyn Channel) -> Result<(), ExecutionError> {
        if !self.prepared.has_room() {
            return Err(ExecutionError::Mismatch {
                what: "more prepared predictions than a session may hold",
            });
        }
        self.begin()?;
        channel.send(REQUEST, &[Request::Prepare.code()])?;
        self.prepared.make(channel, |channel| self.session.prepare(channel))?;
        self.broken = false;
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
        if self.prepared.len() == 0 {
            self.prepare(channel)?;
        }
        let material = self.prepared.take()?;
        self.begin()?;
        channel.send(REQUEST, &[Request::Predict.code()])?;
        let predicted = self.session.predict(channel, material, input)?;
        self.broken = false;
        Ok(predicted)
    }

    /// An exchange counts as failed until it has succeeded.
    fn begin(&mut self) -> Result<(), ExecutionError> {
        if std::mem::replace(&mut self.broken, true) {
            return Err(ExecutionError::Broken);
        }
        Ok(())
    }

    /// Ends the session.
    ///
    /// # Errors
    /// [`ExecutionError::Channel`] if the connection fails.
    pub fn end(self, channel: &mut dyn Channel) -> Result<(), ExecutionError> {
        channel.send(REQUEST, &[Request::End.code()])?;
        Ok(channel.flush()?)
    }
}

/// A session's material in the order of its predictions.
struct Queue<M> {
    store: MemoryStore<Counted<M>>,
    transcript: [u8; 32],
    /// Bytes kept of one prediction.
    each: u64,
    made: u64,
    used: u64,
}

/// Material, and the bytes that are kept of it.
struct Counted<M> {
    material: M,
    bytes: u64,
}

impl<M: Send> OneTime for Counted<M> {
    fn kept_bytes(&self) -> u64 {
        self.bytes
    }
}

impl<M: Send> Queue<M> {
    fn new(transcript: [u8; 32], each: u64) -> Self {
        let capacity = Capacity { pieces: MAX_PREPARED, bytes: MAX_PREPARED_BYTES.max(each) };
        Self { store: MemoryStore::new(capacity), transcript, each, made: 0, used: 0 }
    }

    fn len(&self) -> usize {
        (self.made - self.used) as usize
    }

    /// Whether one more prediction may be prepared; one always may.
    fn has_room(&self) -> bool {
        let bytes = self.each.saturating_mul(self.made - self.used + 1);
        self.len() == 0 || self.len() < MAX_PREPARED && bytes <= MAX_PREPARED_BYTES
    }

    fn make(
        &mut self,
        channel: &mut dyn Channel,
        make: impl FnOnce(&mut dyn Channel) -> Result<M, ExecutionError>,
    ) -> Result<(), ExecutionError> {
        let counted = Counted { material: make(channel)?, bytes: self.each };
        self.store.put(self.name(self.made), counted)?;
        self.made += 1;
        Ok(())
    }

    fn take(&mut self) -> Result<M, ExecutionError> {
        let material = self.store.take(self.name(self.used))?.material;
        self.used += 1;
        Ok(material)
    }

    fn name(&self, index: u64) -> MaterialId {
        let direction = Direction::ServerToClient;
        MaterialId::of(&Label { session: self.transcript, layer: 0, op: "prediction", index, direction })
    }
}
