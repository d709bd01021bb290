//! A channel between two threads of one process, for tests, notebooks and emulated networks.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use lanner_wire::ChannelError;

use crate::framed::{ByteStream, Framed};
use crate::profile::{Link, NetworkProfile};

/// One end of [`pair`]: nothing is encrypted, the queue between the ends is unbounded.
pub type MemoryChannel = Framed<MemoryStream>;

/// Two connected channels.
#[must_use]
pub fn pair() -> (MemoryChannel, MemoryChannel) {
    connected(None)
}

/// Two connected channels with the delay and the bandwidth of a network: what is sent is received as late as over that
/// network.
#[must_use]
pub fn shaped_pair(profile: NetworkProfile) -> (MemoryChannel, MemoryChannel) {
    connected(Some(profile))
}

fn connected(profile: Option<NetworkProfile>) -> (MemoryChannel, MemoryChannel) {
    let (left_sender, right_receiver) = mpsc::channel();
    let (right_sender, left_receiver) = mpsc::channel();
    let link = profile.map(Link::new);
    let left = MemoryStream::new(left_sender, left_receiver, link.clone());
    let right = MemoryStream::new(right_sender, right_receiver, link);
    (Framed::new(left), Framed::new(right))
}

impl MemoryChannel {
    /// Limits how long a receive waits; without it, it waits as long as the peer lives.
    pub const fn set_stall_limit(&mut self, limit: Option<Duration>) {
        self.stream.stall = limit;
    }
}

/// The bytes of a [`MemoryChannel`].
pub struct MemoryStream {
    sender: Sender<Chunk>,
    receiver: Receiver<Chunk>,
    queue: Vec<u8>,
    /// The chunk being read, and how much of it was.
    current: Vec<u8>,
    position: usize,
    link: Option<Link>,
    stall: Option<Duration>,
    sent: u64,
    received: u64,
}

struct Chunk {
    bytes: Vec<u8>,
    /// When the emulated network delivers it.
    arrival: Option<Instant>,
}

impl MemoryStream {
    const fn new(sender: Sender<Chunk>, receiver: Receiver<Chunk>, link: Option<Link>) -> Self {
        Self {
            sender,
            receiver,
            queue: Vec::new(),
            current: Vec::new(),
            position: 0,
            link,
            stall: None,
            sent: 0,
            received: 0,
        }
    }

    fn next_chunk(&mut self) -> Result<(), ChannelError> {
        let chunk = match self.stall {
            None => self.receiver.recv().map_err(|_| ChannelError::Disconnected)?,
            Some(limit) => self.receiver.recv_timeout(limit).map_err(|error| match error {
                RecvTimeoutError::Timeout => ChannelError::TimedOut,
                RecvTimeoutError::Disconnected => ChannelError::Disconnected,
            })?,
        };
        if let Some(arrival) = chunk.arrival {
            std::thread::sleep(arrival.saturating_duration_since(Instant::now()));
        }
        self.current = chunk.bytes;
        self.position = 0;
        Ok(())
    }
}

impl ByteStream for MemoryStream {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        self.queue.extend_from_slice(bytes);
        if self.queue.len() >= QUEUE_LENGTH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        if self.queue.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.queue);
        self.sent += bytes.len() as u64;
        let arrival = self.link.as_mut().map(|link| link.arrival(Instant::now(), bytes.len()));
        self.sender.send(Chunk { bytes, arrival }).map_err(|_| ChannelError::Disconnected)
    }

    fn read(&mut self, mut buffer: &mut [u8]) -> Result<(), ChannelError> {
        while !buffer.is_empty() {
            if self.position == self.current.len() {
                self.next_chunk()?;
            }
            let count = buffer.len().min(self.current.len() - self.position);
            let (filled, rest) = buffer.split_at_mut(count);
            filled.copy_from_slice(&self.current[self.position..self.position + count]);
            self.position += count;
            self.received += count as u64;
            buffer = rest;
        }
        Ok(())
    }

    fn sent(&self) -> u64 {
        self.sent
    }

    fn received(&self) -> u64 {
        self.received
    }
}

/// Bytes queued before they are handed over.
const QUEUE_LENGTH: usize = 1 << 18;
