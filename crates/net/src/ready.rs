//! Waiting for sockets, and what their errors say of a connection.

use std::io::{self, ErrorKind};
use std::time::Duration;

use lanner_wire::ChannelError;
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

/// Waits for one of some sockets to be as wanted, for `patience` at most; whether one is. A signal ends the wait, too.
pub(crate) fn await_any(sockets: &mut [PollFd<'_>], patience: Duration) -> Result<bool, ChannelError> {
    // Longer than can be said is for ever.
    let timeout = Timespec::try_from(patience).ok();
    match poll(sockets, timeout.as_ref()) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(channel_error(error.into())),
    }
}

/// What an error of a socket says of the connection.
#[allow(clippy::needless_pass_by_value)] // used as the function of `map_err`
pub(crate) fn channel_error(error: io::Error) -> ChannelError {
    match error.kind() {
        ErrorKind::BrokenPipe
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::NotConnected
        | ErrorKind::UnexpectedEof => ChannelError::Disconnected,
        ErrorKind::TimedOut => ChannelError::TimedOut,
        _ => ChannelError::Transport(error.to_string()),
    }
}
