//! A certificate with its key.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, RootCertStore};

use super::{certificates, certificates_of, file_error, provider, reason};
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
    /// [`NetError::File`] naming the file that cannot be read, [`NetError::Identity`] naming the one that cannot be used: the key is another
    /// certificate's, or the certificate is none that TLS knows.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self, NetError> {
        let chain = certificates(certificate)?;
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| key_error(key, error))?;
        Self::of(chain, secret, certificate, key)
    }

    /// Reads a chain (own certificate first) and a key from texts in PEM.
    ///
    /// # Errors
    /// As [`Identity::from_files`], about "certificate" and "key". No error repeats any of the key.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, NetError> {
        let [certificate_name, key_name] = ["certificate", "key"].map(Path::new);
        let found = CertificateDer::pem_slice_iter(certificate.as_bytes());
        let chain = certificates_of(found, certificate_name)?;
        let secret = PrivateKeyDer::from_pem_slice(key.as_bytes());
        Self::of(chain, secret.map_err(|error| key_error(key_name, error))?, certificate_name, key_name)
    }

    fn of(
        chain: Vec<CertificateDer<'static>>,
        secret: PrivateKeyDer<'static>,
        certificate: &Path,
        key: &Path,
    ) -> Result<Self, NetError> {
        let loaded = provider().key_provider.load_private_key(secret.clone_key());
        let loaded = loaded.map_err(|error| file_error(key, &error))?;
        let refused = |path: &Path, what: String, fix: &str| {
            Err(NetError::Identity { path: path.to_owned(), what, fix: fix.to_owned() })
        };
        match CertifiedKey::new(chain.clone(), loaded).keys_match() {
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {
                Ok(Self { chain, key: secret })
            }
            Err(Error::InconsistentKeys(_)) => {
                let what = format!("this is not the key of {}", certificate.display());
                refused(key, what, "give a certificate and the key that it was made with")
            }
            Err(error) if error.to_string().contains("UnsupportedCertVersion") => refused(
                certificate,
                "this is an X.509 certificate of version 1, which TLS does not take".into(),
                "make one of version 3 with a subjectAltName: openssl x509 -req needs -extfile for that",
            ),
            Err(error) => refused(
                certificate,
                format!("the certificate cannot be used: {error}"),
                "give another certificate",
            ),
        }
    }

    /// The fingerprint of the own certificate.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self.chain.first().map_or(&[], |certificate| certificate.as_ref()))
    }

    /// Why the own certificate's term does not hold now, as in "it expired on 2021-02-01". Clients that check it against an authority refuse
    /// it; those that pin it do not look at the term.
    #[must_use]
    pub fn outside_term(&self) -> Option<String> {
        let own = self.chain.first()?;
        // The term is checked first, whoever issued it; a certificate that stands for its own authority needs no other.
        let mut roots = RootCertStore::empty();
        roots.add(own.clone()).ok()?;
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build().ok()?;
        let name = ServerName::try_from("localhost").ok()?;
        let refused = verifier.verify_server_cert(own, &[], &name, &[], UnixTime::now()).err()?;
        reason::of_term(refused)
    }
}

/// What is wrong with a key's text. What the library says of its lines may repeat the key itself.
fn key_error(path: &Path, error: PemError) -> NetError {
    match error {
        PemError::Io(error) => file_error(path, &error),
        PemError::NoItemsFound => file_error(path, &"has no private key in PEM form without a password"),
        _ => file_error(path, &"is not in PEM form"),
    }
}
