//! The host's connection as a pipe.

use std::time::Duration;

use lanner_net::Pipe;
use lanner_wire::ChannelError;

use crate::host::{close_connection, open_connection, receive_bytes, send_bytes};
use crate::telling::tell_progress;

/// The host's connection; there is one at a time.
pub(crate) struct HostPipe(());

impl HostPipe {
    /// Opens it; none if the host cannot.
    pub(crate) fn open() -> Option<Self> {
        open_connection().then_some(Self(()))
    }
}

impl Drop for HostPipe {
    fn drop(&mut self) {
        close_connection();
    }
}

impl Pipe for HostPipe {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        if send_bytes(bytes) { Ok(()) } else { Err(ChannelError::Disconnected) }
    }

    fn receive(&mut self, buffer: &mut [u8], patience: Duration) -> Result<usize, ChannelError> {
        tell_progress();
        match receive_bytes(buffer, patience.as_secs_f64() * 1000.0) {
            count @ 1.. => Ok((count as usize).min(buffer.len())),
            -1 => Err(ChannelError::TimedOut),
            _ => Err(ChannelError::Disconnected),
        }
    }
}
