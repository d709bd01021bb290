//! The client's side: which server it trusts.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::ServerName;
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, client::WebPkiServerVerifier};

use super::pin::PinVerifier;
use super::{Identity, PROTOCOL, authorities, file_error, provider, tls_error};
use crate::{Address, Fingerprint, NetError};

/// Which server a client trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The one with this certificate.
    Pin(Fingerprint),
    /// Any whose certificate an authority in this PEM file issued for the host's name.
    Authorities(PathBuf),
}

/// How a client connects: whom it trusts and, for servers that ask, who it is.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
}

impl ClientTls {
    /// Prepares connections to servers under `trust`, showing `identity` to a server that demands a certificate.
    ///
    /// # Errors
    /// [`NetError::File`] if the authorities cannot be read, [`NetError::Tls`] if the identity's key does not match.
    pub fn new(trust: &Trust, identity: Option<Identity>) -> Result<Self, NetError> {
        let builder = ClientConfig::builder_with_provider(provider());
        let builder = builder.with_protocol_versions(&[&TLS13]).map_err(tls_error)?;
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier(trust)?);
        let mut config = match identity {
            Some(Identity { chain, key }) => builder.with_client_auth_cert(chain, key).map_err(tls_error)?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.resumption = Resumption::disabled();
        Ok(Self { config: Arc::new(config) })
    }

    pub(crate) fn start(&self, address: &Address) -> Result<ClientConnection, NetError> {
        let name = ServerName::try_from(address.host().to_owned());
        let name = name.map_err(|_| NetError::Address { text: address.to_string() })?;
        ClientConnection::new(Arc::clone(&self.config), name).map_err(tls_error)
    }
}

fn verifier(trust: &Trust) -> Result<Arc<dyn ServerCertVerifier>, NetError> {
    match trust {
        Trust::Pin(expected) => Ok(Arc::new(PinVerifier { expected: *expected, provider: provider() })),
        Trust::Authorities(path) => {
            let roots = Arc::new(authorities(path)?);
            let built = WebPkiServerVerifier::builder_with_provider(roots, provider()).build();
            let verifier: Arc<dyn ServerCertVerifier> = built.map_err(|error| file_error(path, &error))?;
            Ok(verifier)
        }
    }
}
