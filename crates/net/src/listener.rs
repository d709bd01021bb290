//! Waits for clients.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use lanner_process::Mark;
use lanner_wire::ChannelError;
use rustix::event::{PollFd, PollFlags};
use rustix::net::{Shutdown, shutdown};

use crate::ready::{await_any, channel_error};
use crate::{Address, NetError};

/// A listening TCP socket whose wait can end without a client.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    mark: Mark,
}

impl Listener {
    /// Listens on an address; port 0 takes a free one.
    ///
    /// # Errors
    /// [`NetError::Listen`] if the address is taken, not of this machine, or no address at all.
    pub fn bind(address: &Address) -> Result<Self, NetError> {
        let failed = |source| NetError::Listen { address: address.to_string(), source };
        let found = address.resolve().map_err(|error| match error {
            // Here no server is to be found at the other end.
            NetError::Resolve { source, .. } => failed(source),
            error => error,
        })?;
        let socket = TcpListener::bind(found.as_slice()).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let local = socket.local_addr().map_err(failed)?;
        Ok(Self { socket, address: local, mark: Mark::here() })
    }

    /// The address listened on, with the port that was taken.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next client, or `None` if none comes for `patience`.
    ///
    /// # Errors
    /// [`ChannelError::OtherProcess`] in a child that `fork` made. A failure of the system, like too many open files: waiting a moment and
    /// trying again is right.
    pub fn accept(&self, patience: Duration) -> Result<Option<(TcpStream, SocketAddr)>, ChannelError> {
        self.mark.check("the server")?;
        if !await_any(&mut [PollFd::new(&self.socket, PollFlags::IN)], patience)? {
            return Ok(None);
        }
        match self.socket.accept() {
            Ok(client) => Ok(Some(client)),
            // A client that left before it was accepted is no failure of the listener.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => {
                Ok(None)
            }
            Err(error) => Err(channel_error(error)),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.mark.is_here() {
            // Children have the socket, too: clients would wait in its queue for as long as one of them lives.
            let _ = shutdown(&self.socket, Shutdown::Both);
        }
    }
}
