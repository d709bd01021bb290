//! What a protocol sends, known from public parameters alone.

use serde::Serialize;

use crate::Party;

/// The bytes and rounds of a protocol's messages in one phase: payloads with their frames, without what a transport adds.
///
/// A round is a message of the client's that it sends before it waits for the server. A message that ends a protocol
/// unanswered makes a round with the wait of the protocol after it: costs add up with [`Cost::then`], not by fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    client_bytes: u64,
    server_bytes: u64,
    rounds: u64,
    #[serde(skip)]
    turns: Option<Turns>,
}

/// Who speaks first and last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turns {
    first: Party,
    last: Party,
}

impl Cost {
    /// No message at all.
    pub const NONE: Self = Self { client_bytes: 0, server_bytes: 0, rounds: 0, turns: None };

    /// Bytes that the client sends.
    #[must_use]
    pub const fn client_bytes(self) -> u64 {
        self.client_bytes
    }

    /// Bytes that the server sends.
    #[must_use]
    pub const fn server_bytes(self) -> u64 {
        self.server_bytes
    }

    /// Bytes that either sends.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.client_bytes + self.server_bytes
    }

    /// Messages of the client's, or runs of them, that it waits for an answer to.
    #[must_use]
    pub const fn rounds(self) -> u64 {
        self.rounds
    }

    /// This cost, then a message of the client's.
    #[must_use]
    pub fn client(self, payload: usize) -> Self {
        self.then(Self::message(Party::Client, payload as u64, 1))
    }

    /// This cost, then a message of the server's.
    #[must_use]
    pub fn server(self, payload: usize) -> Self {
        self.then(Self::message(Party::Server, payload as u64, 1))
    }

    /// This cost, then that of an oblivious transfer in which the server is the sender and the client speaks first.
    #[must_use]
    pub fn transfer(self, cost: lanner_ot::Cost) -> Self {
        self.then(Self::message(Party::Client, cost.receiver_bytes, cost.receiver_messages))
            .then(Self::message(Party::Server, cost.sender_bytes, cost.sender_messages))
    }

    /// This cost, then that of an oblivious transfer in which the client is the sender.
    #[must_use]
    pub fn offer(self, cost: lanner_ot::Cost) -> Self {
        self.then(Self::message(Party::Server, cost.receiver_bytes, cost.receiver_messages))
            .then(Self::message(Party::Client, cost.sender_bytes, cost.sender_messages))
    }

    /// This cost, then `next`.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            client_bytes: self.client_bytes + next.client_bytes,
            server_bytes: self.server_bytes + next.server_bytes,
            rounds: self.rounds + next.after(self).rounds,
            turns: match (self.turns, next.turns) {
                (Some(Turns { first, .. }), Some(Turns { last, .. })) => Some(Turns { first, last }),
                (turns, None) | (None, turns) => turns,
            },
        }
    }

    /// This cost where `earlier` came before it: with one more round if the client has yet to wait for what it sent last.
    #[must_use]
    pub fn after(self, earlier: Self) -> Self {
        let (last, first) = (earlier.turns.map(|turns| turns.last), self.turns.map(|turns| turns.first));
        let waits = (last, first) == (Some(Party::Client), Some(Party::Server));
        Self { rounds: self.rounds + u64::from(waits), ..self }
    }

    /// Both costs, where the messages of others lie between them: the rounds of each are counted alone.
    #[must_use]
    pub fn beside(self, other: Self) -> Self {
        Self {
            client_bytes: self.client_bytes + other.client_bytes,
            server_bytes: self.server_bytes + other.server_bytes,
            rounds: self.rounds + other.rounds,
            ..self.then(other)
        }
    }

    fn message(party: Party, payload: u64, messages: u64) -> Self {
        if messages == 0 {
            return Self::NONE;
        }
        let bytes = payload + FRAME * messages;
        let turns = Some(Turns { first: party, last: party });
        match party {
            Party::Client => Self { client_bytes: bytes, turns, ..Self::NONE },
            Party::Server => Self { server_bytes: bytes, turns, ..Self::NONE },
        }
    }
}

/// The cost of an offline phase in its two halves: those of other layers may lie between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfflineCost {
    /// What the client sends to begin with.
    pub request: Cost,
    /// What the server answers.
    pub answer: Cost,
}

/// Bytes of a frame beside its payload: four of length, two of kind.
const FRAME: u64 = 6;

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn a_round_is_a_wait_after_sending() {
        let question = Cost::NONE.client(10).client(4);
        assert_eq!((question.client_bytes(), question.server_bytes(), question.rounds()), (26, 0, 0));
        let answer = Cost::NONE.server(1).server(0);
        assert_eq!((answer.bytes(), answer.rounds()), (13, 0));
        assert_eq!(question.then(answer).rounds(), 1);
        assert_eq!(answer.then(question).rounds(), 0);
        assert_eq!(answer.then(question).then(Cost::NONE).then(answer).rounds(), 1);
        assert_eq!(answer.after(question).rounds(), 1);
    }
}
