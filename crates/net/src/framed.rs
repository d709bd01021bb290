//! Frames over a stream of bytes: the one implementation of [`Channel`] that every transport shares.

use lanner_wire::{Channel, ChannelError, Kind, Refusal, Traffic};

/// A full-duplex stream of bytes to the peer.
///
/// A write never waits for the peer to read on its own behalf: a stream that cannot buffer more reads what the peer
/// sends while it waits, so that two parties that both write do not block each other.
pub trait ByteStream {
    /// Queues bytes.
    ///
    /// # Errors
    /// Any transport failure.
    fn write(&mut self, bytes: &[u8]) -> Result<(), ChannelError>;

    /// Hands everything queued to the transport.
    ///
    /// # Errors
    /// Any transport failure.
    fn flush(&mut self) -> Result<(), ChannelError>;

    /// Reads exactly `buffer.len()` bytes.
    ///
    /// # Errors
    /// Any transport failure; [`ChannelError::TimedOut`] if they do not come in time.
    fn read(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError>;

    /// Bytes handed to the transport so far, with whatever it adds.
    fn sent(&self) -> u64;

    /// Bytes taken from the transport so far, with whatever the peer's transport added.
    fn received(&self) -> u64;
}

/// A [`Channel`] over a [`ByteStream`].
pub struct Framed<S> {
    pub(crate) stream: S,
    /// Bytes of the current frame's body that were not read yet.
    body_left: usize,
    /// Whether something was sent since the last wait for the peer.
    unanswered: bool,
    rounds: u64,
}

impl<S> Framed<S> {
    /// A channel over a stream at the beginning of its first frame.
    #[must_use]
    pub const fn new(stream: S) -> Self {
        Self { stream, body_left: 0, unanswered: false, rounds: 0 }
    }
}

impl<S: ByteStream> Channel for Framed<S> {
    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        let Ok(length) = u32::try_from(payload.len()) else {
            return Err(ChannelError::Transport(format!("a frame of {} bytes is too long", payload.len())));
        };
        let mut header = [0; HEADER_LENGTH];
        header[..4].copy_from_slice(&length.to_le_bytes());
        header[4..].copy_from_slice(&kind.0.to_le_bytes());
        self.unanswered = true;
        let written = self.stream.write(&header).and_then(|()| self.stream.write(payload));
        written.map_err(|error| self.explain(error))
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        self.stream.flush().map_err(|error| self.explain(error))
    }

    fn receive_header(&mut self) -> Result<(Kind, usize), ChannelError> {
        if self.body_left != 0 {
            // The last frame was refused half-read: what follows on the stream has no meaning.
            return Err(ChannelError::Malformed {
                what: "channel: the last message was not read to its end",
            });
        }
        self.flush()?;
        self.rounds += u64::from(std::mem::take(&mut self.unanswered));
        let mut header = [0; HEADER_LENGTH];
        self.stream.read(&mut header)?;
        let [l0, l1, l2, l3, k0, k1] = header;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let kind = Kind(u16::from_le_bytes([k0, k1]));
        if kind == Kind::REFUSED {
            return Err(ChannelError::Refused(self.read_refusal(length)?));
        }
        self.body_left = length;
        Ok((kind, length))
    }

    fn receive_body(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError> {
        let Some(left) = self.body_left.checked_sub(buffer.len()) else {
            return Err(ChannelError::Malformed { what: "channel: read past the message's end" });
        };
        self.stream.read(buffer)?;
        self.body_left = left;
        Ok(())
    }

    fn traffic(&self) -> Traffic {
        Traffic { sent: self.stream.sent(), received: self.stream.received(), rounds: self.rounds }
    }
}

impl<S: ByteStream> Framed<S> {
    /// A peer that refuses and leaves makes a write fail; its refusal waits to be read.
    fn explain(&mut self, error: ChannelError) -> ChannelError {
        if !matches!(error, ChannelError::Disconnected) || self.body_left != 0 {
            return error;
        }
        let mut header = [0; HEADER_LENGTH];
        match self.stream.read(&mut header) {
            Ok(()) if header == [1, 0, 0, 0, 0, 0] => {
                self.read_refusal(1).map_or(error, ChannelError::Refused)
            }
            _ => error,
        }
    }

    fn read_refusal(&mut self, length: usize) -> Result<Refusal, ChannelError> {
        if length != 1 {
            return Ok(Refusal::Refused);
        }
        let mut code = [0];
        self.stream.read(&mut code)?;
        Ok(Refusal::from_code(code[0]))
    }
}

/// Four bytes of length, two of kind.
const HEADER_LENGTH: usize = 6;
