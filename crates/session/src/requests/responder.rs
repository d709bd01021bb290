//! The server's side of a session.

use std::sync::{Arc, Mutex, PoisonError};

use lanner_net::abreast;
use lanner_primitives::Prg;
use lanner_process::Mark;
use lanner_step::Party;
use lanner_store::{MaterialId, StoreError, Uploads};
use lanner_wire::{Channel, ChannelError, Kind, Refusal};
use tracing::warn;

use super::queue::Queue;
use super::{
    MAX_PREPARED_BYTES, MAX_TOGETHER, PREPARED, Request, Shelf, most_together, pairing, say_ready, unread,
    upload,
};
use crate::executor::{ClientKeys, ExecutionError, Measured, ServedModel, ServerSession};

/// How much a request may take of what a session can do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Predictions that may be prepared beside others.
    pub preparations: usize,
    /// Predictions that may run at once the next time; one always may.
    pub at_once: usize,
    /// Bytes of material of one prediction that is held as a whole.
    pub whole: u64,
}

impl Room {
    /// As much as a session may ever have.
    pub const MOST: Self = Self { preparations: MAX_TOGETHER, at_once: MAX_TOGETHER, whole: u64::MAX };
}

/// The server's side of a session.
pub struct Responder {
    model: Arc<ServedModel>,
    /// The source of the session's randomness, until it is set up.
    rng: Option<Prg>,
    session: Option<ServerSession>,
    prepared: Queue,
    shelf: Option<Shelf>,
    uploads: Option<Arc<Uploads>>,
    computed: Vec<Measured>,
    /// Predictions that the client may have run at once.
    at_once: usize,
    /// Whether a phase failed: what it has drawn and sent must not be met again.
    broken: bool,
    /// Why the disk did not keep, or not give back, what the client asked for last.
    trouble: Option<StoreError>,
    mark: Mark,
}

impl Responder {
    /// A session after its handshake. All randomness of the session comes from `rng`.
    #[must_use]
    pub fn new(model: Arc<ServedModel>, rng: Prg) -> Self {
        let prepared = Queue::new(model.memory().server_material);
        let (rng, computed, at_once) = (Some(rng), Vec::new(), 1);
        let (session, shelf, uploads, broken) = (None, None, None, false);
        let (trouble, mark) = (None, Mark::here());
        Self { model, rng, session, prepared, shelf, uploads, computed, at_once, broken, trouble, mark }
    }

    /// The same, keeping pairings and material where the client asks for it.
    #[must_use]
    pub fn with_shelf(mut self, shelf: Shelf) -> Self {
        self.shelf = Some(shelf);
        self
    }

    /// The same, keeping the keys that clients upload. Without it an upload is its session's.
    #[must_use]
    pub fn with_uploads(mut self, uploads: Arc<Uploads>) -> Self {
        self.uploads = Some(uploads);
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
    /// [`ExecutionError`] if the request is out of turn, too much is prepared, kept material is damaged, the peer's messages are not the
    /// ones due, or the connection fails; [`ExecutionError::Broken`] ever after; [`ExecutionError::OtherProcess`] in a child that `fork` made. A client that asks for a pairing, keys or material that are
    /// not kept, or cannot be, hears it, and the session goes on. After a check that no honest client fails, the session's secrets, what
    /// is prepared, and all material kept of its pairing are gone.
    pub fn answer(&mut self, channel: &mut dyn Channel, request: Request) -> Result<(), ExecutionError> {
        self.answer_within(channel, request, Room::MOST)
    }

    /// The same, where there is memory for so much that a request may do without.
    ///
    /// # Errors
    /// As [`Self::answer`].
    pub fn answer_within(
        &mut self,
        channel: &mut dyn Channel,
        request: Request,
        room: Room,
    ) -> Result<(), ExecutionError> {
        self.answer_or_tell(channel, request, room, &|| ())
    }

    /// The same. `caught` is told of a check that no honest client fails as soon as it has failed: nothing is removed before it returns, whatever else is under way goes on, and the
    /// client has heard nothing. It may be told twice.
    ///
    /// # Errors
    /// As [`Self::answer`].
    pub fn answer_or_tell(
        &mut self,
        channel: &mut dyn Channel,
        request: Request,
        room: Room,
        caught: &(dyn Fn() + Sync),
    ) -> Result<(), ExecutionError> {
        self.mark.check("the session")?;
        if std::mem::replace(&mut self.broken, true) {
            return Err(ExecutionError::Broken);
        }
        self.computed.clear();
        let answered = self.answer_in_turn(channel, request, room, caught);
        if answered.as_ref().is_err_and(ExecutionError::is_dishonest) {
            caught();
            self.session = None;
            self.prepared.clear();
            self.shelf.iter().for_each(Shelf::destroy);
        }
        self.broken = answered.is_err();
        answered
    }

    fn answer_in_turn(
        &mut self,
        channel: &mut dyn Channel,
        request: Request,
        room: Room,
        caught: &(dyn Fn() + Sync),
    ) -> Result<(), ExecutionError> {
        if !matches!(request, Request::Together { .. }) {
            channel.allow_ahead(unread::backlog(self.model.ahead(), request));
        }
        match request {
            Request::SetUp => self.measured(channel, Self::set_up)?,
            Request::SetUpAgain => self.measured(channel, Self::set_up_again)?,
            Request::SetUpUploaded(hash) => {
                self.measured(channel, |own, channel| own.set_up_uploaded(channel, hash))?;
            }
            Request::Prepare => self.prepare(channel, room)?,
            Request::Predict => self.predict(channel)?,
            Request::PredictUnprepared => {
                self.computed = self.session.as_mut().ok_or_else(out_of_turn)?.predict_unprepared(channel)?;
            }
            Request::Together { predictions, preparations } => {
                self.predict_together(channel, predictions.into(), preparations.into(), room, caught)?;
            }
            Request::Resume => self.resume(channel)?,
            Request::Pair => self.pair(channel)?,
            Request::Keep => self.keep(channel, room)?,
            Request::PredictKept(id) => self.predict_kept(channel, room, id)?,
            Request::End => {}
        }
        channel.allow_ahead(0);
        Ok(())
    }

    /// Notes what a set-up takes.
    fn measured(
        &mut self,
        channel: &mut dyn Channel,
        set_up: impl FnOnce(&mut Self, &mut dyn Channel) -> Result<(), ExecutionError>,
    ) -> Result<(), ExecutionError> {
        let mut cost = Measured::of_setup();
        cost.measure(channel, |channel| set_up(self, channel))?;
        self.computed.push(cost);
        Ok(())
    }

    fn set_up(&mut self, channel: &mut dyn Channel) -> Result<(), ExecutionError> {
        let rng = self.rng.take().ok_or_else(out_of_turn)?;
        self.session = Some(ServerSession::setup(channel, Arc::clone(&self.model), rng)?);
        Ok(())
    }

    fn set_up_again(&mut self, channel: &mut dyn Channel) -> Result<(), ExecutionError> {
        let kept = match shelf(&mut self.shelf)?.keys() {
            Ok(Some(kept)) => ServerSession::read_keys(&self.model, kept.as_bytes()).ok(),
            Ok(None) => None,
            Err(error) => return refuse(&mut self.trouble, channel, error),
        };
        self.go_on_with(channel, kept)
    }

    fn set_up_uploaded(&mut self, channel: &mut dyn Channel, hash: [u8; 32]) -> Result<(), ExecutionError> {
        let length = self.model.set_up().encoded_keys_len()?;
        if self.rng.is_none() || length == 0 {
            return Err(out_of_turn());
        }
        let upload = upload::receive(channel, self.uploads.as_deref(), hash, length)?;
        let read = |bytes| ServerSession::read_keys(&self.model, bytes).ok();
        let keys = upload.content().and_then(read);
        if keys.is_none() {
            upload.discard();
        } else if let Err(error) = upload.keep() {
            warn!(%error, "an upload is not kept");
        }
        self.go_on_with(channel, keys)
    }

    /// A set-up with keys that are there.
    fn go_on_with(
        &mut self,
        channel: &mut dyn Channel,
        keys: Option<ClientKeys>,
    ) -> Result<(), ExecutionError> {
        let Some(keys) = keys else { return say_refused(channel) };
        let rng = self.rng.take().ok_or_else(out_of_turn)?;
        say_ready(channel)?;
        self.session = Some(ServerSession::setup_again(channel, Arc::clone(&self.model), keys, rng)?);
        Ok(())
    }

    /// Checks that one prediction's material may be held as a whole.
    fn check_whole(&self, room: Room) -> Result<(), ExecutionError> {
        let (bytes, most) = (self.model.memory().server_material, room.whole);
        if bytes > most {
            return Err(ExecutionError::TooMuchAhead { bytes, most });
        }
        Ok(())
    }

    fn prepare(&mut self, channel: &mut dyn Channel, room: Room) -> Result<(), ExecutionError> {
        if !self.prepared.has_room() {
            return Err(out_of_turn());
        }
        self.check_whole(room)?;
        let made = self.session.as_mut().ok_or_else(out_of_turn)?.prepare(channel)?;
        made.costs().clone_into(&mut self.computed);
        self.prepared.put(made);
        Ok(())
    }

    fn predict(&mut self, channel: &mut dyn Channel) -> Result<(), ExecutionError> {
        let material = self.prepared.take().map_err(|_| out_of_turn())?;
        self.computed = self.model.predict(channel, material)?;
        self.at_once = self.at_once.min(self.prepared.len()).max(1);
        Ok(())
    }

    fn predict_together(
        &mut self,
        channel: &mut dyn Channel,
        predictions: usize,
        preparations: usize,
        room: Room,
        tell: &(dyn Fn() + Sync),
    ) -> Result<(), ExecutionError> {
        if predictions == 0 || predictions > self.at_once || preparations > MAX_TOGETHER {
            return Err(out_of_turn());
        }
        let channel = channel.divisible().ok_or_else(out_of_turn)?;
        let session = self.session.as_mut().ok_or_else(out_of_turn)?;
        let materials = self.prepared.take_for(predictions).map_err(|_| out_of_turn())?;
        let preparations = preparations.min(room.preparations).min(self.prepared.room());
        let fitting = most_together(&self.model.memory(), MAX_PREPARED_BYTES);
        // Of a client that is checked, one prediction has its verdict before the next begins.
        let at_once = if self.model.is_checked() { 1 } else { room.at_once.clamp(1, fitting) };
        let caught = Caught::new(tell);
        let prepare = |lane: &mut dyn Channel| {
            lane.send(PREPARED, &[preparations as u8, at_once as u8])?;
            lane.flush()?;
            let made = (0..preparations).map(|_| session.prepare(lane));
            made.collect::<Result<Vec<_>, ExecutionError>>().map_err(|error| caught.note(error))
        };
        let (model, note) = (&self.model, &caught);
        let predict = |material| {
            move |lane: &mut dyn Channel| model.predict(lane, material).map_err(|error| note.note(error))
        };
        // Of what the client asked for, so much is served.
        let (predictions, preparations) = (predictions as u8, preparations as u8);
        let served = Request::Together { predictions, preparations };
        channel.allow_ahead(unread::backlog(model.ahead(), served));
        let most_kept = unread::kept(model.ahead(), predictions, preparations, Party::Server);
        let predict = materials.into_iter().map(predict).collect();
        let over = abreast(channel, most_kept, predict, prepare);
        caught.check()?;
        let (computed, made) = over?;
        self.computed = computed.concat();
        for made in made? {
            self.computed.extend_from_slice(made.costs());
            self.prepared.put(made);
        }
        self.at_once = at_once;
        Ok(())
    }

    fn resume(&mut self, channel: &mut dyn Channel) -> Result<(), ExecutionError> {
        if self.session.is_some() || self.shelf.as_ref().is_some_and(Shelf::is_paired) {
            return Err(out_of_turn());
        }
        pairing::accept(channel, self.shelf.as_mut())
    }

    fn pair(&mut self, channel: &mut dyn Channel) -> Result<(), ExecutionError> {
        let session = self.session.as_ref().ok_or_else(out_of_turn)?;
        // A client that could not keep its side asks again, and can keep nothing in this session.
        let Some(shelf) = self.shelf.as_mut().filter(|shelf| !shelf.is_paired()) else {
            return say_refused(channel);
        };
        match shelf.pair(Some(session.keys())) {
            Ok(()) => say_ready(channel),
            Err(error) => refuse(&mut self.trouble, channel, error),
        }
    }

    fn keep(&mut self, channel: &mut dyn Channel, room: Room) -> Result<(), ExecutionError> {
        if let Err(error) = self.check_whole(room) {
            return refuse(&mut self.trouble, channel, error);
        }
        let (shelf, session) = (shelf(&mut self.shelf)?, self.session.as_mut().ok_or_else(out_of_turn)?);
        if let Err(error) = self.model.check_kept() {
            return refuse(&mut self.trouble, channel, error);
        }
        say_ready(channel)?;
        let (id, made) = (shelf.next(), session.prepare(channel)?);
        made.costs().clone_into(&mut self.computed);
        match shelf.put(id, made, &self.model) {
            Ok(()) => say_ready(channel),
            Err(error) => refuse(&mut self.trouble, channel, error),
        }
    }

    fn predict_kept(
        &mut self,
        channel: &mut dyn Channel,
        room: Room,
        id: MaterialId,
    ) -> Result<(), ExecutionError> {
        if let Err(error) = self.check_whole(room) {
            warn!(%error, "no memory for kept material");
            return Ok(say(channel, Refusal::Storage)?);
        }
        let material = match shelf(&mut self.shelf)?.take(id, &self.model) {
            Ok(material) => material,
            Err(ExecutionError::Store(error)) if !error.is_of_material() => {
                // Whatever else the client tried would be lost in the same way.
                warn!(%error, "kept material cannot be used");
                return Ok(say(channel, Refusal::Storage)?);
            }
            Err(error) => return refuse(&mut self.trouble, channel, error),
        };
        say_ready(channel)?;
        self.computed = self.model.predict(channel, material)?;
        Ok(())
    }

    /// The cause of a session's end for whoever reads the log: a client that left because the disk failed did not fail itself.
    #[must_use]
    pub fn explained(&mut self, error: ExecutionError) -> ExecutionError {
        match self.trouble.take() {
            Some(trouble) if matches!(error, ExecutionError::Channel(ChannelError::Disconnected)) => {
                trouble.into()
            }
            _ => error,
        }
    }

    /// Predictions that are prepared in this session and not used.
    #[must_use]
    pub fn prepared(&self) -> usize {
        self.prepared.len()
    }

    /// What the server computed for the last request, step by step; a set-up is one step.
    #[must_use]
    pub fn computed(&self) -> &[Measured] {
        &self.computed
    }
}

/// A failed check among exchanges that run at once. It counts whatever else fails before it: a client that cheats in one of them breaks another off.
struct Caught<'a> {
    error: Mutex<Option<ExecutionError>>,
    tell: &'a (dyn Fn() + Sync),
}

impl<'a> Caught<'a> {
    const fn new(tell: &'a (dyn Fn() + Sync)) -> Self {
        Self { error: Mutex::new(None), tell }
    }

    /// Tells of a client that cheated, while the others are still under way, keeps its error, and gives one that says less.
    fn note(&self, error: ExecutionError) -> ExecutionError {
        if !error.is_dishonest() {
            return error;
        }
        (self.tell)();
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        ExecutionError::Broken
    }

    /// # Errors
    /// That of the check.
    fn check(self) -> Result<(), ExecutionError> {
        self.error.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

/// The shelf of a session that is paired.
fn shelf(shelf: &mut Option<Shelf>) -> Result<&mut Shelf, ExecutionError> {
    shelf.as_mut().filter(|shelf| shelf.is_paired()).ok_or_else(out_of_turn)
}

fn out_of_turn() -> ExecutionError {
    ChannelError::Malformed { what: "request: out of turn" }.into()
}

fn say_refused(channel: &mut dyn Channel) -> Result<(), ExecutionError> {
    Ok(say(channel, Refusal::Material)?)
}

fn say(channel: &mut dyn Channel, refusal: Refusal) -> Result<(), ChannelError> {
    channel.send(Kind::REFUSED, &[refusal.code()])?;
    channel.flush()
}

/// Tells the client that the server does not go on. Neither what a client can bring about by asking nor a disk that fails is a failure of the
/// session, which can do without.
fn refuse(
    trouble: &mut Option<StoreError>,
    channel: &mut dyn Channel,
    error: ExecutionError,
) -> Result<(), ExecutionError> {
    say_refused(channel)?;
    match error {
        ExecutionError::NotKept { .. }
        | ExecutionError::OtherMaterial { .. }
        | ExecutionError::Material(_) => Ok(()),
        ExecutionError::TooMuchAhead { .. } => {
            warn!(%error, "cannot prepare what a client asks for");
            Ok(())
        }
        ExecutionError::Store(error) => {
            warn!(%error, "cannot keep, or not find, what a client asks for");
            *trouble = Some(error);
            Ok(())
        }
        error => Err(error),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use lanner_step::ProtocolError;

    use super::*;

    #[test]
    fn a_failed_check_counts_whatever_else_fails() {
        let told = AtomicUsize::new(0);
        let tell = || {
            told.fetch_add(1, Ordering::Relaxed);
        };
        let caught = Caught::new(&tell);
        let gone = || ExecutionError::Channel(ChannelError::Disconnected);
        assert!(matches!(caught.note(gone()), ExecutionError::Channel(_)));
        let cheats = ExecutionError::Step { step: "output".to_owned(), source: ProtocolError::Cheating };
        assert!(matches!(caught.note(cheats), ExecutionError::Broken));
        assert!(matches!(caught.note(gone()), ExecutionError::Channel(_)));
        assert!(caught.check().unwrap_err().is_dishonest());
        assert_eq!(told.into_inner(), 1);
        Caught::new(&|| unreachable!()).check().unwrap();
    }
}
