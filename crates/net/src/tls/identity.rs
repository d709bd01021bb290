//! A certificate with its key.

use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{certificates, file_error};
use crate::{Fingerprint, NetError};

/// A certificate chain and the private key of its first certificate.
pub struct Identity {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Reads a chain (own certificate first) and a key from PEM files.
    ///
    /// # Errors
    /// [`NetError::File`] naming the file that cannot be used.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self, NetError> {
        let chain = certificates(certificate)?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| file_error(key, &error))?;
        Ok(Self { chain, key })
    }

    /// The fingerprint of the own certificate.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self.chain.first().map_or(&[], |certificate| certificate.as_ref()))
    }
}
