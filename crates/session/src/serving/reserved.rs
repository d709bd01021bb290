//! What a session of a server holds of the memory that all sessions share.

use lanner_step::Memory;

use crate::executor::ServedModel;
use crate::requests::{MAX_PREPARED_BYTES, Request, Room, Unread, most_together};
use crate::server_loop::{Exhausted, Reservation, SessionInfo};

/// What a session holds of the memory that all sessions share.
pub(super) struct Reserved<'s> {
    session: &'s SessionInfo,
    memory: Memory,
    unread: Unread,
    /// Bytes of the client's keys as they are sent.
    sent_keys: u64,
    /// What the client may send that lies unread, whatever it asks for.
    _backlog: Reservation,
    /// The client's keys, once it sends some.
    keys: Option<Reservation>,
    /// One for each prediction that is prepared.
    prepared: Vec<Reservation>,
    /// Material of the present request alone, and of predictions that it prepares if there is room.
    passing: Vec<Reservation>,
    /// What lies unread, or is read and of no use after it, in the present request alone.
    transient: Vec<Reservation>,
    /// What exchanges work with that run beside the session's first.
    beside: Vec<Reservation>,
    room: Room,
}

impl<'s> Reserved<'s> {
    /// What any session of a model holds.
    ///
    /// # Errors
    /// [`Exhausted`] if there is no room for it.
    pub(super) fn new(session: &'s SessionInfo, model: &ServedModel) -> Result<Self, Exhausted> {
        let (memory, unread) = (model.memory(), Unread::of(model.ahead()));
        let sent_keys = model.set_up().encoded_keys_len().map_or(memory.session, |bytes| bytes as u64);
        let [prepared, passing, transient, beside] = [const { Vec::new() }; 4];
        // What no other session's end makes room for is refused, and not put off.
        let whole = session.most_kept().saturating_sub(unread.session.saturating_add(memory.session));
        Ok(Self {
            session,
            memory,
            unread,
            sent_keys,
            _backlog: session.reserve(unread.session)?,
            keys: None,
            prepared,
            passing,
            transient,
            beside,
            room: Room { preparations: 0, at_once: 1, whole },
        })
    }

    /// The least that all sessions together must be allowed, so that one makes a prediction with keys that it uploads.
    pub(super) fn least(model: &ServedModel) -> u64 {
        let memory = model.memory();
        let sent_keys = model.set_up().encoded_keys_len().map_or(memory.session, |bytes| bytes as u64);
        let unread = Unread::of(model.ahead()).session;
        let [_, material] = memory.of_unprepared();
        unread.saturating_add(memory.session).saturating_add(material.max(sent_keys))
    }

    /// Reserves for a request what it cannot do without, and what there is of the rest, where so many predictions are prepared.
    ///
    /// # Errors
    /// [`Exhausted`] if there is no room for material that the client asks for.
    pub(super) fn room_for(&mut self, request: Request, prepared: usize) -> Result<Room, Exhausted> {
        let bytes = self.memory.server_material;
        let mut whole = self.room.whole;
        match request {
            Request::Prepare | Request::Keep | Request::PredictKept(_) if bytes > whole => {}
            Request::Prepare => self.prepared.push(self.session.reserve(bytes)?),
            Request::SetUp => self.make_room_for_keys()?,
            Request::SetUpAgain | Request::SetUpUploaded(_) => {
                self.make_room_for_keys()?;
                self.transient.push(self.session.reserve(self.sent_keys)?);
            }
            // What is kept on disk passes through memory.
            Request::Keep => self.passing.push(self.session.reserve(bytes)?),
            Request::PredictUnprepared => {
                self.passing.push(self.session.reserve(self.memory.server_run)?);
            }
            // The client has used its part up, and being busy would cost it that: so much material is used without room, and no more.
            Request::PredictKept(_) => match self.session.reserve(bytes) {
                Ok(room) => self.passing.push(room),
                Err(_) => whole = whole.min(MOST_WITHOUT_ROOM),
            },
            Request::Together { predictions, preparations } => {
                let most = Room::MOST;
                let predictions = most.at_once.min(predictions.into());
                self.make_room(predictions, most.preparations.min(preparations.into()), prepared);
            }
            _ => {}
        }
        Ok(Room { whole, ..self.room })
    }

    fn make_room_for_keys(&mut self) -> Result<(), Exhausted> {
        if self.keys.is_none() {
            self.keys = Some(self.session.reserve(self.memory.session)?);
        }
        Ok(())
    }

    /// Room for preparations beside predictions, and for what works beside the first of the next ones.
    fn make_room(&mut self, predictions: usize, preparations: usize, prepared: usize) {
        self.work_beside(predictions);
        // Whatever is prepared works beside the predictions, too.
        if self.beside.len() >= predictions {
            for _ in 0..preparations {
                let material = self.session.try_reserve(self.memory.server_material);
                let unread = self.session.try_reserve(self.unread.preparation);
                let (Some(material), Some(unread)) = (material, unread) else { break };
                self.passing.push(material);
                self.transient.push(unread);
            }
        }
        let next = (prepared + self.passing.len()).saturating_sub(predictions);
        let next = next.min(most_together(&self.memory, MAX_PREPARED_BYTES));
        self.work_beside(next);
        self.room.preparations = self.passing.len();
        self.room.at_once = next.min(self.beside.len()).max(1);
    }

    /// Room for so many exchanges beside the first, as far as there is some.
    fn work_beside(&mut self, count: usize) {
        let each = self.memory.working.saturating_add(self.unread.prediction);
        let working = |_| self.session.try_reserve(each);
        self.beside.extend((self.beside.len()..count).map_while(working));
    }

    /// A request was answered; so many predictions are prepared now.
    pub(super) fn after(&mut self, request: Request, prepared: usize) {
        self.transient.clear();
        let passed = std::mem::take(&mut self.passing);
        if matches!(request, Request::Together { .. }) {
            self.prepared.extend(passed);
        }
        self.prepared.truncate(prepared);
        // As many may run at once as are prepared, and if none is, one: nothing is beside it.
        self.room.at_once = self.room.at_once.min(prepared).max(1);
        self.beside.truncate(self.room.at_once.min(prepared));
    }
}

/// Bytes of kept material that a prediction may take where sessions keep as much as they may: what a prediction that was not prepared takes at most.
const MOST_WITHOUT_ROOM: u64 = lanner_step::AHEAD;
