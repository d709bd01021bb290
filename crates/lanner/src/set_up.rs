//! How far a set-up has come, for whoever looks while a client is made.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use lanner_net::Meter;
use lanner_session::executor::{ClientPlan, SetUpPart};
use serde::Serialize;

/// Looks at a client while it is made; where it is used for another one, at that. Looking waits for no part to end.
#[derive(Clone, Default)]
pub struct SetUpWatch(Arc<Mutex<Reached>>);

/// One part of the way from an address to a session: the connection, the model, keys, transfers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartProgress {
    /// `connection`, `model`, `keys` or `transfers`.
    pub name: String,
    /// Whether it was begun.
    pub begun: bool,
    /// Whether it has ended.
    pub ended: bool,
    /// Seconds that it took, so far.
    pub seconds: f64,
    /// Bytes in both directions, so far.
    pub bytes: u64,
    /// Bytes that it takes at most, but for what the transport adds; none where that is not known, or next to nothing.
    pub expected_bytes: Option<u64>,
}

/// What was reached on the way, and when.
#[derive(Default)]
struct Reached {
    begun: Option<Instant>,
    connected: Option<Connected>,
    agreed: Option<Agreed>,
}

struct Connected {
    at: Instant,
    bytes: u64,
    meter: Meter,
}

struct Agreed {
    at: Instant,
    bytes: u64,
    plan: Arc<ClientPlan>,
}

impl SetUpWatch {
    /// All parts in order, those that were not begun too.
    #[must_use]
    pub fn parts(&self) -> Vec<PartProgress> {
        let reached = self.reached();
        let connection =
            reached.part("connection", reached.begun, 0, reached.connected.as_ref().map(|c| (c.at, c.bytes)));
        let (since, before) = reached.connected.as_ref().map_or((None, 0), |c| (Some(c.at), c.bytes));
        let model = reached.part("model", since, before, reached.agreed.as_ref().map(|a| (a.at, a.bytes)));
        [connection, model].into_iter().chain(reached.parts_of_session()).collect()
    }

    /// A client is being made.
    pub(crate) fn begin(&self) {
        *self.reached() = Reached { begun: Some(Instant::now()), ..Reached::default() };
    }

    /// There is a connection, which is secured.
    pub(crate) fn connected(&self, meter: Meter) {
        self.reached().connected = Some(Connected { at: Instant::now(), bytes: total(&meter), meter });
    }

    /// The model is known, and ready to be asked.
    pub(crate) fn agreed(&self, plan: &Arc<ClientPlan>) {
        let mut reached = self.reached();
        let bytes = reached.bytes();
        reached.agreed = Some(Agreed { at: Instant::now(), bytes, plan: Arc::clone(plan) });
    }

    fn reached(&self) -> MutexGuard<'_, Reached> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reached {
    /// Bytes that have crossed the connection.
    fn bytes(&self) -> u64 {
        self.connected.as_ref().map_or(0, |connected| total(&connected.meter))
    }

    /// A part that was begun at a time, with so many bytes before it, and has ended at another, or runs.
    fn part(
        &self,
        name: &str,
        begun: Option<Instant>,
        before: u64,
        ended: Option<(Instant, u64)>,
    ) -> PartProgress {
        let (now, bytes) = ended.unwrap_or_else(|| (Instant::now(), self.bytes()));
        PartProgress {
            name: name.to_owned(),
            begun: begun.is_some(),
            ended: ended.is_some(),
            seconds: begun.map_or(0.0, |begun| (now - begun).as_secs_f64()),
            bytes: bytes.saturating_sub(before),
            expected_bytes: None,
        }
    }

    /// The parts of the set-up proper. What those that have ended took, the session has counted; the one that runs took what is left.
    fn parts_of_session(&self) -> Vec<PartProgress> {
        let Some(Agreed { at, bytes, plan }) = &self.agreed else {
            return SetUpPart::ALL.map(|part| self.part(part.name(), None, self.bytes(), None)).into();
        };
        let expected =
            plan.set_up().encoded_keys_len().ok().filter(|bytes| *bytes > 0).map(|bytes| bytes as u64);
        let (mut seconds, mut bytes) = (at.elapsed().as_secs_f64(), self.bytes().saturating_sub(*bytes));
        let told = plan.set_up_progress().into_iter().zip(SetUpPart::ALL).map(|(counted, part)| {
            let running = counted.begun > counted.ended;
            let took = if running { (seconds, bytes) } else { (counted.seconds, counted.bytes) };
            seconds = (seconds - took.0).max(0.0);
            bytes = bytes.saturating_sub(took.1);
            PartProgress {
                name: counted.name,
                begun: counted.begun > 0,
                ended: counted.begun > 0 && !running,
                seconds: took.0,
                bytes: took.1,
                expected_bytes: expected.filter(|_| part == SetUpPart::Keys),
            }
        });
        told.collect()
    }
}

fn total(meter: &Meter) -> u64 {
    meter.sent() + meter.received()
}
