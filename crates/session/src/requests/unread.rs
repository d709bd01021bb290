//! How much of what the peer sends may lie unread while a request is served: from the plan, with what frames and records add.

use lanner_net::MOST_KEPT;
use lanner_plan::Ahead;
use lanner_step::{Cost, Party};

use super::Request;

/// Bytes that may lie unread while this party writes, in a request. See [`Ahead`] for why no party ever waits for the other.
pub(super) fn backlog(ahead: &Ahead, request: Request) -> usize {
    let bytes = match request {
        Request::SetUp | Request::SetUpAgain | Request::SetUpUploaded(_) => with_records(ahead.setup, 0),
        Request::Prepare | Request::Keep => with_records(ahead.offline, 0),
        Request::Predict | Request::PredictKept(_) => with_records(ahead.online, 0),
        Request::PredictUnprepared => with_records(ahead.offline.max(ahead.online), 0),
        Request::Together { predictions, preparations } => shared(together(ahead, predictions, preparations)),
        Request::Pair | Request::Resume | Request::End => 0,
    };
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Bytes that a party keeps for predictions, and preparations for others, that share the connection: at most all that its peer sends.
pub(super) fn kept(ahead: &Ahead, predictions: u8, preparations: u8, party: Party) -> usize {
    let cost = together(ahead, predictions, preparations);
    let comes = match party {
        Party::Client => cost.server_bytes(),
        Party::Server => cost.client_bytes(),
    };
    usize::try_from(comes).unwrap_or(usize::MAX).min(MOST_KEPT)
}

/// Bytes that a server may have to keep unread of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Whatever the client asks for, as long as it is one thing, or one prediction beside preparations that are counted on their own.
    pub session: u64,
    /// For each prediction more that shares the connection.
    pub prediction: u64,
    /// For each preparation that shares it.
    pub preparation: u64,
}

impl Unread {
    /// What follows from a plan.
    #[must_use]
    pub fn of(ahead: &Ahead) -> Self {
        // Twice: before the connection's bytes are dealt out to the lanes, and after it.
        let of =
            |cost: Cost| with_records(cost.client_bytes(), cost.rounds()).saturating_add(cost.client_bytes());
        let first = shared(ahead.online_total) + ahead.online_total.client_bytes().min(MOST_KEPT as u64);
        Self {
            session: with_records(ahead.most(), 0).max(first),
            prediction: of(ahead.online_total),
            preparation: of(ahead.offline_total),
        }
    }
}

/// What predictions send that run at once, and preparations beside them.
fn together(ahead: &Ahead, predictions: u8, preparations: u8) -> Cost {
    let times = |count: u8, cost: Cost| (0..count).fold(Cost::NONE, |sum, _| sum.beside(cost));
    times(predictions, ahead.online_total).beside(times(preparations, ahead.offline_total))
}

/// The bytes of the party that sends fewer, on lanes.
fn shared(cost: Cost) -> u64 {
    with_records(cost.client_bytes().min(cost.server_bytes()), cost.rounds())
}

/// Bytes of messages with what frames of lanes and TLS records add, and a session's small messages.
fn with_records(bytes: u64, rounds: u64) -> u64 {
    bytes.saturating_add(bytes / 32).saturating_add(rounds.saturating_mul(ROUND)).saturating_add(SMALL)
}

/// What the message of a round takes more on a lane: a chunk's frame and the header and the tag of a record, with room for a part of it more.
const ROUND: u64 = 64;
/// Requests and their answers, records of small messages, and an iteration of silent transfers that begins.
const SMALL: u64 = 256 << 10;
