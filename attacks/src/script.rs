//! Messages as they cross the wire, and a peer that says what it was told to.

use std::thread;
use std::time::Duration;

use lanner_net::{ByteStream, Framed, Pollable};
use lanner_wire::{Arrivals, Channel, ChannelError, Divisible, Kind, Traffic};

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: Kind,
    /// Its bytes.
    pub payload: Vec<u8>,
}

impl Frame {
    /// A message of these bytes.
    pub fn new(kind: u16, payload: impl Into<Vec<u8>>) -> Self {
        Self { kind: Kind(kind), payload: payload.into() }
    }

    /// The header of a message of this kind that claims this length.
    #[must_use]
    pub fn header(kind: Kind, length: u32) -> Vec<u8> {
        [&length.to_le_bytes()[..], &kind.0.to_le_bytes()].concat()
    }

    /// The message with its header.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [Self::header(self.kind, self.payload.len() as u32), self.payload.clone()].concat()
    }
}

/// All of the messages, one after the other.
#[must_use]
pub fn bytes_of(frames: &[Frame]) -> Vec<u8> {
    frames.iter().map(Frame::to_bytes).collect::<Vec<_>>().concat()
}

/// The messages of honest bytes.
#[must_use]
pub fn frames_of(mut bytes: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (kind, rest) = rest.split_first_chunk::<2>().unwrap();
        let (payload, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        frames.push(Frame::new(u16::from_le_bytes(*kind), payload));
        bytes = rest;
    }
    frames
}

/// What a peer does when it has said everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It keeps the connection and says nothing: its victim meets its time limit.
    Silence,
    /// It leaves.
    Departure,
}

/// A peer that says what it was told to, whatever it hears: everything at once, so that no attack takes real time to wait.
pub struct Script {
    bytes: Vec<u8>,
    position: usize,
    end: End,
    heard: u64,
    hasty: bool,
}

impl Script {
    /// A channel to a peer that sends these bytes and then ends.
    #[must_use]
    pub fn channel(bytes: Vec<u8>, end: End) -> Framed<Self> {
        Framed::new(Self { bytes, position: 0, end, heard: 0, hasty: true })
    }

    /// The same to a peer of which nobody can tell that it does not wait for answers.
    #[must_use]
    pub fn patient(bytes: Vec<u8>, end: End) -> Framed<Self> {
        Framed::new(Self { bytes, position: 0, end, heard: 0, hasty: false })
    }
}

impl ByteStream for Script {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        self.heard += bytes.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError> {
        let Some(said) = self.bytes.get(self.position..self.position + buffer.len()) else {
            return Err(match self.end {
                End::Silence => ChannelError::TimedOut,
                End::Departure => ChannelError::Disconnected,
            });
        };
        buffer.copy_from_slice(said);
        self.position += buffer.len();
        Ok(())
    }

    fn sent(&self) -> u64 {
        self.heard
    }

    fn received(&self) -> u64 {
        self.position as u64
    }

    fn pollable(&mut self) -> Option<&mut dyn Pollable> {
        if self.hasty { Some(self) } else { None }
    }
}

impl Pollable for Script {
    fn read_available(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError> {
        let left = &self.bytes[self.position..];
        if left.is_empty() && self.end == End::Departure {
            return Err(ChannelError::Disconnected);
        }
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        self.position += count;
        Ok(count)
    }

    fn arrivals(&self) -> Result<Box<dyn Arrivals>, ChannelError> {
        Ok(Box::new(Nothing))
    }

    fn patience(&self, _bytes: usize) -> u64 {
        0
    }
}

/// What comes when everything was said.
struct Nothing;

impl Arrivals for Nothing {
    fn wait(&self, _milliseconds: u64) -> Result<(), ChannelError> {
        thread::sleep(Duration::from_millis(1));
        Ok(())
    }

    fn wake(&self) {}
}

/// A channel that keeps every message that passes over it.
pub struct Tape<C> {
    channel: C,
    /// What this party sent.
    pub sent: Vec<Frame>,
    /// What this party received.
    pub received: Vec<Frame>,
}

impl<C: Channel> Tape<C> {
    /// Records `channel` from here on.
    pub fn new(channel: C) -> Self {
        Self { channel, sent: Vec::new(), received: Vec::new() }
    }
}

impl<C: Divisible> Channel for Tape<C> {
    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        self.sent.push(Frame { kind, payload: payload.to_vec() });
        self.channel.send(kind, payload)
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        self.channel.flush()
    }

    fn receive_header(&mut self) -> Result<(Kind, usize), ChannelError> {
        let (kind, length) = self.channel.receive_header()?;
        self.received.push(Frame { kind, payload: Vec::new() });
        Ok((kind, length))
    }

    fn receive_body(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError> {
        self.channel.receive_body(buffer)?;
        if let Some(frame) = self.received.last_mut() {
            frame.payload.extend_from_slice(buffer);
        }
        Ok(())
    }

    fn traffic(&self) -> Traffic {
        self.channel.traffic()
    }

    fn allow_ahead(&mut self, bytes: usize) {
        self.channel.allow_ahead(bytes);
    }

    fn divisible(&mut self) -> Option<&mut dyn Divisible> {
        Some(self)
    }
}

impl<C: Divisible> Divisible for Tape<C> {
    fn peek_header(&mut self) -> Result<Option<(Kind, usize)>, ChannelError> {
        self.channel.peek_header()
    }

    fn take_body(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError> {
        let count = self.channel.take_body(buffer)?;
        if let Some(frame) = self.received.last_mut() {
            frame.payload.extend_from_slice(&buffer[..count]);
        }
        Ok(count)
    }

    fn arrivals(&mut self) -> Result<Box<dyn Arrivals>, ChannelError> {
        self.channel.arrivals()
    }

    fn patience(&mut self, bytes: usize) -> u64 {
        self.channel.patience(bytes)
    }
}
