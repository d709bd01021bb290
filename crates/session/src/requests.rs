//! What a client asks of a session after the handshake: material ahead of time, predictions, the end.
//!
//! The client leads. Each request is one byte; both parties then run the phase it names. Each party keeps the material of
//! prediction `i` of a session in a store under a name that is never used again, first made first used; what was taken is
//! gone whether or not the prediction succeeds. That store ends with the session. Parties that were given another
//! ([`Responder::with_store`], [`Requester::with_store`]) keep material there for any later session.

mod kept;

use std::sync::Arc;

use lanner_primitives::{Direction, Label, Prg};
use lanner_wire::{Channel, ChannelError, Kind};

use kept::{Shelf, await_ready, refuse, say_ready, shelf};

use crate::executor::{
    ClientPlan, ClientSession, ExecutionError, Outcome, Prepared, ServedModel, ServerSession, StepCost,
};
use crate::store::{Capacity, MaterialId, MemoryStore, OneTime, Store};

/// Predictions that a client may have prepared and not used.
pub const MAX_PREPARED: usize = 64;

/// Bytes that either party keeps of them.
pub const MAX_PREPARED_BYTES: u64 = 4 << 30;

const REQUEST: Kind = Kind(0x20);
const KEPT_NAME: Kind = Kind(0x21);

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Material for one prediction.
    Prepare,
    /// A prediction with the oldest material.
    Predict,
    /// The end of the session.
    End,
    /// Material for one prediction, kept by both parties for any session.
    Keep,
    /// A prediction with the kept material of this name.
    PredictKept(MaterialId),
}

impl Request {
    const fn code(self) -> u8 {
        match self {
            Self::Prepare => 1,
            Self::Predict => 2,
            Self::End => 3,
            Self::Keep => 4,
            Self::PredictKept(_) => 5,
        }
    }

    fn send(self, channel: &mut dyn Channel) -> Result<(), ChannelError> {
        channel.send(REQUEST, &[self.code()])?;
        match self {
            Self::PredictKept(id) => channel.send(KEPT_NAME, id.as_bytes()),
            _ => Ok(()),
        }
    }

    fn receive(channel: &mut dyn Channel) -> Result<Self, ChannelError> {
        let mut code = [0];
        channel.receive_into(REQUEST, &mut code)?;
        Ok(match code[0] {
            1 => Self::Prepare,
            2 => Self::Predict,
            3 => Self::End,
            4 => Self::Keep,
            5 => {
                let mut name = [0; 16];
                channel.receive_into(KEPT_NAME, &mut name)?;
                Self::PredictKept(MaterialId::from_bytes(name))
            }
            _ => return Err(ChannelError::Malformed { what: "request" }),
        })
    }
}

/// The server's side of a session.
pub struct Responder {
    session: ServerSession,
    prepared: Queue<Prepared>,
    kept: Option<Shelf>,
    computed: Vec<StepCost>,
    /// Whether a phase failed: what it has drawn and sent must not be met again.
    broken: bool,
}

impl Responder {
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
        Ok(Self { session, prepared, kept: None, computed: Vec::new(), broken: false })
    }

    /// The same, keeping material in this store where the client asks for it. `identity` names plan and weights, as in
    /// [`Prepared::encode`]; the client's must be the same.
    #[must_use]
    pub fn with_store(mut self, store: Arc<dyn Store>, identity: [u8; 32]) -> Self {
        self.kept = Some(Shelf::new(store, identity, self.prepared.transcript));
        self
    }

    /// Waits for the client's next request.
    ///
    /// # Errors
    /// [`ExecutionError::Channel`] if it is none, or the connection fails.
    pub fn receive(channel: &mut dyn Channel) -> Result<Request, ExecutionError> {
        Ok(Request::receive(channel)?)
    }

    /// Runs the phase that the client asked for. After a failure the session is of no use any more.
    ///
    /// # Errors
    /// [`ExecutionError`] if nothing is prepared for a prediction, too much is, kept material is damaged, or as [`Self::start`];
    /// [`ExecutionError::Broken`] ever after. A client that asks for material that is not kept, or cannot be, hears it, and the session
    /// goes on.
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
            Request::Keep => self.keep(channel),
            Request::PredictKept(id) => self.predict_kept(channel, id),
        }
    }

    fn keep(&mut self, channel: &mut dyn Channel) -> Result<(), ExecutionError> {
        self.computed.clear();
        let shelf = match shelf(&mut self.kept, self.session.plan()) {
            Ok(shelf) => shelf,
            Err(error) => return refuse(channel, error),
        };
        say_ready(channel)?;
        let (id, made) = (shelf.next(), self.session.prepare(channel)?);
        made.costs().clone_into(&mut self.computed);
        match shelf.put(id, made, self.session.plan()) {
            Ok(()) => say_ready(channel),
            Err(error) => refuse(channel, error),
        }
    }

    fn predict_kept(&mut self, channel: &mut dyn Channel, id: MaterialId) -> Result<(), ExecutionError> {
        self.computed.clear();
        let plan = self.session.plan();
        let material = match shelf(&mut self.kept, plan).and_then(|shelf| shelf.take(id, plan)) {
            Ok(material) => material,
            Err(error) => return refuse(channel, error),
        };
        say_ready(channel)?;
        self.computed = self.session.predict(channel, material)?;
        Ok(())
    }

    /// What the server computed for the last material or prediction, step by step.
    #[must_use]
    pub fn computed(&self) -> &[StepCost] {
        &self.computed
    }
}

/// A client's session.
pub struct Requester {
    session: ClientSession,
    prepared: Queue<Prepared>,
    kept: Option<Shelf>,
    setup: StepCost,
    /// Whether an exchange failed half-way: the parties are then out of step, and old messages may lie in the channel.
    broken: bool,
}

impl Requester {
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
        Ok(Self { session, prepared, kept: None, setup, broken: false })
    }

    /// As [`Responder::with_store`].
    #[must_use]
    pub fn with_store(mut self, store: Arc<dyn Store>, identity: [u8; 32]) -> Self {
        self.kept = Some(Shelf::new(store, identity, self.prepared.transcript));
        self
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
        begin(&mut self.broken)?;
        Request::Prepare.send(channel)?;
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
        begin(&mut self.broken)?;
        Request::Predict.send(channel)?;
        let predicted = self.session.predict(channel, material, input)?;
        self.broken = false;
        Ok(predicted)
    }

    /// Makes the material of one prediction, which both parties keep for any later session under the name returned.
    ///
    /// # Errors
    /// [`ExecutionError::NoStore`] without [`Self::with_store`]; [`ExecutionError::NotKept`] naming a layer whose material serves
    /// this session alone; [`ChannelError::Refused`] with [`Refusal::Material`](lanner_wire::Refusal::Material) if the server cannot
    /// keep it, after which the session goes on; [`ExecutionError::Store`] if only this party cannot; as [`Self::start`].
    pub fn keep(&mut self, channel: &mut dyn Channel) -> Result<MaterialId, ExecutionError> {
        let Self { session, kept, broken, .. } = self;
        let shelf = shelf(kept, session.plan())?;
        begin(broken)?;
        Request::Keep.send(channel)?;
        await_ready(channel, broken)?;
        let (id, made) = (shelf.next(), session.prepare(channel)?);
        await_ready(channel, broken)?;
        *broken = false;
        shelf.put(id, made, session.plan())?;
        Ok(id)
    }

    /// Predicts with kept material, whose name either is gone from both stores or was in none of them.
    ///
    /// # Errors
    /// [`ExecutionError::Mismatch`] if the input has another length; [`ExecutionError::Store`] if this party has no such material,
    /// [`ExecutionError::OtherMaterial`] if it is for something else; [`ChannelError::Refused`] with
    /// [`Refusal::Material`](lanner_wire::Refusal::Material) if the server has none, after which the session goes on; as [`Self::start`].
    pub fn predict_kept(
        &mut self,
        channel: &mut dyn Channel,
        id: MaterialId,
        input: &[i64],
    ) -> Result<(Outcome, Vec<StepCost>), ExecutionError> {
        let Self { session, kept, broken, .. } = self;
        session.plan().check_input(input)?;
        let material = shelf(kept, session.plan())?.take(id, session.plan())?;
        begin(broken)?;
        Request::PredictKept(id).send(channel)?;
        await_ready(channel, broken)?;
        let predicted = session.predict(channel, material, input)?;
        *broken = false;
        Ok(predicted)
    }

    /// Ends the session.
    ///
    /// # Errors
    /// [`ExecutionError::Channel`] if the connection fails.
    pub fn end(self, channel: &mut dyn Channel) -> Result<(), ExecutionError> {
        Request::End.send(channel)?;
        Ok(channel.flush()?)
    }
}

/// An exchange counts as failed until it has succeeded.
fn begin(broken: &mut bool) -> Result<(), ExecutionError> {
    if std::mem::replace(broken, true) {
        return Err(ExecutionError::Broken);
    }
    Ok(())
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
        name(self.transcript, "prediction", index)
    }
}

/// The name that both parties give to material of a session.
fn name(session: [u8; 32], op: &str, index: u64) -> MaterialId {
    MaterialId::of(&Label { session, layer: 0, op, index, direction: Direction::ServerToClient })
}
