//! How long a connection may take and how much it may hold.

use std::time::{Duration, Instant};

/// How long a connection may take and how much it may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Time for the TCP connection.
    pub connect: Duration,
    /// Time for the whole TLS handshake, however the peer spreads its bytes.
    pub handshake: Duration,
    /// Time for the next message to begin, and for the peer to take what is sent. To this is added, for a message's bytes,
    /// the time that they take at 64 KiB/s, so that a peer cannot hold a session by sending a byte at a time.
    pub stall: Duration,
    /// Bytes kept of what the peer sends and this party has not read, until
    /// [`Channel::allow_ahead`](lanner_wire::Channel::allow_ahead) says how many the parties' messages need. Beyond it nothing more is read
    /// while this party writes, so that two parties that both write more than this would wait until the stall limit.
    pub backlog: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            handshake: Duration::from_secs(10),
            stall: Duration::from_secs(60),
            backlog: LEAST_BACKLOG,
        }
    }
}

impl Limits {
    /// When a transfer of `bytes` that starts now must be over.
    pub(crate) fn transfer_deadline(&self, bytes: usize) -> Instant {
        Instant::now() + self.transfer_time(bytes)
    }

    /// How long a transfer of `bytes` may take.
    pub(crate) fn transfer_time(&self, bytes: usize) -> Duration {
        self.stall + Duration::from_micros(bytes as u64 * 1_000_000 / SLOWEST_BYTES_PER_SECOND)
    }
}

/// Bytes kept for a peer that is not known yet, and the least for any other.
pub(crate) const LEAST_BACKLOG: usize = 64 << 10;

const SLOWEST_BYTES_PER_SECOND: u64 = 64 << 10;
