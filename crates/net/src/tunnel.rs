//! TLS through whatever carries bytes, for clients that have no socket of their own: a page's WebSocket, for one.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use lanner_wire::ChannelError;
use rustls::ClientConnection;

use crate::framed::{ByteStream, Framed};
use crate::meter::Meter;
use crate::tls::{BINDING_LABEL, ClientTls, tls_error};
use crate::{Address, Limits, NetError, PeerCertificate, Transport};

/// Carries bytes to a server and back. It waits; what it carries need not come in the pieces in which it was sent.
pub trait Pipe {
    /// Takes all of `bytes`.
    ///
    /// # Errors
    /// [`ChannelError::Disconnected`] if the connection is gone.
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError>;

    /// Waits for at least a byte, at most `patience`, and returns how many bytes of `buffer` are filled.
    ///
    /// # Errors
    /// [`ChannelError::Disconnected`] if nothing comes any more, [`ChannelError::TimedOut`] if nothing came in time.
    fn receive(&mut self, buffer: &mut [u8], patience: Duration) -> Result<usize, ChannelError>;

    /// Lets the server have sent so many bytes that are not received yet.
    fn allow_ahead(&mut self, bytes: usize) {
        let _ = bytes;
    }
}

/// A channel over a [`Tunnel`].
pub type TunnelChannel<P> = Framed<Tunnel<P>>;

/// The client's end of TLS through a pipe, or of nothing but the pipe.
pub struct Tunnel<P> {
    pipe: P,
    tls: Option<ClientConnection>,
    /// Bytes not encrypted yet.
    queue: Vec<u8>,
    /// Room for what the pipe gives.
    arrived: Vec<u8>,
    /// What of it is not used yet.
    unread: std::ops::Range<usize>,
    limits: Limits,
    meter: Meter,
}

impl<P: Pipe + Send> TunnelChannel<P> {
    /// Does the TLS handshake with the server at the other end of a pipe.
    ///
    /// # Errors
    /// [`NetError`] if the server is not the one that is trusted, is too slow, or speaks no TLS 1.3.
    pub fn connect(pipe: P, address: &Address, tls: &ClientTls, limits: Limits) -> Result<Self, NetError> {
        let mut tunnel = Tunnel::new(pipe, Some(tls.start(address)?), limits);
        tunnel.handshake()?;
        Ok(Self::new(tunnel))
    }

    /// A channel without TLS: whatever the pipe goes through can read and change everything.
    #[must_use]
    pub fn insecure_plaintext(pipe: P, limits: Limits) -> Self {
        Self::new(Tunnel::new(pipe, None, limits))
    }

    /// What has crossed the pipe so far, told while the channel is in use.
    #[must_use]
    pub fn meter(&self) -> Meter {
        self.stream.meter.clone()
    }

    /// The pipe.
    pub const fn pipe(&mut self) -> &mut P {
        &mut self.stream.pipe
    }
}

impl<P: Pipe + Send> Transport for TunnelChannel<P> {
    fn binding(&self) -> Option<[u8; 32]> {
        self.stream.tls.as_ref()?.export_keying_material([0; 32], BINDING_LABEL, None).ok()
    }

    fn peer_certificate(&self) -> Option<PeerCertificate> {
        self.stream.tls.as_ref()?.peer_certificates()?.first().and_then(PeerCertificate::of)
    }

    fn set_stall_limit(&mut self, limit: Duration) {
        self.stream.limits.stall = limit;
    }

    fn close(&mut self, _patience: Duration) -> Result<(), ChannelError> {
        self.stream.flush()?;
        if let Some(tls) = &mut self.stream.tls {
            tls.send_close_notify();
        }
        self.stream.write_records()
    }
}

impl<P: Pipe> Tunnel<P> {
    fn new(pipe: P, mut tls: Option<ClientConnection>, limits: Limits) -> Self {
        if let Some(tls) = &mut tls {
            tls.set_buffer_limit(None);
        }
        let (queue, arrived) = (Vec::with_capacity(QUEUE_LENGTH), vec![0; QUEUE_LENGTH]);
        Self { pipe, tls, queue, arrived, unread: 0..0, limits, meter: Meter::default() }
    }

    fn handshake(&mut self) -> Result<(), NetError> {
        let deadline = Instant::now() + self.limits.handshake;
        self.exchange_hellos(deadline).map_err(|error| match error {
            NetError::Channel(ChannelError::Disconnected) => NetError::HandshakeClosed,
            NetError::Channel(ChannelError::TimedOut) => {
                NetError::HandshakeTimedOut { seconds: self.limits.handshake.as_secs() }
            }
            error => error,
        })
    }

    fn exchange_hellos(&mut self, deadline: Instant) -> Result<(), NetError> {
        loop {
            self.write_records()?;
            if !self.tls.as_ref().is_some_and(|tls| tls.is_handshaking()) {
                return Ok(());
            }
            self.fill(deadline)?;
        }
    }

    /// Hands the pipe the records that TLS has ready.
    fn write_records(&mut self) -> Result<(), ChannelError> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        let mut records = Vec::new();
        while tls.wants_write() {
            // Writing to memory does not fail.
            tls.write_tls(&mut records).map_err(|error| ChannelError::Transport(error.to_string()))?;
        }
        self.send(&records)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.pipe.send(bytes)?;
        self.meter.add_sent(bytes.len());
        Ok(())
    }

    /// Decrypts some of the bytes that came, or waits for more. Nothing that is decrypted may be left: TLS keeps a few records and no more.
    fn fill(&mut self, deadline: Instant) -> Result<(), NetError> {
        if self.unread.is_empty() {
            let patience = deadline.saturating_duration_since(Instant::now());
            if patience.is_zero() {
                return Err(ChannelError::TimedOut.into());
            }
            let count = self.pipe.receive(&mut self.arrived, patience)?.min(self.arrived.len());
            self.meter.add_received(count);
            self.unread = 0..count;
        }
        let Some(tls) = &mut self.tls else { return Ok(()) };
        let mut bytes = &self.arrived[self.unread.clone()];
        let taken = tls.read_tls(&mut bytes);
        let taken = taken.map_err(|error| ChannelError::Transport(error.to_string()))?;
        if taken == 0 {
            // TLS takes nothing after the peer's closing alert.
            return Err(ChannelError::Disconnected.into());
        }
        self.unread.start += taken;
        let processed = tls.process_new_packets().map(drop).map_err(tls_error);
        // An alert, or an answer to new keys.
        let written = self.write_records();
        processed?;
        Ok(written?)
    }

    /// Takes bytes that are decrypted already; zero if there are none.
    fn take(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError> {
        let Some(tls) = &mut self.tls else {
            let count = buffer.len().min(self.unread.len());
            buffer[..count].copy_from_slice(&self.arrived[self.unread.start..][..count]);
            self.unread.start += count;
            return Ok(count);
        };
        match tls.reader().read(buffer) {
            Ok(0) => Err(ChannelError::Disconnected),
            Ok(count) => Ok(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(ChannelError::Disconnected),
            Err(error) => Err(ChannelError::Transport(error.to_string())),
        }
    }
}

impl<P: Pipe> ByteStream for Tunnel<P> {
    fn write(&mut self, mut bytes: &[u8]) -> Result<(), ChannelError> {
        while self.queue.len() + bytes.len() >= QUEUE_LENGTH {
            let (head, rest) = bytes.split_at(QUEUE_LENGTH - self.queue.len());
            self.queue.extend_from_slice(head);
            self.flush()?;
            bytes = rest;
        }
        self.queue.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        if self.queue.is_empty() {
            return Ok(());
        }
        let mut queue = std::mem::take(&mut self.queue);
        let sent = match &mut self.tls {
            Some(tls) => {
                let taken = tls.writer().write_all(&queue);
                taken.map_err(|error| ChannelError::Transport(error.to_string()))?;
                self.write_records()
            }
            None => self.send(&queue),
        };
        queue.clear();
        self.queue = queue;
        sent
    }

    fn read(&mut self, mut buffer: &mut [u8]) -> Result<(), ChannelError> {
        let deadline = self.limits.transfer_deadline(buffer.len());
        while !buffer.is_empty() {
            let count = self.take(buffer)?;
            buffer = &mut buffer[count..];
            if count == 0 {
                self.fill(deadline).map_err(|error| match error {
                    NetError::Channel(error) => error,
                    error => ChannelError::Transport(error.to_string()),
                })?;
            }
        }
        Ok(())
    }

    fn sent(&self) -> u64 {
        self.meter.sent()
    }

    fn received(&self) -> u64 {
        self.meter.received()
    }

    fn allow_ahead(&mut self, bytes: usize) {
        self.pipe.allow_ahead(bytes);
    }
}

/// Bytes collected before they are encrypted, and taken from the pipe at a time: sixteen full TLS records.
const QUEUE_LENGTH: usize = 1 << 18;
