//! Why a connection could not be made, or a certificate or the state directory not be used.

use std::io;
use std::path::PathBuf;

use lanner_wire::ChannelError;
use thiserror::Error;

use crate::Fingerprint;

/// Why a connection could not be made, or a certificate or the state directory not be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NetError {
    /// The text is not a host with an optional port.
    #[error("{text:?} is not HOST or HOST:PORT")]
    Address {
        /// The text given.
        text: String,
    },
    /// The text is not a certificate's fingerprint.
    #[error("{text:?} is not a fingerprint: \"sha256:\" and 64 hexadecimal digits")]
    FingerprintText {
        /// The text given.
        text: String,
    },
    /// The host has no address.
    #[error("cannot find the host {host}: {source}")]
    Resolve {
        /// The host's name.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// No address of the host accepts a connection.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// Host and port.
        address: String,
        /// What the last attempt said.
        source: io::Error,
    },
    /// The text is not the URL of an HTTP proxy.
    #[error("the proxy's URL cannot be used: {what}")]
    ProxyUrl {
        /// What is wrong with it; it may hold a password and is not repeated.
        what: String,
    },
    /// The proxy does not let the connection through.
    #[error("the proxy {proxy}: {what}")]
    Proxy {
        /// Its URL, without a password.
        proxy: String,
        /// What happened.
        what: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Host and port.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The TLS handshake took longer than allowed.
    #[error("the peer did not finish the TLS handshake within {seconds} s")]
    HandshakeTimedOut {
        /// The time allowed.
        seconds: u64,
    },
    /// The peer closed the connection before the TLS handshake was over.
    #[error("the peer closed the connection during the TLS handshake: it may be busy, or not speak TLS")]
    HandshakeClosed,
    /// The peer's first bytes are a message without TLS.
    #[error("the peer does without TLS, and this side asks for it")]
    Plaintext,
    /// The peer's first bytes are an answer of HTTP without TLS.
    #[error("the peer answered with HTTP; is this a lanner server's address?")]
    Http,
    /// A browser asked for what it does not get.
    #[error("a page is refused: {0}")]
    Web(String),
    /// The server's certificate is not the pinned one.
    #[error("the server's certificate is {got}, not the pinned {expected}")]
    WrongPin {
        /// The pinned fingerprint.
        expected: Fingerprint,
        /// The fingerprint of the certificate that came.
        got: Fingerprint,
    },
    /// The peer's certificate is not accepted.
    #[error("the peer's certificate is not accepted: {0}")]
    Certificate(String),
    /// The peer's certificate is an authority's, or self-signed, and not one that an authority issued.
    #[error(
        "the peer's certificate is not accepted: it is an authority's, or self-signed; an authority must issue one for this party"
    )]
    SelfIssued,
    /// The term of the peer's certificate is over, or has not begun.
    #[error("the peer's certificate is not accepted: {0}")]
    Term(String),
    /// The peer does not accept the certificate of this side, or requires one that was not given.
    #[error("the peer does not accept this side's certificate: {0}")]
    OwnCertificate(String),
    /// The TLS handshake failed otherwise.
    #[error("TLS: {0}")]
    Tls(String),
    /// A certificate, key or authority file cannot be used.
    #[error("{path}: {what}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A certificate and its key cannot be used, though their files can be read.
    #[error("{path}: {what}", path = path.display())]
    Identity {
        /// The file that is wrong.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// What to do.
        fix: String,
    },
    /// The state directory cannot be used.
    #[error("state directory {path}: {what}", path = path.display())]
    State {
        /// The directory, or the file in it.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// What to do; empty where nothing can be suggested.
        fix: String,
    },
    /// The connection failed.
    #[error(transparent)]
    Channel(#[from] ChannelError),
}
