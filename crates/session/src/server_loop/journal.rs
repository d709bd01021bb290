//! What became of each connection, for the server's operator.
//!
//! One entry for each connection that ended or was turned away: who, by address and certificate, which model, how many predictions and what they took, how it ended.
//! Nothing of it is secret: what an entry says is what the other end knows, how long the server computed, and the error that ended it,
//! which carries no values.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use lanner_wire::Traffic;
use serde::Serialize;

use super::{Cause, Runs};

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
    /// The connection's number, from 1 at the server's start: no more than the order in which they came.
    pub session: u64,
    /// When it ended, in seconds since 1970.
    pub time: f64,
    /// Where the client connected from.
    pub peer: SocketAddr,
    /// The certificate that the client showed, as its fingerprint; none if it showed none.
    pub certificate: Option<String>,
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
    /// The same in one of a few words; none where nothing went wrong.
    pub cause: Option<Cause>,
    /// What its phases took.
    #[serde(flatten)]
    pub runs: Runs,
}

impl Entry {
    /// An entry of a connection that ends now and did nothing yet.
    pub(super) fn new(session: u64, peer: SocketAddr, end: End) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let time = since.map_or(0.0, |time| time.as_secs_f64());
        let End { ending, cause, reason } = end;
        let (certificate, model, predictions, runs) = (None, None, 0, Runs::default());
        let (seconds, sent, received) = (0.0, 0, 0);
        Self {
            session,
            time,
            peer,
            certificate,
            model,
            predictions,
            seconds,
            sent,
            received,
            ending,
            reason,
            cause,
            runs,
        }
    }

    pub(super) fn lasted(mut self, time: Duration, traffic: Traffic) -> Self {
        self.seconds = time.as_secs_f64();
        (self.sent, self.received) = (traffic.sent, traffic.received);
        self
    }
}

/// How a connection ended, and why.
pub(super) struct End {
    pub(super) ending: Ending,
    pub(super) cause: Option<Cause>,
    pub(super) reason: String,
}

impl End {
    pub(super) const fn done() -> Self {
        Self { ending: Ending::Done, cause: None, reason: String::new() }
    }

    pub(super) fn because(ending: Ending, cause: Cause, reason: impl Into<String>) -> Self {
        Self { ending, cause: Some(cause), reason: reason.into() }
    }
}

/// The entries that nobody has taken yet; those beyond [`LIMIT`] are counted only, and what their phases took is left out beyond [`ROWS`].
#[derive(Default)]
pub struct Journal(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    entries: VecDeque<Entry>,
    omitted: u64,
    /// What the runs of these entries take.
    rows: usize,
}

impl Journal {
    /// Takes the entries since the last time, the oldest first, and the number of those for which there was no room after them.
    #[must_use]
    pub fn take(&self) -> (Vec<Entry>, u64) {
        let Pages { entries, omitted, .. } = std::mem::take(&mut *self.lock());
        (entries.into(), omitted)
    }

    pub(super) fn add(&self, mut entry: Entry) {
        let mut pages = self.lock();
        if pages.entries.len() < LIMIT {
            if pages.rows + entry.runs.rows() > ROWS {
                entry.runs.omit();
            }
            pages.rows += entry.runs.rows();
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
/// Runs and layers kept with all of them.
const ROWS: usize = 1 << 15;

#[cfg(test)]
mod tests {
    use lanner_wire::Traffic;

    use super::*;
    use crate::executor::{Measured, Phase};

    fn entry(port: u16) -> Entry {
        let full = End::because(Ending::Busy, Cause::Sessions, "full");
        Entry::new(port.into(), SocketAddr::from(([127, 0, 0, 1], port)), full)
    }

    #[test]
    fn entries_are_taken_once_and_a_flood_of_them_is_counted() {
        let journal = Journal::default();
        for port in 0..1030 {
            journal.add(entry(port));
        }
        let (entries, omitted) = journal.take();
        assert_eq!((entries.len(), omitted), (LIMIT, 6));
        assert_eq!((entries[0].peer.port(), entries[LIMIT - 1].peer.port()), (0, 1023));
        assert_eq!(journal.take(), (Vec::new(), 0));
    }

    #[test]
    fn what_phases_took_is_left_out_where_it_would_be_too_much() {
        let traffic = Traffic { sent: 1, received: 1, rounds: 1 };
        let (name, protocol, phase) = ("fc1".to_owned(), "gazelle.fc", Phase::Online);
        let step = Measured { name, protocol, phase, seconds: 1.0, computing: 1.0, traffic };
        let mut full = entry(1);
        (0..512).for_each(|_| full.runs.add(Duration::ZERO, Duration::ZERO, std::slice::from_ref(&step)));
        let rows = full.runs.rows();
        let journal = Journal::default();
        (0..=ROWS / rows).for_each(|_| journal.add(full.clone()));
        let (entries, _) = journal.take();
        let (last, others) = entries.split_last().unwrap();
        assert!(others.iter().all(|entry| entry.runs == full.runs));
        assert_eq!((last.runs.rows(), last.runs.omitted()), (0, 512));
        journal.add(full.clone());
        assert_eq!(journal.take().0[0].runs, full.runs, "there is room again");
    }
}
