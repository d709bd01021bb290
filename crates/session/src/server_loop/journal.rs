//! What became of each connection, for the server's operator.
//!
//! One entry for each connection that ended or was turned away: who, which model, how many predictions, how it ended. Nothing of it is
//! secret: what an entry says is what the other end knows, and the error that ended it, which carries no values.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use lanner_wire::Traffic;
use serde::Serialize;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// The client was served to the end.
    Done,
    /// The server stopped before the client was done.
    Stopped,
    /// There was no place, or no room for material: the client heard that the server is busy.
    Busy,
    /// Something went wrong; the reason says what.
    Failed,
    /// No connection came about: the client does not speak TLS, or not in time.
    NoConnection,
}

/// What became of a connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Entry {
    /// When it ended, in seconds since 1970.
    pub time: f64,
    /// Where the client connected from.
    pub peer: SocketAddr,
    /// The name of the model that it used; none if it did not get so far.
    pub model: Option<String>,
    /// Predictions made.
    pub predictions: u64,
    /// How long it lasted.
    pub seconds: f64,
    /// Bytes sent on TCP.
    pub sent: u64,
    /// Bytes received on TCP.
    pub received: u64,
    /// How it ended.
    pub ending: Ending,
    /// Why, where something went wrong; else empty.
    pub reason: String,
}

impl Entry {
    /// An entry of a connection that ends now and did nothing yet.
    pub(super) fn new(peer: SocketAddr, ending: Ending, reason: impl Into<String>) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let time = since.map_or(0.0, |time| time.as_secs_f64());
        let reason = reason.into();
        Self { time, peer, model: None, predictions: 0, seconds: 0.0, sent: 0, received: 0, ending, reason }
    }

    pub(super) fn lasted(mut self, time: Duration, traffic: Traffic) -> Self {
        self.seconds = time.as_secs_f64();
        (self.sent, self.received) = (traffic.sent, traffic.received);
        self
    }
}

/// The entries that nobody has taken yet; those beyond [`LIMIT`] are counted only.
#[derive(Default)]
pub struct Journal(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    entries: VecDeque<Entry>,
    omitted: u64,
}

impl Journal {
    /// Takes the entries since the last time, the oldest first, and the number of those for which there was no room after them.
    #[must_use]
    pub fn take(&self) -> (Vec<Entry>, u64) {
        let mut pages = self.lock();
        (pages.entries.drain(..).collect(), std::mem::take(&mut pages.omitted))
    }

    pub(super) fn add(&self, entry: Entry) {
        let mut pages = self.lock();
        if pages.entries.len() < LIMIT {
            pages.entries.push_back(entry);
        } else {
            pages.omitted += 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        // Each change is complete in itself, so that a panic elsewhere leaves the entries consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Entries kept for whoever reads them: many connections a second fill no memory.
const LIMIT: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_taken_once_and_a_flood_of_them_is_counted() {
        let journal = Journal::default();
        for port in 0..1030 {
            journal.add(Entry::new(SocketAddr::from(([127, 0, 0, 1], port)), Ending::Busy, "full"));
        }
        let (entries, omitted) = journal.take();
        assert_eq!((entries.len(), omitted), (LIMIT, 6));
        assert_eq!((entries[0].peer.port(), entries[LIMIT - 1].peer.port()), (0, 1023));
        assert_eq!(journal.take(), (Vec::new(), 0));
    }
}
