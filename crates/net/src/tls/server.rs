//! The server's side: its certificate, and which clients it admits.

use std::path::Path;
use std::sync::Arc;

use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ServerConfig, ServerConnection};

use super::{Identity, PROTOCOL, authorities, file_error, provider, tls_error};
use crate::{Fingerprint, NetError};

/// A server's side of TLS with a certificate that browsers know. What is inside is HTTP, and our own TLS in that.
///
/// # Errors
/// [`NetError::Tls`] if the identity's key does not match.
pub(crate) fn for_browsers(identity: Identity) -> Result<Arc<ServerConfig>, NetError> {
    let builder = ServerConfig::builder_with_provider(provider());
    let builder = builder.with_protocol_versions(&[&TLS13]).map_err(tls_error)?.with_no_client_auth();
    let mut config = builder.with_single_cert(identity.chain, identity.key).map_err(tls_error)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(Arc::new(config))
}

/// How a server accepts connections.
#[derive(Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    fingerprint: Fingerprint,
}

impl ServerTls {
    /// Prepares connections with this identity. With `client_authorities` (a PEM file) only clients with a certificate of
    /// one of these authorities are admitted.
    ///
    /// # Errors
    /// [`NetError::File`] if the authorities cannot be read, [`NetError::Tls`] if the identity's key does not match.
    pub fn new(identity: Identity, client_authorities: Option<&Path>) -> Result<Self, NetError> {
        let fingerprint = identity.fingerprint();
        let builder = ServerConfig::builder_with_provider(provider());
        let builder = builder.with_protocol_versions(&[&TLS13]).map_err(tls_error)?;
        let builder = match client_authorities {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let roots = Arc::new(authorities(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| file_error(path, &error))?)
            }
        };
        let mut config = builder.with_single_cert(identity.chain, identity.key).map_err(tls_error)?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Self { config: Arc::new(config), fingerprint })
    }

    /// The fingerprint that clients pin.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    pub(crate) fn start(&self) -> Result<ServerConnection, NetError> {
        ServerConnection::new(Arc::clone(&self.config)).map_err(tls_error)
    }
}
