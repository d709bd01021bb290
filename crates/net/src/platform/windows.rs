//! Windows: whatever threads wait for is a socket of Winsock.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

/// What a thread that waits is woken by: a byte that is written to one end of a pair comes out of the other.
pub(crate) type Wire = TcpStream;

/// The two ends, over loopback.
///
/// # Errors
/// Any failure of the system; [`io::ErrorKind::ConnectionAborted`] if another program connected in between.
pub(crate) fn wires() -> io::Result<[Wire; 2]> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let one = TcpStream::connect(listener.local_addr()?)?;
    let (other, from) = listener.accept()?;
    if from != one.local_addr()? {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    for end in [&one, &other] {
        end.set_nodelay(true)?;
    }
    Ok([one, other])
}

/// Nothing: sleeps end with the system's clock.
pub(crate) const fn sleep_precisely() {}
