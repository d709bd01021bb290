//! A certificate of one's own making.

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{Identity, NO_CERTIFICATE};
use crate::{NetError, StateDirectory};

impl Identity {
    /// The self-signed identity kept in a state directory, made on first use (P-256) and the same ever after.
    ///
    /// # Errors
    /// [`NetError::State`] if the directory cannot be used, or its content is damaged.
    pub fn self_signed(state: &StateDirectory) -> Result<Self, NetError> {
        let pem = match state.read(IDENTITY_FILE)? {
            Some(pem) => pem,
            None => state.create_once(IDENTITY_FILE, generate()?.as_bytes())?,
        };
        let path = state.path().join(IDENTITY_FILE);
        let damaged = |what: &dyn std::fmt::Display| NetError::State {
            path: path.clone(),
            what: what.to_string(),
            fix: "remove the file: a new one is made, and clients need its fingerprint".to_owned(),
        };
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&pem)
            .collect::<Result<_, _>>()
            .map_err(|error| damaged(&error))?;
        let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| damaged(&error))?;
        if chain.is_empty() {
            return Err(damaged(&NO_CERTIFICATE));
        }
        Ok(Self { chain, key })
    }
}

/// A new key and its certificate, in one PEM text, so that no crash can separate them.
fn generate() -> Result<String, NetError> {
    let failed = |error: rcgen::Error| NetError::Tls(format!("cannot make a certificate: {error}"));
    let key = KeyPair::generate().map_err(failed)?;
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "lanner");
    let certificate = params.self_signed(&key).map_err(failed)?;
    Ok(format!("{}{}", key.serialize_pem(), certificate.pem()))
}

const IDENTITY_FILE: &str = "tls-identity.pem";
