//! Trust in one certificate by its fingerprint.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, PeerIncompatible, SignatureScheme};

use crate::Fingerprint;

/// Accepts a server that holds the key of the one certificate with this fingerprint.
///
/// Names and dates in the certificate play no part: the fingerprint is the identity.
#[derive(Debug)]
pub(super) struct PinVerifier {
    pub(super) expected: Fingerprint,
    pub(super) provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let got = Fingerprint::of(end_entity);
        if got == self.expected {
            return Ok(ServerCertVerified::assertion());
        }
        let wrong = WrongPin { expected: self.expected, got };
        Err(Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(wrong)))))
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered))
    }

    /// The certificate is public: only the signature proves that the server holds its key.
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Carries both fingerprints through the TLS library's error.
#[derive(Debug)]
pub(super) struct WrongPin {
    pub(super) expected: Fingerprint,
    pub(super) got: Fingerprint,
}

impl fmt::Display for WrongPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not the pinned {}", self.got, self.expected)
    }
}

impl std::error::Error for WrongPin {}
