//! Waiting for sockets.

use std::time::Duration;

use lanner_wire::ChannelError;
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

use crate::socket::channel_error;

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
