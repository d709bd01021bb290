//! The bytes of a WebSocket: those of its binary messages, one after the other.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

use rustls::{ServerConnection, StreamOwned};
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Bytes, Error, Message, WebSocket};

use crate::meter::Meter;

/// What a WebSocket runs over: TCP, or TLS under a certificate that browsers know.
pub(crate) enum Ground {
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Ground {
    pub(crate) const fn tcp(&self) -> &TcpStream {
        match self {
            Self::Tcp(stream) => stream,
            Self::Tls(stream) => &stream.sock,
        }
    }
}

impl Read for Ground {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Ground {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// Counts what crosses the ground.
struct Counted {
    ground: Ground,
    meter: Meter,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.ground.read(buffer)?;
        self.meter.add_received(count);
        Ok(count)
    }
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.ground.write(bytes)?;
        self.meter.add_sent(count);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.ground.flush()
    }
}

/// The server's end of a WebSocket, as bytes. Its socket is not blocking, and so are its reads and writes.
pub struct WebLine {
    socket: WebSocket<Counted>,
    /// What of the last message is not read yet.
    rest: Bytes,
    /// Whether something was written that is not flushed.
    unflushed: bool,
    meter: Meter,
}

impl WebLine {
    /// A WebSocket whose upgrade was answered; `behind` is what came behind the request for it.
    pub(crate) fn new(ground: Ground, behind: Vec<u8>, meter: Meter) -> Self {
        let config = WebSocketConfig::default()
            .max_message_size(Some(MOST_OF_A_MESSAGE))
            .max_frame_size(Some(MOST_OF_A_MESSAGE))
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(0)
            .max_write_buffer_size(4 * WRITTEN_AT_ONCE);
        let counted = Counted { ground, meter: meter.clone() };
        let socket = WebSocket::from_partially_read(counted, behind, Role::Server, Some(config));
        Self { socket, rest: Bytes::new(), unflushed: false, meter }
    }

    pub(crate) fn tcp(&self) -> &TcpStream {
        self.socket.get_ref().ground.tcp()
    }

    pub(crate) fn meter(&self) -> Meter {
        self.meter.clone()
    }

    /// Says that nothing more comes.
    pub(crate) fn say_end(&mut self) {
        // The peer may be gone, or take nothing: the end of the connection says the same.
        let _ = self.socket.close(None);
        let _ = self.socket.flush();
    }

    /// Hands what was written to the socket.
    pub(crate) fn flush_written(&mut self) -> io::Result<()> {
        if self.unflushed {
            self.socket.flush().map_err(io_error)?;
            self.unflushed = false;
        }
        Ok(())
    }
}

impl Read for WebLine {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.socket.read() {
                Ok(Message::Binary(bytes)) => self.rest = bytes,
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(Message::Close(_)) | Err(Error::ConnectionClosed | Error::AlreadyClosed) => return Ok(0),
                Ok(Message::Text(_) | Message::Frame(_)) => {
                    return Err(io::Error::new(
                        ErrorKind::InvalidData,
                        "a WebSocket message that is not binary",
                    ));
                }
                Err(error) => return Err(io_error(error)),
            }
        }
        let count = buffer.len().min(self.rest.len());
        buffer[..count].copy_from_slice(&self.rest.split_to(count));
        Ok(count)
    }
}

impl Write for WebLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[io::IoSlice::new(bytes)])
    }

    /// One message of all that comes at once, once the last one is gone.
    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.flush_written()?;
        let mut message = Vec::new();
        for slice in slices {
            let room = WRITTEN_AT_ONCE - message.len();
            message.extend_from_slice(&slice[..slice.len().min(room)]);
        }
        let count = message.len();
        self.unflushed = true;
        match self.socket.write(Message::binary(message)) {
            Ok(()) => Ok(count),
            // It is kept, and goes with the next flush.
            Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => Ok(count),
            Err(error) => Err(io_error(error)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush_written()
    }
}

fn io_error(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::ConnectionClosed | Error::AlreadyClosed => ErrorKind::BrokenPipe.into(),
        Error::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake) => {
            ErrorKind::ConnectionReset.into()
        }
        error => io::Error::new(ErrorKind::InvalidData, format!("WebSocket: {error}")),
    }
}

/// Bytes of a message that a peer may send: a client sends its in pieces that are smaller.
pub(crate) const MOST_OF_A_MESSAGE: usize = 1 << 20;
/// Bytes that go in one message.
const WRITTEN_AT_ONCE: usize = 1 << 18;
/// Bytes of one read.
const READ_BUFFER: usize = 64 << 10;
