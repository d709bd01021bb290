//! What a client asks of a session after the handshake: material ahead of time, predictions, the end.
//!
//! The client leads. Each request is one byte; both parties then run the phase it names.
//!
//! ```text
//! C                                 S
//! set up             -->            keys, garbling, transfers: once, before anything is prepared
//! prepare            -->            offline phase of one prediction, for this session
//! predict            -->            online phase, with the oldest of it
//! predict unprepared -->            both phases of one prediction, run by run
//! together, how many -->            predictions and preparations for others, all at once, on lanes of the connection
//!                    <--            how many are prepared, and how many may run at once the next time, on the last lane
//!
//! resume, pairings   -->
//!                    <--            the first that it knows, and a proof
//! pair               -->            keeps keys and a secret
//!                    <--            ready, or refused
//! set up again       -->            reads the pairing's keys
//!                    <--            ready, or refused;  set-up without keys
//! set up, hash       -->            keys that were or are uploaded; set-up without keys, or refused
//! keep               -->            offline phase of one prediction, kept by both parties for any session
//! predict kept, name -->            online phase, with what was kept
//! end                -->
//! ```
//!
//! What is prepared lives in the session: first made first used, and what was taken is gone whether or not the prediction succeeds. What is
//! kept lives in both parties' [`Stock`](lanner_store::Stock)s; using it takes no set-up, only a channel. A refusal of pairing, keys or
//! material gives the reason [`Refusal::Material`] and the session goes on.

mod keys;
mod pairing;
mod queue;
mod requester;
#[cfg(not(target_family = "wasm"))]
mod responder;
mod shelf;
mod unread;
mod upload;

use lanner_plan::Ahead;
use lanner_step::Cost;
use lanner_store::MaterialId;
use lanner_wire::{Channel, ChannelError, Kind, Refusal};

pub use keys::OwnKeys;
pub use queue::{MAX_PREPARED, MAX_PREPARED_BYTES, MAX_TOGETHER, most_together};
pub use requester::Requester;
#[cfg(not(target_family = "wasm"))]
pub use responder::{Responder, Room};
pub use shelf::{Meeting, Shelf};
pub use unread::Unread;

use crate::executor::ExecutionError;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Material for one prediction.
    Prepare,
    /// A prediction with the oldest material.
    Predict,
    /// A prediction without material, which is made run by run, each just before it is used.
    PredictUnprepared,
    /// The end of the session.
    End,
    /// Material for one prediction, kept by both parties for any session.
    Keep,
    /// A prediction with the kept material of this name.
    PredictKept(MaterialId),
    /// Keys, garbling and transfers.
    SetUp,
    /// The same with the pairing's keys.
    SetUpAgain,
    /// A pairing.
    Pair,
    /// The pairing of an earlier session.
    Resume,
    /// Garbling and transfers, with keys that are uploaded and have this hash.
    SetUpUploaded([u8; 32]),
    /// At once: predictions with the oldest material, each of an input of its own, and as much material for others as there is room for.
    Together {
        /// 1, or up to as many as the server said the last time; for each of the material that was used since, one fewer.
        predictions: u8,
        /// Up to [`MAX_TOGETHER`].
        preparations: u8,
    },
}

impl Request {
    const fn code(self) -> u8 {
        match self {
            Self::Prepare => 1,
            Self::Predict => 2,
            Self::End => 3,
            Self::Keep => 4,
            Self::PredictKept(_) => 5,
            Self::SetUp => 6,
            Self::SetUpAgain => 7,
            Self::Pair => 8,
            Self::Resume => 9,
            Self::SetUpUploaded(_) => 10,
            Self::Together { .. } => 11,
            Self::PredictUnprepared => 12,
        }
    }

    /// What a request that is one byte sends.
    #[must_use]
    pub fn cost() -> Cost {
        Cost::NONE.client(1)
    }

    /// Asks, and lets the server be ahead as far as the answer wants.
    fn send(self, channel: &mut dyn Channel, ahead: &Ahead) -> Result<(), ChannelError> {
        channel.allow_ahead(unread::backlog(ahead, self));
        channel.send(REQUEST, &[self.code()])?;
        match self {
            Self::PredictKept(id) => channel.send(KEPT_NAME, id.as_bytes()),
            Self::SetUpUploaded(hash) => channel.send(UPLOAD_HASH, &hash),
            Self::Together { predictions, preparations } => {
                channel.send(TOGETHER, &[predictions, preparations])
            }
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
            6 => Self::SetUp,
            7 => Self::SetUpAgain,
            8 => Self::Pair,
            9 => Self::Resume,
            10 => {
                let mut hash = [0; 32];
                channel.receive_into(UPLOAD_HASH, &mut hash)?;
                Self::SetUpUploaded(hash)
            }
            11 => {
                let mut counts = [0; 2];
                channel.receive_into(TOGETHER, &mut counts)?;
                let [predictions, preparations] = counts;
                Self::Together { predictions, preparations }
            }
            12 => Self::PredictUnprepared,
            _ => return Err(ChannelError::Malformed { what: "request" }),
        })
    }
}

/// Tells the client that the server goes on.
fn say_ready(channel: &mut dyn Channel) -> Result<(), ExecutionError> {
    channel.send(READY, &[])?;
    Ok(channel.flush()?)
}

/// Waits until the server goes on; whether it does.
fn is_ready(channel: &mut dyn Channel) -> Result<bool, ChannelError> {
    match channel.receive_into(READY, &mut []) {
        Err(ChannelError::Refused(Refusal::Material)) => Ok(false),
        heard => heard.map(|()| true),
    }
}

const REQUEST: Kind = Kind(0x20);
const KEPT_NAME: Kind = Kind(0x21);
const READY: Kind = Kind(0x22);
const PAIRINGS: Kind = Kind(0x23);
const RESUMED: Kind = Kind(0x24);
const UPLOAD_HASH: Kind = Kind(0x25);
const UPLOAD_HELD: Kind = Kind(0x26);
const UPLOAD_CHUNK: Kind = Kind(0x27);
const TOGETHER: Kind = Kind(0x28);
/// How many predictions are prepared, and how many may run at once the next time.
const PREPARED: Kind = Kind(0x29);
