//! The blocking, framed, full-duplex channel between the two parties.

use lanner_process::OtherProcess;
use thiserror::Error;

/// What a message is: part of its frame, checked on receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind(pub u16);

impl Kind {
    /// A peer's refusal; its payload is one [`Refusal`] code.
    pub const REFUSED: Self = Self(0);
}

/// Why a peer refused, as far as it is public.
///
/// After the first ciphertext only [`Refusal::Refused`] is sent, so that no error tells one party about the other's secrets, and
/// [`Refusal::Material`] or [`Refusal::Storage`] in answer to a request for kept material, after which the session goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The wire versions differ.
    Version,
    /// No such model, or its commitment is not the pinned one.
    Model,
    /// The parameter sets differ.
    Parameters,
    /// All sessions are taken.
    Busy,
    /// A message or a request is larger than the server allows.
    Size,
    /// No reason is given.
    Refused,
    /// There is no such material, or none can be kept.
    Material,
    /// What is kept cannot be used for now: the disk fails, or is full.
    Storage,
}

impl Refusal {
    /// The code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Version => 1,
            Self::Model => 2,
            Self::Parameters => 3,
            Self::Busy => 4,
            Self::Size => 5,
            Self::Refused => 6,
            Self::Material => 7,
            Self::Storage => 8,
        }
    }

    /// The refusal of a code; an unknown code is an unexplained refusal.
    #[must_use]
    pub const fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Version,
            2 => Self::Model,
            3 => Self::Parameters,
            4 => Self::Busy,
            5 => Self::Size,
            7 => Self::Material,
            8 => Self::Storage,
            _ => Self::Refused,
        }
    }
}

/// Bytes and rounds on a channel so far, as this party sees them; bytes include frames (and TLS where it is used).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Sends followed by a wait for the peer.
    pub rounds: u64,
}

impl Traffic {
    /// What was added since an earlier reading.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            sent: self.sent - earlier.sent,
            received: self.received - earlier.received,
            rounds: self.rounds - earlier.rounds,
        }
    }
}

/// Why a message could not be exchanged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// The peer's frame is not the one the protocol expects here.
    #[error("message {got:?} of {got_length} bytes where {expected:?} of {expected_length} bytes was due")]
    Unexpected {
        /// The kind that was due.
        expected: Kind,
        /// The length that was due, or the largest allowed.
        expected_length: usize,
        /// The kind that came.
        got: Kind,
        /// The length that came.
        got_length: usize,
    },
    /// The peer's bytes do not decode.
    #[error("malformed {what}")]
    Malformed {
        /// The name of the message or field.
        what: &'static str,
    },
    /// The peer refused.
    #[error("the peer refused: {0:?}")]
    Refused(Refusal),
    /// The connection was closed by the peer.
    #[error("the peer closed the connection")]
    Disconnected,
    /// The peer neither sent what was due nor took what was sent within the allowed time.
    #[error("the peer was silent for the allowed time")]
    TimedOut,
    /// The peer does not accept the certificate of this side, or requires one that was not given.
    #[error("the peer does not accept this side's certificate: {0}")]
    OwnCertificate(String),
    /// The transport failed.
    #[error("transport: {0}")]
    Transport(String),
    /// The connection is another process's, of which this one is a copy. Nothing was sent.
    #[error(transparent)]
    OtherProcess(#[from] OtherProcess),
}

/// A blocking, framed, full-duplex channel to the other party.
///
/// `send` never waits for the peer to receive: frames are queued (bounded by the transport) and written when the queue is
/// full, on [`Channel::flush`], and before any receive.
pub trait Channel {
    /// Queues one message.
    ///
    /// # Errors
    /// Any transport failure.
    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError>;

    /// Writes everything queued.
    ///
    /// # Errors
    /// Any transport failure.
    fn flush(&mut self) -> Result<(), ChannelError>;

    /// Flushes, then reads the next frame's header. A refusal frame is returned as [`ChannelError::Refused`].
    ///
    /// # Errors
    /// Any transport failure or a refusal.
    fn receive_header(&mut self) -> Result<(Kind, usize), ChannelError>;

    /// Reads exactly `buffer.len()` bytes of the body of the frame whose header was read.
    ///
    /// # Errors
    /// Any transport failure.
    fn receive_body(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError>;

    /// Bytes and rounds so far.
    fn traffic(&self) -> Traffic;

    /// Says how many bytes the peer may have sent that this party has not read, while this party writes: beyond them nothing more is read
    /// before what this party writes is written. Whoever runs a protocol over the channel knows how many its messages need; a transport may
    /// keep a few more. One that buffers without bounds, within a process, does not listen.
    fn allow_ahead(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// This channel as one that two exchanges can share, if it is one.
    fn divisible(&mut self) -> Option<&mut dyn Divisible> {
        None
    }

    /// Receives one message of a known kind and exact length into `buffer`.
    ///
    /// # Errors
    /// [`ChannelError::Unexpected`] if the frame differs; any transport failure or refusal.
    fn receive_into(&mut self, kind: Kind, buffer: &mut [u8]) -> Result<(), ChannelError> {
        let header = self.receive_header()?;
        expect(header, kind, buffer.len(), header.1 == buffer.len())?;
        self.receive_body(buffer)
    }

    /// Receives one message of a known kind and exact length; nothing is allocated unless both match.
    ///
    /// # Errors
    /// As [`Channel::receive_into`].
    fn receive(&mut self, kind: Kind, length: usize) -> Result<Vec<u8>, ChannelError> {
        let header = self.receive_header()?;
        expect(header, kind, length, header.1 == length)?;
        let mut payload = vec![0; length];
        self.receive_body(&mut payload)?;
        Ok(payload)
    }

    /// Receives one message of a known kind and at most `limit` bytes: for the handshake, whose lengths vary.
    ///
    /// # Errors
    /// As [`Channel::receive_into`].
    fn receive_bounded(&mut self, kind: Kind, limit: usize) -> Result<Vec<u8>, ChannelError> {
        let header = self.receive_header()?;
        expect(header, kind, limit, header.1 <= limit)?;
        let mut payload = vec![0; header.1];
        self.receive_body(&mut payload)?;
        Ok(payload)
    }
}

/// A channel whose peer can be waited for without holding the channel, so that two exchanges can share it.
pub trait Divisible: Channel + Send {
    /// The header of the next frame if it has come. It stays until [`Channel::receive_header`] takes it.
    ///
    /// # Errors
    /// Any transport failure.
    fn peek_header(&mut self) -> Result<Option<(Kind, usize)>, ChannelError>;

    /// Reads what has come of the body of the frame whose header was taken, without waiting for more. Returns how many bytes that are.
    ///
    /// # Errors
    /// Any transport failure; [`ChannelError::Malformed`] if the body has fewer bytes than `buffer`.
    fn take_body(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError>;

    /// What waits for the peer's bytes while others use the channel.
    ///
    /// # Errors
    /// Any transport failure.
    fn arrivals(&mut self) -> Result<Box<dyn Arrivals>, ChannelError>;

    /// Milliseconds within which `bytes` that are due must come.
    fn patience(&mut self, bytes: usize) -> u64;
}

/// Waits for the bytes of a peer.
pub trait Arrivals: Send + Sync {
    /// Returns when more bytes have come than were taken, when the connection has ended, after [`Self::wake`], or after
    /// so many milliseconds.
    ///
    /// # Errors
    /// Any transport failure.
    fn wait(&self, milliseconds: u64) -> Result<(), ChannelError>;

    /// Ends the wait of another thread, or else the next one.
    fn wake(&self);
}

fn expect(header: (Kind, usize), kind: Kind, length: usize, fits: bool) -> Result<(), ChannelError> {
    if header.0 == kind && fits {
        return Ok(());
    }
    Err(ChannelError::Unexpected {
        expected: kind,
        expected_length: length,
        got: header.0,
        got_length: header.1,
    })
}
