//! What sessions need of a transport, beside a channel.

use std::time::Duration;

use lanner_wire::{Channel, ChannelError};

use crate::PeerCertificate;

/// A channel that crosses a network, as far as sessions need to know.
pub trait Transport: Channel + Send {
    /// A value that both ends of this very connection derive, and nobody else: the TLS exporter's. None without TLS.
    fn binding(&self) -> Option<[u8; 32]>;

    /// The certificate that the peer has shown and proved. None without one.
    fn peer_certificate(&self) -> Option<PeerCertificate>;

    /// Changes how long the next message, and the peer taking one, may take.
    fn set_stall_limit(&mut self, limit: Duration);

    /// Writes what is queued and ends this direction, then waits (at most `patience`) until the peer has ended the other,
    /// so that it gets the last message even while it is still sending.
    ///
    /// # Errors
    /// Any transport failure while writing.
    fn close(&mut self, patience: Duration) -> Result<(), ChannelError>;
}
