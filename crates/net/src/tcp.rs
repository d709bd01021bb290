//! Channels over TCP, under TLS unless a caller asks for none by name.

use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use lanner_process::Mark;
use lanner_wire::ChannelError;
use rustls::Connection;

use crate::dial::open;
use crate::framed::Framed;
use crate::ready::channel_error;
use crate::socket::Socket;
use crate::tcp_bytes::TcpBytes;
use crate::tls::{ClientTls, ServerTls};
use crate::web::WebLine;
use crate::{Address, Limits, Meter, NetError, PeerCertificate, Proxy, Transport};

/// A channel over TCP. Bytes are counted on TCP: with TLS its records and its handshake are included.
pub type TcpChannel = Framed<TcpBytes>;

impl TcpChannel {
    /// Connects to a server under TLS.
    ///
    /// # Errors
    /// [`NetError`] naming what failed: the host, the connection, a time-out, the server's or the client's certificate.
    pub fn connect(address: &Address, tls: &ClientTls, limits: Limits) -> Result<Self, NetError> {
        Self::connect_through(None, address, tls, limits)
    }

    /// Connects to a server under TLS, by way of a proxy where there is one.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and [`NetError::Proxy`].
    pub fn connect_through(
        proxy: Option<&Proxy>,
        address: &Address,
        tls: &ClientTls,
        limits: Limits,
    ) -> Result<Self, NetError> {
        let connection = tls.start(address)?;
        let stream = open_through(proxy, address, limits)?;
        Self::secured(stream, Connection::Client(connection), limits)
    }

    /// Does the TLS handshake with a client that connected. Blocks for at most [`Limits::handshake`].
    ///
    /// # Errors
    /// [`NetError`] if the client does not speak TLS 1.3, is too slow, or has no certificate that is demanded.
    pub fn accept(stream: TcpStream, tls: &ServerTls, limits: Limits) -> Result<Self, NetError> {
        Self::secured(stream, Connection::Server(tls.start()?), limits)
    }

    /// The same with a client that opened a WebSocket, inside it.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn accept_web(line: WebLine, tls: &ServerTls, limits: Limits) -> Result<Self, NetError> {
        Self::secured_over(Socket::of_web(line, limits)?, Connection::Server(tls.start()?), limits)
    }

    /// A channel in a WebSocket without TLS inside: everything can be read and changed on the way.
    ///
    /// # Errors
    /// [`NetError::Channel`] if the socket cannot be configured.
    pub fn insecure_plaintext_web(line: WebLine, limits: Limits) -> Result<Self, NetError> {
        Ok(Framed::new(TcpBytes::new(Socket::of_web(line, limits)?, None)))
    }

    /// Connects without TLS: everything can be read and changed on the way.
    ///
    /// # Errors
    /// [`NetError`] naming what failed: the host, the connection, a time-out.
    pub fn connect_insecure_plaintext(address: &Address, limits: Limits) -> Result<Self, NetError> {
        Self::connect_insecure_plaintext_through(None, address, limits)
    }

    /// Connects without TLS, by way of a proxy where there is one.
    ///
    /// # Errors
    /// As [`connect_insecure_plaintext`](Self::connect_insecure_plaintext), and [`NetError::Proxy`].
    pub fn connect_insecure_plaintext_through(
        proxy: Option<&Proxy>,
        address: &Address,
        limits: Limits,
    ) -> Result<Self, NetError> {
        Self::insecure_plaintext(open_through(proxy, address, limits)?, limits)
    }

    /// A channel without TLS: everything can be read and changed on the way.
    ///
    /// # Errors
    /// [`NetError::Channel`] if the socket cannot be configured.
    pub fn insecure_plaintext(stream: TcpStream, limits: Limits) -> Result<Self, NetError> {
        Ok(Framed::new(TcpBytes::new(Socket::new(stream, limits)?, None)))
    }

    /// A handle with which another thread can cut this connection.
    ///
    /// # Errors
    /// [`NetError::Channel`] if the system has no descriptor left.
    pub fn abort_handle(&self) -> Result<AbortHandle, NetError> {
        AbortHandle::of(self.stream.tcp())
    }

    /// What has crossed this connection so far, told while the channel is in use.
    #[must_use]
    pub fn meter(&self) -> Meter {
        self.stream.meter()
    }

    fn secured(stream: TcpStream, connection: Connection, limits: Limits) -> Result<Self, NetError> {
        Self::secured_over(Socket::new(stream, limits)?, connection, limits)
    }

    fn secured_over(socket: Socket, connection: Connection, limits: Limits) -> Result<Self, NetError> {
        let mut bytes = TcpBytes::new(socket, Some(connection));
        bytes.handshake(Instant::now() + limits.handshake)?;
        Ok(Framed::new(bytes))
    }
}

impl Transport for TcpChannel {
    fn binding(&self) -> Option<[u8; 32]> {
        self.stream.binding()
    }

    fn peer_certificate(&self) -> Option<PeerCertificate> {
        self.stream.peer_certificate()
    }

    fn set_stall_limit(&mut self, limit: Duration) {
        self.stream.set_stall_limit(limit);
    }

    fn close(&mut self, patience: Duration) -> Result<(), ChannelError> {
        // What is still queued has no more time than the end: the limit may be that of a session that waited for a person.
        self.stream.set_stall_limit(patience);
        self.stream.finish(Instant::now() + patience)
    }
}

/// Cuts a connection from another thread: its blocked operations return at once with an error. In a child that `fork` made it does nothing.
pub struct AbortHandle {
    stream: TcpStream,
    mark: Mark,
}

impl AbortHandle {
    /// A handle for a connection that has no channel yet.
    ///
    /// # Errors
    /// [`NetError::Channel`] if the system has no descriptor left.
    pub fn of(stream: &TcpStream) -> Result<Self, NetError> {
        let stream = stream.try_clone().map_err(channel_error)?;
        Ok(Self { stream, mark: Mark::here() })
    }

    /// Cuts the connection.
    pub fn abort(&self) {
        if self.mark.is_here() {
            // It can only fail because the connection is cut already.
            let _ = self.stream.shutdown(Shutdown::Both);
        }
    }
}

/// Opens a TCP connection to a server, or to the proxy that leads there.
fn open_through(proxy: Option<&Proxy>, address: &Address, limits: Limits) -> Result<TcpStream, NetError> {
    proxy.map_or_else(|| open(address, limits), |proxy| proxy.tunnel(address, limits))
}
