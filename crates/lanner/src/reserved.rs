//! What a session of a server holds of the memory that all sessions share.

use lanner_protocol::step::Memory;
use lanner_session::requests::{MAX_PREPARED_BYTES, Request, Room, most_together};
use lanner_session::server_loop::{Exhausted, Reservation, SessionInfo};

/// What a session holds of the memory that all sessions share.
pub(crate) struct Reserved<'s> {
    session: &'s SessionInfo,
    memory: Memory,
    /// One for each prediction that is prepared.
    prepared: Vec<Reservation>,
    /// Material of the present request alone, and of predictions that it prepares if there is room.
    passing: Vec<Reservation>,
    /// What exchanges work with that run beside the session's first.
    beside: Vec<Reservation>,
    room: Room,
}

impl<'s> Reserved<'s> {
    pub(crate) fn new(session: &'s SessionInfo, memory: Memory) -> Self {
        let [prepared, passing, beside] = [const { Vec::new() }; 3];
        Self { session, memory, prepared, passing, beside, room: Room { preparations: 0, at_once: 1 } }
    }

    /// Reserves for a request what it cannot do without, and what there is of the rest, where so many predictions are prepared.
    ///
    /// # Errors
    /// [`Exhausted`] if there is no room for material that the client asks for.
    pub(crate) fn room_for(&mut self, request: Request, prepared: usize) -> Result<Room, Exhausted> {
        let bytes = self.memory.server_material;
        match request {
            Request::Prepare => self.prepared.push(self.session.reserve(bytes)?),
            // What is kept on disk passes through memory.
            Request::Keep => self.passing.push(self.session.reserve(bytes)?),
            // The client has used its part up, or its inputs, and being busy would cost it that.
            Request::PredictKept(_) => self.passing.extend(self.session.reserve(bytes).ok()),
            Request::Together { predictions, preparations } => {
                let most = Room::MOST;
                let predictions = most.at_once.min(predictions.into());
                self.make_room(predictions, most.preparations.min(preparations.into()), prepared);
            }
            _ => {}
        }
        Ok(self.room)
    }

    /// Room for preparations beside predictions, and for what works beside the first of the next ones.
    fn make_room(&mut self, predictions: usize, preparations: usize, prepared: usize) {
        self.work_beside(predictions);
        // Whatever is prepared works beside the predictions, too.
        if self.beside.len() >= predictions {
            let material = |_| self.session.try_reserve(self.memory.server_material);
            self.passing.extend((0..preparations).map_while(material));
        }
        let next = (prepared + self.passing.len()).saturating_sub(predictions);
        let next = next.min(most_together(&self.memory, MAX_PREPARED_BYTES));
        self.work_beside(next);
        self.room = Room { preparations: self.passing.len(), at_once: next.min(self.beside.len()).max(1) };
    }

    /// Room for so many exchanges beside the first, as far as there is some.
    fn work_beside(&mut self, count: usize) {
        let working = |_| self.session.try_reserve(self.memory.working);
        self.beside.extend((self.beside.len()..count).map_while(working));
    }

    /// A request was answered; so many predictions are prepared now.
    pub(crate) fn after(&mut self, request: Request, prepared: usize) {
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
