//! Bytes over a socket, in TLS records unless there is no TLS.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use lanner_wire::{Arrivals, ChannelError};
use rustls::Connection;

use crate::framed::{ByteStream, Pollable};
use crate::ready::channel_error;
use crate::socket::{Socket, SocketArrivals};
use crate::tls::{BINDING_LABEL, tls_error};
use crate::{Meter, NetError, PeerCertificate};

/// The bytes of a [`TcpChannel`](crate::TcpChannel).
pub struct TcpBytes {
    socket: Socket,
    tls: Option<Connection>,
    /// Bytes not encrypted yet, fewer than [`QUEUE_LENGTH`].
    queue: Vec<u8>,
}

impl TcpBytes {
    pub(crate) fn new(socket: Socket, mut tls: Option<Connection>) -> Self {
        if let Some(connection) = &mut tls {
            // What is encrypted is written at once: a limit could only split a write.
            connection.set_buffer_limit(None);
        }
        Self { socket, tls, queue: Vec::with_capacity(QUEUE_LENGTH) }
    }

    pub(crate) fn tcp(&self) -> &TcpStream {
        self.socket.stream()
    }

    pub(crate) fn meter(&self) -> Meter {
        self.socket.meter.clone()
    }

    pub(crate) const fn set_stall_limit(&mut self, limit: Duration) {
        self.socket.limits.stall = limit;
    }

    pub(crate) fn binding(&self) -> Option<[u8; 32]> {
        let connection = self.tls.as_ref()?;
        connection.export_keying_material([0; 32], BINDING_LABEL, None).ok()
    }

    /// The certificate that the peer has shown and proved.
    pub(crate) fn peer_certificate(&self) -> Option<PeerCertificate> {
        self.tls.as_ref()?.peer_certificates()?.first().and_then(PeerCertificate::of)
    }

    pub(crate) fn handshake(&mut self, deadline: Instant) -> Result<(), NetError> {
        self.exchange_hellos(deadline).map_err(|error| match error {
            NetError::Channel(ChannelError::Disconnected) => NetError::HandshakeClosed,
            NetError::Channel(ChannelError::TimedOut) => {
                NetError::HandshakeTimedOut { seconds: self.socket.limits.handshake.as_secs() }
            }
            error => error,
        })
    }

    fn exchange_hellos(&mut self, deadline: Instant) -> Result<(), NetError> {
        loop {
            self.write_records(deadline)?;
            if !self.tls.as_ref().is_some_and(|connection| connection.is_handshaking()) {
                return Ok(());
            }
            if self.socket.inbox.len() == 0 {
                self.socket.fill(deadline)?;
            }
            let without_tls = without_tls(self.socket.inbox.filled());
            self.read_records().map_err(|error| match error {
                NetError::Tls(_) => without_tls.unwrap_or(error),
                error => error,
            })?;
        }
    }

    /// Ends this direction and waits until the peer has ended the other.
    pub(crate) fn finish(&mut self, deadline: Instant) -> Result<(), ChannelError> {
        self.flush()?;
        if let Some(connection) = &mut self.tls {
            connection.send_close_notify();
        }
        self.write_records(deadline)?;
        self.socket.finish(deadline);
        Ok(())
    }

    /// Encrypts and writes `bytes`.
    fn push(&mut self, mut bytes: &[u8]) -> Result<(), ChannelError> {
        let deadline = self.socket.limits.transfer_deadline(bytes.len());
        if let Some(connection) = &mut self.tls {
            connection.writer().write_all(bytes).map_err(channel_error)?;
            return self.write_records(deadline);
        }
        self.socket.write(deadline, |stream| {
            if bytes.is_empty() {
                return Ok(None);
            }
            let count = stream.write(bytes)?;
            bytes = &bytes[count..];
            Ok(Some(count))
        })
    }

    /// Writes the records that TLS has ready.
    fn write_records(&mut self, deadline: Instant) -> Result<(), ChannelError> {
        let Some(connection) = &mut self.tls else { return Ok(()) };
        let written = self.socket.write(deadline, |stream| {
            if connection.wants_write() { connection.write_tls(&mut { stream }).map(Some) } else { Ok(None) }
        });
        if matches!(written, Err(ChannelError::Disconnected))
            && let Some(reason) = self.last_alert()
        {
            return Err(reason);
        }
        written
    }

    /// Why the peer left, if it said so: a client learns only now that its certificate was not accepted.
    fn last_alert(&mut self) -> Option<ChannelError> {
        let connection = self.tls.as_mut()?;
        // Whether this read fails or not, what came before is in the inbox.
        let _ = self.socket.read_some();
        // What was sent before an alert, and not read yet, leaves no room for more.
        while self.socket.inbox.len() > 0 && connection.reader().into_first_chunk().is_err() {
            match decrypt(connection, &mut self.socket) {
                Ok(()) => {}
                Err(error) => return Some(transport(error)),
            }
        }
        None
    }

    /// Decrypts the next bytes of the inbox.
    fn read_records(&mut self) -> Result<(), NetError> {
        let Some(connection) = &mut self.tls else { return Ok(()) };
        let decrypted = decrypt(connection, &mut self.socket);
        if connection.wants_write() {
            // An alert, or an answer to new keys. A peer that does not take so little at once gets the next write's deadline.
            let written = self.write_records(Instant::now() + ALERT_PATIENCE);
            return decrypted.and(written.map_err(NetError::from));
        }
        decrypted
    }

    /// Reads a part of what has come, or makes it ready; none if there is nothing.
    fn take_or_decrypt(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, ChannelError> {
        let count = self.take(buffer)?;
        if count > 0 {
            return Ok(Some(count));
        }
        if self.socket.inbox.len() == 0 && self.socket.read_some()? == 0 {
            return if self.socket.has_ended() { Err(ChannelError::Disconnected) } else { Ok(None) };
        }
        self.read_records().map_err(transport)?;
        Ok(Some(0))
    }

    /// Takes bytes that are decrypted already; zero if there are none.
    fn take(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError> {
        let Some(connection) = &mut self.tls else {
            let count = buffer.len().min(self.socket.inbox.len());
            buffer[..count].copy_from_slice(&self.socket.inbox.filled()[..count]);
            self.socket.inbox.consume(count);
            return Ok(count);
        };
        match connection.reader().read(buffer) {
            Ok(0) => Err(ChannelError::Disconnected),
            Ok(count) => Ok(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(channel_error(error)),
        }
    }
}

impl Pollable for TcpBytes {
    fn read_available(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.take_or_decrypt(&mut buffer[filled..]) {
                Ok(Some(count)) => filled += count,
                Ok(None) => break,
                // What came before the end comes first.
                Err(_) if filled > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn arrivals(&self) -> Result<Box<dyn Arrivals>, ChannelError> {
        Ok(Box::new(SocketArrivals::of(self.tcp()).map_err(channel_error)?))
    }

    fn patience(&self, bytes: usize) -> u64 {
        self.socket.limits.transfer_time(bytes).as_millis() as u64
    }
}

impl ByteStream for TcpBytes {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        let room = QUEUE_LENGTH - self.queue.len();
        if bytes.len() < room {
            self.queue.extend_from_slice(bytes);
            return Ok(());
        }
        let (head, rest) = bytes.split_at(room);
        self.queue.extend_from_slice(head);
        self.flush()?;
        // The bulk of a large message is encrypted from where it is.
        let blocks = rest.chunks_exact(QUEUE_LENGTH);
        self.queue.extend_from_slice(blocks.remainder());
        let tail = std::mem::take(&mut self.queue);
        for block in blocks {
            self.push(block)?;
        }
        self.queue = tail;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        if self.queue.is_empty() {
            return Ok(());
        }
        let mut queue = std::mem::take(&mut self.queue);
        let pushed = self.push(&queue);
        queue.clear();
        self.queue = queue;
        pushed
    }

    fn read(&mut self, mut buffer: &mut [u8]) -> Result<(), ChannelError> {
        let deadline = self.socket.limits.transfer_deadline(buffer.len());
        while !buffer.is_empty() {
            let count = self.take(buffer)?;
            buffer = &mut buffer[count..];
            if count > 0 {
                continue;
            }
            if self.socket.inbox.len() == 0 {
                self.socket.fill(deadline)?;
            }
            self.read_records().map_err(transport)?;
        }
        Ok(())
    }

    fn sent(&self) -> u64 {
        self.socket.meter.sent()
    }

    fn received(&self) -> u64 {
        self.socket.meter.received()
    }

    fn allow_ahead(&mut self, bytes: usize) {
        self.socket.allow_ahead(bytes);
    }

    fn pollable(&mut self) -> Option<&mut dyn Pollable> {
        Some(self)
    }
}

impl Drop for TcpBytes {
    fn drop(&mut self) {
        if self.socket.check_here().is_err() {
            // The connection goes on in the process that it belongs to.
            return;
        }
        if let Some(connection) = &mut self.tls {
            connection.send_close_notify();
            // Best effort: the peer takes the end of the connection for the end either way.
            let _ = self.write_records(Instant::now());
        }
        self.socket.end();
    }
}

/// What a peer speaks whose first bytes are no TLS, if it is known: they begin as a Hello does (kind 1) or a refusal (kind 0), or as HTTP.
const fn without_tls(bytes: &[u8]) -> Option<NetError> {
    match bytes {
        [_, _, 0, 0, 0 | 1, 0, ..] => Some(NetError::Plaintext),
        [b'H', b'T', b'T', b'P', b'/', ..] => Some(NetError::Http),
        _ => None,
    }
}

/// Hands TLS the next bytes of the inbox, at most as many as it buffers.
fn decrypt(connection: &mut Connection, socket: &mut Socket) -> Result<(), NetError> {
    let mut bytes = socket.inbox.filled();
    let count = connection.read_tls(&mut bytes).map_err(channel_error)?;
    socket.inbox.consume(count);
    if count == 0 {
        // TLS takes nothing after the peer's closing alert.
        return Err(ChannelError::Disconnected.into());
    }
    connection.process_new_packets().map(drop).map_err(tls_error)
}

fn transport(error: NetError) -> ChannelError {
    match error {
        NetError::Channel(error) => error,
        NetError::OwnCertificate(what) => ChannelError::OwnCertificate(what),
        error => ChannelError::Transport(error.to_string()),
    }
}

/// Bytes collected before they are encrypted and written: sixteen full TLS records.
const QUEUE_LENGTH: usize = 1 << 18;
/// Time for the peer to take an alert.
const ALERT_PATIENCE: Duration = Duration::from_secs(1);
