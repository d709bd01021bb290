//! Frames over a stream of bytes: the one implementation of [`Channel`] that every transport shares.

use lanner_wire::{Arrivals, Channel, ChannelError, Divisible, Kind, Refusal, Traffic};

use crate::excerpt::Excerpt;

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

    /// As [`Channel::allow_ahead`].
    fn allow_ahead(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// This stream as one that can be asked without waiting, if it is one.
    fn pollable(&mut self) -> Option<&mut dyn Pollable> {
        None
    }
}

/// A stream that tells what has come without waiting for more.
pub trait Pollable {
    /// Reads what has come, at most `buffer.len()` bytes.
    ///
    /// # Errors
    /// Any transport failure; [`ChannelError::Disconnected`] if nothing comes any more.
    fn read_available(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError>;

    /// As [`Divisible::arrivals`].
    ///
    /// # Errors
    /// Any transport failure.
    fn arrivals(&self) -> Result<Box<dyn Arrivals>, ChannelError>;

    /// As [`Divisible::patience`].
    fn patience(&self, bytes: usize) -> u64;
}

/// A [`Channel`] over a [`ByteStream`].
pub struct Framed<S> {
    pub(crate) stream: S,
    /// What has come of the next frame's header.
    header: [u8; HEADER_LENGTH],
    header_came: usize,
    /// Bytes of the current frame's body that were not read yet.
    body_left: usize,
    /// Whether something was sent since the last wait for the peer.
    unanswered: bool,
    rounds: u64,
    longest: Excerpt,
}

impl<S> Framed<S> {
    /// A channel over a stream at the beginning of its first frame.
    #[must_use]
    pub const fn new(stream: S) -> Self {
        Self {
            stream,
            header: [0; HEADER_LENGTH],
            header_came: 0,
            body_left: 0,
            unanswered: false,
            rounds: 0,
            longest: Excerpt { length: 0, beginning: Vec::new() },
        }
    }

    /// The beginning of the longest message that was sent since this was last asked.
    pub fn take_longest_sent(&mut self) -> Excerpt {
        std::mem::take(&mut self.longest)
    }

    /// Checks that no frame is half read.
    const fn check_between(&self) -> Result<(), ChannelError> {
        if self.body_left == 0 {
            return Ok(());
        }
        // The last frame was refused half-read: what follows on the stream has no meaning.
        Err(ChannelError::Malformed { what: "channel: the last message was not read to its end" })
    }

    /// What is left of the body when `length` bytes more are read.
    fn left_after(&self, length: usize) -> Result<usize, ChannelError> {
        let left = self.body_left.checked_sub(length);
        left.ok_or(ChannelError::Malformed { what: "channel: read past the message's end" })
    }
}

impl<S: ByteStream + Send> Channel for Framed<S> {
    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        let Ok(length) = u32::try_from(payload.len()) else {
            return Err(ChannelError::Transport(format!("a frame of {} bytes is too long", payload.len())));
        };
        let mut header = [0; HEADER_LENGTH];
        header[..4].copy_from_slice(&length.to_le_bytes());
        header[4..].copy_from_slice(&kind.0.to_le_bytes());
        self.unanswered = true;
        self.longest.note(payload);
        let written = self.stream.write(&header).and_then(|()| self.stream.write(payload));
        written.map_err(|error| self.explain(error))
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        self.stream.flush().map_err(|error| self.explain(error))
    }

    fn receive_header(&mut self) -> Result<(Kind, usize), ChannelError> {
        self.check_between()?;
        self.flush()?;
        self.rounds += u64::from(std::mem::take(&mut self.unanswered));
        let (kind, length) = self.read_header()?;
        if kind == Kind::REFUSED {
            return Err(ChannelError::Refused(self.read_refusal(length)?));
        }
        self.body_left = length;
        Ok((kind, length))
    }

    fn receive_body(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError> {
        let left = self.left_after(buffer.len())?;
        self.stream.read(buffer)?;
        self.body_left = left;
        Ok(())
    }

    fn traffic(&self) -> Traffic {
        Traffic { sent: self.stream.sent(), received: self.stream.received(), rounds: self.rounds }
    }

    fn allow_ahead(&mut self, bytes: usize) {
        self.stream.allow_ahead(bytes);
    }

    fn divisible(&mut self) -> Option<&mut dyn Divisible> {
        if self.stream.pollable().is_some() { Some(self) } else { None }
    }
}

impl<S: ByteStream + Send> Divisible for Framed<S> {
    fn peek_header(&mut self) -> Result<Option<(Kind, usize)>, ChannelError> {
        self.check_between()?;
        self.header_came +=
            pollable(&mut self.stream)?.read_available(&mut self.header[self.header_came..])?;
        Ok((self.header_came == HEADER_LENGTH).then(|| parse(self.header)))
    }

    fn take_body(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError> {
        self.left_after(buffer.len())?;
        let count = pollable(&mut self.stream)?.read_available(buffer)?;
        self.body_left -= count;
        Ok(count)
    }

    fn arrivals(&mut self) -> Result<Box<dyn Arrivals>, ChannelError> {
        pollable(&mut self.stream)?.arrivals()
    }

    fn patience(&mut self, bytes: usize) -> u64 {
        self.stream.pollable().map_or(0, |stream| stream.patience(bytes))
    }
}

fn pollable<S: ByteStream>(stream: &mut S) -> Result<&mut dyn Pollable, ChannelError> {
    stream.pollable().ok_or_else(|| ChannelError::Transport("a stream that is not divisible".to_owned()))
}

impl<S: ByteStream> Framed<S> {
    /// A peer that refuses and leaves makes a write fail; its refusal waits to be read.
    fn explain(&mut self, error: ChannelError) -> ChannelError {
        if !matches!(error, ChannelError::Disconnected) || self.body_left != 0 {
            return error;
        }
        match self.read_header() {
            Ok((Kind::REFUSED, length)) => self.read_refusal(length).map_or(error, ChannelError::Refused),
            Ok(_) => {
                // It is the next to be received.
                self.header_came = HEADER_LENGTH;
                error
            }
            Err(refused @ ChannelError::Refused(_)) => refused,
            Err(_) => error,
        }
    }

    /// Waits for the rest of the next frame's header, and takes it.
    fn read_header(&mut self) -> Result<(Kind, usize), ChannelError> {
        self.stream.read(&mut self.header[self.header_came..])?;
        self.header_came = 0;
        Ok(parse(self.header))
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

/// A header's kind and length.
const fn parse([l0, l1, l2, l3, k0, k1]: [u8; HEADER_LENGTH]) -> (Kind, usize) {
    (Kind(u16::from_le_bytes([k0, k1])), u32::from_le_bytes([l0, l1, l2, l3]) as usize)
}

/// Four bytes of length, two of kind.
const HEADER_LENGTH: usize = 6;
