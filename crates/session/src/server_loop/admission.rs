//! Who is let in, and how everybody is seen out.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lanner_net::AbortHandle;

/// The connections of a server.
pub(super) struct Admission {
    max_sessions: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    connections: HashMap<u64, Connection>,
    sessions: usize,
    last_number: u64,
    stopping: bool,
}

struct Connection {
    abort: AbortHandle,
    /// Whether it was let in as a session.
    entered: bool,
    /// Since when nothing is done for it, if so.
    idle: Option<Instant>,
}

impl Admission {
    pub(super) fn new(max_sessions: usize) -> Self {
        Self { max_sessions, state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change below is complete in itself, so that a panic elsewhere leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a new connection, or its number alone if too many are still at their handshake.
    pub(super) fn knock(self: &Arc<Self>, abort: AbortHandle) -> Result<Slot, u64> {
        let mut state = self.state();
        let waiting = state.connections.len() - state.sessions;
        state.last_number += 1;
        let number = state.last_number;
        if state.stopping || waiting >= MAX_HANDSHAKES {
            return Err(number);
        }
        let idle = Some(Instant::now());
        state.connections.insert(number, Connection { abort, entered: false, idle });
        Ok(Slot { number, admission: Arc::clone(self) })
    }

    pub(super) fn stop(&self) {
        self.state().stopping = true;
        self.changed.notify_all();
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state().stopping
    }

    /// Sessions under way.
    pub(super) fn sessions(&self) -> u64 {
        self.state().sessions as u64
    }

    /// Waits until all connections are gone: those are cut that are idle for a while, and all at the deadline. Returns how many
    /// busy ones were cut.
    pub(super) fn drain(&self, deadline: Instant) -> usize {
        let mut state = self.state();
        loop {
            state.cut_idle();
            let left = deadline.saturating_duration_since(Instant::now());
            if state.connections.is_empty() || left.is_zero() {
                break;
            }
            let pause = left.min(IDLE_CHECK);
            let waited = self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
        }
        let cut = state.connections.values().filter(|connection| connection.idle.is_none()).count();
        for connection in state.connections.values() {
            connection.abort.abort();
        }
        // Their threads end with an error at their next message; one that computes does not hold up the stop.
        let gone = |state: &mut State| !state.connections.is_empty();
        drop(self.changed.wait_timeout_while(state, CUT_PATIENCE, gone));
        cut
    }
}

impl State {
    fn cut_idle(&self) {
        let is_quiet =
            |connection: &&Connection| connection.idle.is_some_and(|since| since.elapsed() >= QUIET);
        for connection in self.connections.values().filter(is_quiet) {
            connection.abort.abort();
        }
    }
}

/// A connection's place; it is free again when this is dropped.
pub(super) struct Slot {
    number: u64,
    admission: Arc<Admission>,
}

impl Slot {
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Lets the connection in as a session, unless there are enough. It waits a moment for one that is just ending, so that
    /// a client that comes back at once finds its own place free.
    pub(super) fn enter(&self) -> bool {
        let Admission { max_sessions, changed, .. } = &*self.admission;
        let full = |state: &mut State| !state.stopping && state.sessions >= *max_sessions;
        let waited = changed.wait_timeout_while(self.admission.state(), ENTER_PATIENCE, full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if state.stopping || state.sessions >= *max_sessions {
            return false;
        }
        let Some(connection) = state.connections.get_mut(&self.number) else { return false };
        connection.entered = true;
        connection.idle = None;
        state.sessions += 1;
        true
    }

    /// Gives the session's place back; the connection may still be saying goodbye.
    pub(super) fn leave(&self) {
        let mut state = self.admission.state();
        let connection = state.connections.get_mut(&self.number);
        if connection.is_some_and(|connection| std::mem::take(&mut connection.entered)) {
            state.sessions -= 1;
        }
        drop(state);
        self.admission.changed.notify_all();
    }

    pub(super) fn set_idle(&self, idle: bool) {
        if let Some(connection) = self.admission.state().connections.get_mut(&self.number) {
            connection.idle = idle.then(Instant::now);
        }
        self.admission.changed.notify_all();
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.admission.is_stopping()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.leave();
        self.admission.state().connections.remove(&self.number);
        self.admission.changed.notify_all();
    }
}

/// Connections that may be at their handshake at once.
const MAX_HANDSHAKES: usize = 64;
/// How long a new session waits for one to end.
const ENTER_PATIENCE: Duration = Duration::from_millis(500);
/// How long a client may be silent during a stop before its session counts as idle: longer than a round trip, as between a set-up
/// and the prediction that it is for.
const QUIET: Duration = Duration::from_secs(1);
/// How often a stop looks for sessions that became idle.
const IDLE_CHECK: Duration = Duration::from_millis(100);
/// How long a stop waits for sessions that it cut.
const CUT_PATIENCE: Duration = Duration::from_secs(1);
