//! How a party must end under an attack.

use std::fmt;

use lanner_ot::OtError;
use lanner_session::executor::ExecutionError;
use lanner_session::handshake::HandshakeError;
use lanner_step::ProtocolError;
use lanner_wire::{ChannelError, Kind};

/// How a party must end under an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It refuses a message by its header, where one of this kind was due.
    Unexpected(Kind),
    /// It refuses what a message says.
    Malformed,
    /// It waits for its time limit.
    TimedOut,
    /// It finds the connection closed.
    Disconnected,
    /// It takes the peer's refusal.
    Refused,
    /// It finds that the peer's transfers contradict each other.
    Dishonest,
    /// It goes on to the end: nothing in a semi-honest protocol tells the message from an honest one, and the result is worthless.
    Unnoticed,
    /// [`Self::Malformed`] or [`Self::Unnoticed`], as chance has it.
    Either,
    /// [`Self::Malformed`] or [`Self::Dishonest`], as chance has it.
    Caught,
}

impl Verdict {
    /// Whether a conversation that ended so was attacked in this way.
    #[must_use]
    pub fn allows(self, failure: Option<&Failure>) -> bool {
        match (self, failure.map(|failure| failure.cause)) {
            (Self::Unnoticed | Self::Either, None)
            | (Self::Either | Self::Caught, Some(Cause::Malformed(_)))
            | (Self::Caught, Some(Cause::Dishonest))
            // A garbled circuit on wrong labels gives random bits, which may be no class's index.
            | (Self::Unnoticed, Some(Cause::Malformed("garbled tables"))) => true,
            (verdict, Some(cause)) => cause.verdict() == Some(verdict),
            (_, None) => false,
        }
    }
}

/// Why a party ended.
pub struct Failure {
    /// The channel's part in it.
    pub cause: Cause,
    text: String,
}

/// What a party found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Another message than that of this kind.
    Unexpected(Kind),
    /// A message that does not decode.
    Malformed(&'static str),
    /// Silence.
    TimedOut,
    /// The end of the connection.
    Disconnected,
    /// The peer's refusal.
    Refused,
    /// Transfers that contradict each other.
    Dishonest,
    /// Anything else.
    Other,
}

impl Cause {
    fn of(error: &ChannelError) -> Self {
        match error {
            ChannelError::Unexpected { expected, .. } => Self::Unexpected(*expected),
            ChannelError::Malformed { what } => Self::Malformed(what),
            ChannelError::TimedOut => Self::TimedOut,
            ChannelError::Disconnected => Self::Disconnected,
            ChannelError::Refused(_) => Self::Refused,
            _ => Self::Other,
        }
    }

    const fn verdict(self) -> Option<Verdict> {
        match self {
            Self::Unexpected(due) => Some(Verdict::Unexpected(due)),
            Self::Malformed(_) => Some(Verdict::Malformed),
            Self::TimedOut => Some(Verdict::TimedOut),
            Self::Disconnected => Some(Verdict::Disconnected),
            Self::Refused => Some(Verdict::Refused),
            Self::Dishonest => Some(Verdict::Dishonest),
            Self::Other => None,
        }
    }
}

impl Failure {
    fn new(error: &impl fmt::Display, channel: Option<&ChannelError>) -> Self {
        Self { cause: channel.map_or(Cause::Other, Cause::of), text: error.to_string() }
    }

    /// The same, if the peer's transfers were found to contradict each other or not.
    fn of_peer(self, is_dishonest: bool) -> Self {
        if is_dishonest { Self { cause: Cause::Dishonest, ..self } } else { self }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<ExecutionError> for Failure {
    fn from(error: ExecutionError) -> Self {
        Self::new(&error, error.channel()).of_peer(error.is_dishonest())
    }
}

impl From<OtError> for Failure {
    fn from(error: OtError) -> Self {
        let channel = if let OtError::Channel(channel) = &error { Some(channel) } else { None };
        Self::new(&error, channel).of_peer(matches!(error, OtError::Dishonest { .. }))
    }
}

impl From<ProtocolError> for Failure {
    fn from(error: ProtocolError) -> Self {
        Self::new(&error, error.channel()).of_peer(error.is_dishonest())
    }
}

impl From<HandshakeError> for Failure {
    fn from(error: HandshakeError) -> Self {
        let channel = if let HandshakeError::Channel(channel) = &error { Some(channel) } else { None };
        Self::new(&error, channel)
    }
}

/// A well-formed message with other content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Every bit 0.
    Zeros,
    /// Every bit 1.
    Ones,
    /// Uniform bytes.
    Noise,
    /// One bit flipped.
    Flip,
}

/// What a message is made of, as far as a decoder can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WeightForm {
    /// Points of the sender of base transfers, which may not be the identity: all zeros.
    SenderPoints,
    /// Pairs of points of the receiver.
    Points,
    /// The same, in a session in which the victim completes silent trees: other keys than the peer's give other trees.
    PointsOfTrees,
    /// One of a few codes, of which not all are spoken in the sessions that are changed, or counts of predictions, or which
    /// half of a key's commitments are opened.
    Request,
    /// A name of kept material, the hash of an upload, or a chunk of it: another is refused, the session goes on, and what follows is no
    /// request.
    Name,
    /// How many bytes a server holds of an upload: fewer than there are in all.
    Held,
    /// Names and proofs of pairings, or which of them holds: what follows a wrong one is out of turn.
    Proof,
    /// Values below a modulus: all ones are none, other bytes may be.
    Residues,
    /// Bits, or elements of a ring of a power of two: those that fill up the last byte must be 0.
    Bits,
    /// Sums of trees, corrections and proofs of transfers, and salts of those that silent trees are made of: any others fail a check, that of
    /// the first batch or the first silent trees at the latest.
    Checked,
    /// A key and what proves it: any other fails the proof, or does not decode.
    Proven,
    /// Bits that a check binds: those that fill up the last byte must be 0.
    Committed,
    /// Salts, seeds, corrections, masked messages, tables, labels: uniform bytes that nothing binds.
    Opaque,
}

impl WeightForm {
    /// The form of a kind; none for those of the handshake, which have a test of their own.
    ///
    /// # Panics
    /// For a kind that is not known here: whoever adds one says what becomes of it.
    fn of(kind: Kind, has_modulus: bool, before_trees: bool) -> Option<Self> {
        Some(match kind.0 {
            0..=8 => return None,
            0x11 if before_trees => Self::PointsOfTrees,
            0x12 if before_trees => Self::Checked,
            0x10 => Self::SenderPoints,
            0x11 => Self::Points,
            0x20 | 0x28 | 0x29 | 0x92 => Self::Request,
            0x21 | 0x25 | 0x27 => Self::Name,
            0x26 => Self::Held,
            0x23 | 0x24 => Self::Proof,
            0x17 | 0x30 | 0x31 | 0x40 | 0x41 | 0x43 | 0x61 | 0x62 if has_modulus => Self::Residues,
            0x15
            | 0x17
            | 0x22
            | 0x40
            | 0x41
            | 0x43
            | 0x44
            | 0x51
            | 0x52
            | 0x60..=0x62
            | 0x70..=0x76
            | 0x79
            | 0x7a
            | 0x95
            | 0x98 => Self::Bits,
            0x80 | 0x81 | 0x96 => Self::Residues,
            0x13 | 0x14 | 0x16 | 0x18 | 0x9a => Self::Checked,
            0x12 | 0x31 | 0x32 | 0x42 | 0x50 | 0x53 | 0x77 | 0x78 | 0x90 | 0x94 | 0x99 => Self::Opaque,
            0x91 | 0x93 => Self::Proven,
            0x97 => Self::Committed,
            kind => panic!("what becomes of a changed message of kind {kind:02x}?"),
        })
    }

    const fn verdict(self, change: Content) -> Verdict {
        match (self, change) {
            (Self::Checked, _) | (Self::PointsOfTrees | Self::Committed, Content::Zeros) => {
                Verdict::Dishonest
            }
            (Self::Name, _) => Verdict::Unexpected(Kind(0x20)),
            // A point that decodes gives the victim other keys, and they other trees.
            (Self::SenderPoints | Self::PointsOfTrees, Content::Flip)
            | (Self::Committed | Self::Proven, _) => Verdict::Caught,
            // A bit may fall on an entry that no pairing has.
            (Self::Proof, Content::Flip) => Verdict::Either,
            (Self::SenderPoints, Content::Zeros)
            | (
                Self::SenderPoints | Self::Points | Self::PointsOfTrees | Self::Held,
                Content::Ones | Content::Noise,
            )
            | (Self::Request | Self::Proof, _)
            | (Self::Residues, Content::Ones) => Verdict::Malformed,
            (Self::Opaque, _) | (_, Content::Zeros) => Verdict::Unnoticed,
            _ => Verdict::Either,
        }
    }
}

/// What a party makes of a message whose content alone is wrong, if it hears silent trees later or not; none for those of the handshake.
#[must_use]
pub fn content(kind: Kind, has_modulus: bool, before_trees: bool, change: Content) -> Option<Verdict> {
    WeightForm::of(kind, has_modulus, before_trees).map(|form| form.verdict(change))
}

/// Whether a check covers messages of a kind: another session's fail it, whatever else is wrong with them.
#[must_use]
pub fn is_checked(kind: Kind) -> bool {
    WeightForm::of(kind, false, true) == Some(WeightForm::Checked)
}
