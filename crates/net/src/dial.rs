//! Opening a TCP connection.

use std::io;
use std::net::TcpStream;
use std::time::Instant;

use crate::{Address, Limits, NetError};

/// Opens a TCP connection to the first of the host's addresses that answers.
pub(crate) fn open(address: &Address, limits: Limits) -> Result<TcpStream, NetError> {
    let deadline = Instant::now() + limits.connect;
    let mut last = io::Error::from(io::ErrorKind::TimedOut);
    for candidate in address.resolve()? {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(&candidate, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(NetError::Connect { address: address.to_string(), source: last })
}
