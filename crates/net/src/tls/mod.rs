//! TLS 1.3: who is trusted, and with which certificate one shows up.
//!
//! No trust on first use: a client is given the server's fingerprint or an authority. Nothing is resumed and there is no
//! early data, so that each session has fresh keys and its exporter value names it alone.

#[cfg(not(target_family = "wasm"))]
mod authority;
mod client;
mod identity;
mod pin;
mod reason;
#[cfg(not(target_family = "wasm"))]
mod self_signed;
#[cfg(not(target_family = "wasm"))]
mod server;

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::{Error, RootCertStore};

#[cfg(not(target_family = "wasm"))]
pub use authority::check_authorities;
pub use client::{ClientTls, Trust};
pub use identity::Identity;
#[cfg(not(target_family = "wasm"))]
pub use server::ServerTls;
#[cfg(not(target_family = "wasm"))]
pub(crate) use server::for_browsers;

use crate::NetError;

/// The protocol's name in TLS (ALPN), so that a server of another protocol is not taken for one of this.
const PROTOCOL: &[u8] = b"lanner";

/// The exporter's label for the value that binds a session to its connection.
pub(crate) const BINDING_LABEL: &[u8] = b"EXPORTER-lanner-session";

fn provider() -> Arc<CryptoProvider> {
    // AES-128 meets the security of everything above it, and is the fastest where the processor has it.
    let mut cipher_suites = vec![
        ring::cipher_suite::TLS13_AES_128_GCM_SHA256,
        ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ring::cipher_suite::TLS13_AES_256_GCM_SHA384,
    ];
    if cfg!(target_family = "wasm") {
        cipher_suites.swap(0, 1);
    }
    Arc::new(CryptoProvider { cipher_suites, ..ring::default_provider() })
}

fn authorities(path: &Path) -> Result<RootCertStore, NetError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| file_error(path, &error))?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, NetError> {
    let found = CertificateDer::pem_file_iter(path).map_err(|error| file_error(path, &error))?;
    certificates_of(found, path)
}

/// The certificates that are found in what has this name.
fn certificates_of(
    found: impl Iterator<Item = Result<CertificateDer<'static>, PemError>>,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, NetError> {
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(|error| file_error(path, &error))?;
    if found.is_empty() {
        return Err(file_error(path, &NO_CERTIFICATE));
    }
    Ok(found)
}

/// What is wrong with a file that should have one.
const NO_CERTIFICATE: &str = "has no certificate in PEM form";

fn file_error(path: &Path, what: &dyn std::fmt::Display) -> NetError {
    NetError::File { path: path.to_owned(), what: what.to_string() }
}

/// Puts a failed handshake, or an alert that comes after it, in the terms of this crate.
pub(crate) fn tls_error(error: Error) -> NetError {
    match error {
        Error::InvalidCertificate(error) => reason::of_peer(error),
        Error::NoCertificatesPresented => NetError::Certificate("the client sent none".into()),
        Error::AlertReceived(alert) => reason::of_alert(alert).unwrap_or_else(|| {
            NetError::Tls(format!("the peer ended the connection with the alert {alert:?}"))
        }),
        Error::InvalidMessage(_) => NetError::Tls("the peer does not speak TLS 1.3".into()),
        error => NetError::Tls(error.to_string()),
    }
}
