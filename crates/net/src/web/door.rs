//! Answers what a browser asks for, up to the WebSocket.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tungstenite::handshake::server::{create_response, write_response};

use super::head::{Head, Origins};
use super::line::{Ground, WebLine};
use crate::meter::Meter;
use crate::ready::{await_any, channel_error};
use crate::tls::{Identity, for_browsers};
use crate::{Limits, NetError};
use lanner_wire::ChannelError;

/// A file of the page.
#[derive(Clone, Debug)]
pub struct File {
    /// Its content type.
    pub kind: String,
    /// Its bytes.
    pub content: Arc<[u8]>,
}

/// What became of a request.
pub enum Visitor {
    /// It opened a WebSocket.
    Line(Box<WebLine>),
    /// It got a file, or is told why not; the connection is over.
    Gone,
}

/// Answers browsers: files of the page to whoever asks for one, and a WebSocket to pages of stated origins.
pub struct Door {
    origins: Origins,
    files: HashMap<String, File>,
    /// The certificate that browsers know, where there is one.
    tls: Option<Arc<ServerConfig>>,
}

impl Door {
    /// A door for pages of these origins that offers these files, by path.
    ///
    /// # Errors
    /// [`NetError::File`] and [`NetError::Tls`] about the certificate, which is a PEM file's, and its key, which another has.
    pub fn new(
        origins: Origins,
        files: HashMap<String, File>,
        certificate: Option<(&Path, &Path)>,
    ) -> Result<Self, NetError> {
        let tls =
            certificate.map(|(chain, key)| for_browsers(Identity::from_files(chain, key)?)).transpose()?;
        Ok(Self { origins, files, tls })
    }

    /// Whether it shows a certificate of its own.
    #[must_use]
    pub const fn is_secured(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether what a connection begins with is HTTP, once that much has come. Nothing is taken.
    ///
    /// # Errors
    /// [`NetError::Channel`] if nothing comes in the time of a handshake, or the connection fails.
    pub fn is_wanted(stream: &TcpStream, limits: Limits) -> Result<bool, NetError> {
        let deadline = Instant::now() + limits.handshake;
        stream.set_nonblocking(true).map_err(channel_error)?;
        let mut first = [0; 4];
        loop {
            match stream.peek(&mut first) {
                Ok(0) => return Err(ChannelError::Disconnected.into()),
                Ok(count) if !is_http(&first[..count]) => return Ok(false),
                Ok(4) => return Ok(true),
                // The rest of a beginning that may be HTTP's: nothing tells when it comes.
                Ok(_) => {
                    if Instant::now() >= deadline {
                        return Err(ChannelError::TimedOut.into());
                    }
                    std::thread::sleep(GLANCE);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    await_ready(stream, PollFlags::IN, deadline)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(channel_error(error).into()),
            }
        }
    }

    /// Answers the one request of a connection, within the time of a handshake.
    ///
    /// # Errors
    /// [`NetError::Web`] if it is refused, and was told why; [`NetError::Channel`] if the connection fails.
    pub fn answer(&self, stream: TcpStream, limits: Limits) -> Result<Visitor, NetError> {
        let deadline = Instant::now() + limits.handshake;
        stream.set_nonblocking(true).map_err(channel_error)?;
        stream.set_nodelay(true).map_err(channel_error)?;
        let mut ground = match &self.tls {
            None => Ground::Tcp(stream),
            Some(config) => {
                let connection = ServerConnection::new(Arc::clone(config)).map_err(crate::tls::tls_error)?;
                Ground::Tls(Box::new(StreamOwned::new(connection, stream)))
            }
        };
        let head = match read_head(&mut ground, deadline) {
            Ok(head) => head,
            Err(Unread::Failed(error)) => return Err(error),
            Err(Unread::NoHead(what)) => return refuse(ground, "400 Bad Request", what, deadline),
        };
        if let Err(what) = head.check_host(&self.origins) {
            return refuse(ground, "421 Misdirected Request", &what, deadline);
        }
        if !head.asks_for_upgrade() {
            self.send_file(&mut ground, &head, deadline)?;
            return Ok(Visitor::Gone);
        }
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        if let Err(what) = head.check_origin(&self.origins, scheme) {
            return refuse(ground, "403 Forbidden", &what, deadline);
        }
        if head.request.uri().path() != SOCKET_PATH {
            return refuse(ground, "404 Not Found", "there is no WebSocket at this path", deadline);
        }
        let Ok(response) = create_response(&head.request) else {
            return refuse(ground, "400 Bad Request", "this asks for no WebSocket of version 13", deadline);
        };
        let mut bytes = Vec::new();
        if write_response(&mut bytes, &response).is_err() {
            return refuse(ground, "400 Bad Request", "this asks for no WebSocket of version 13", deadline);
        }
        write_all(&mut ground, &bytes, deadline)?;
        Ok(Visitor::Line(Box::new(WebLine::new(ground, head.behind, Meter::default()))))
    }

    fn send_file(&self, ground: &mut Ground, head: &Head, deadline: Instant) -> Result<(), NetError> {
        let Some(File { kind, content }) = self.files.get(head.request.uri().path()) else {
            return write_all(ground, &said("404 Not Found", "there is no such file here"), deadline);
        };
        let mut answer = start("200 OK", kind, content.len()).into_bytes();
        answer.extend_from_slice(content);
        write_all(ground, &answer, deadline)?;
        end(ground, deadline);
        Ok(())
    }
}

/// Tells why there is nothing, and ends the connection.
fn refuse(mut ground: Ground, status: &str, what: &str, deadline: Instant) -> Result<Visitor, NetError> {
    write_all(&mut ground, &said(status, what), deadline)?;
    end(&mut ground, deadline);
    Err(NetError::Web(what.to_owned()))
}

/// Whether bytes are the beginning of a request for a file or a WebSocket.
fn is_http(bytes: &[u8]) -> bool {
    METHOD.starts_with(bytes)
}

/// Why there is no head.
enum Unread {
    NoHead(&'static str),
    Failed(NetError),
}

fn read_head(ground: &mut Ground, deadline: Instant) -> Result<Head, Unread> {
    let (mut bytes, mut length) = (vec![0; MOST_OF_A_HEAD], 0);
    loop {
        if length == bytes.len() {
            return Err(Unread::NoHead("the request's head is too long"));
        }
        match ground.read(&mut bytes[length..]) {
            Ok(0) => return Err(Unread::Failed(ChannelError::Disconnected.into())),
            Ok(count) => length += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                await_ready(ground.tcp(), PollFlags::IN, deadline).map_err(Unread::Failed)?;
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Unread::Failed(failed(error))),
        }
        if let Some(head) = Head::parse(&bytes[..length]).map_err(Unread::NoHead)? {
            return Ok(head);
        }
    }
}

/// A whole answer that is a sentence.
fn said(status: &str, what: &str) -> Vec<u8> {
    format!("{}{what}\n", start(status, "text/plain; charset=utf-8", what.len() + 1)).into_bytes()
}

/// The head of an answer. Pages that it goes to are isolated from others, without which a browser gives them no shared memory, and ask
/// nobody else for anything.
fn start(status: &str, kind: &str, length: usize) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
         Cross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Embedder-Policy: require-corp\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\n\
         Content-Security-Policy: {CONTENT_POLICY}\r\n\r\n"
    )
}

fn write_all(ground: &mut Ground, mut bytes: &[u8], deadline: Instant) -> Result<(), NetError> {
    loop {
        let step = if bytes.is_empty() { ground.flush().map(|()| 0) } else { ground.write(bytes) };
        match step {
            Ok(_) if bytes.is_empty() => return Ok(()),
            Ok(0) => return Err(ChannelError::Disconnected.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                await_ready(ground.tcp(), PollFlags::OUT, deadline)?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Ends the connection when the peer has read what it was told, or its time is over.
fn end(ground: &mut Ground, deadline: Instant) {
    if let Ground::Tls(stream) = ground {
        stream.conn.send_close_notify();
        let _ = stream.flush();
    }
    let _ = ground.tcp().shutdown(std::net::Shutdown::Write);
    let deadline = deadline.min(Instant::now() + LINGER);
    let (mut discarded, mut buffer) = (0, [0; 4096]);
    while discarded < MOST_OF_A_HEAD && Instant::now() < deadline {
        let mut tcp = ground.tcp();
        match tcp.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => discarded += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if await_ready(ground.tcp(), PollFlags::IN, deadline).is_err() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

/// Waits for a socket; a signal ends the wait, too.
fn await_ready(stream: &TcpStream, wanted: PollFlags, deadline: Instant) -> Result<(), NetError> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(ChannelError::TimedOut.into());
    }
    await_any(&mut [PollFd::new(stream, wanted)], left)?;
    Ok(())
}

/// What a read or a write failed of: TLS says so in an error of its own.
fn failed(error: std::io::Error) -> NetError {
    if error.kind() == ErrorKind::InvalidData {
        return NetError::Tls(error.to_string());
    }
    channel_error(error).into()
}

/// What a request begins with; no other method is answered.
const METHOD: &[u8] = b"GET ";
/// Where a page opens its WebSocket.
const SOCKET_PATH: &str = "/lanner";
/// Bytes of a request's head.
const MOST_OF_A_HEAD: usize = 16 << 10;
/// Time for a peer to read the end of an answer.
const LINGER: Duration = Duration::from_secs(2);
/// Between two looks at a beginning of which a part has come.
const GLANCE: Duration = Duration::from_millis(2);
/// What a page may load and connect to: its own files, and any lanner server, which it names by its fingerprint.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; \
     img-src 'self' blob: data:; connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
