//! The name of a certificate that a person compares or pins.

use std::fmt;
use std::str::FromStr;

use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;
use sha2::{Digest, Sha256};

use crate::NetError;

/// SHA-256 of a certificate's DER encoding, written `sha256:` and 64 hexadecimal digits.
///
/// It is what `openssl x509 -fingerprint -sha256` prints; colons between the digits are accepted when parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a certificate in DER.
    #[must_use]
    pub fn of(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Fingerprint {
    type Err = NetError;

    fn from_str(text: &str) -> Result<Self, NetError> {
        parse(text).map(Self).ok_or_else(|| NetError::FingerprintText { text: text.to_owned() })
    }
}

/// The name of a public key: SHA-256 of its `SubjectPublicKeyInfo` in DER, written as a [`Fingerprint`].
///
/// A certificate has other forms with the same content, since of an ECDSA signature `(r, s)` anybody makes `(r, n - s)`: who has to be known again is known by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyFingerprint(Fingerprint);

impl KeyFingerprint {
    /// The fingerprint of a `SubjectPublicKeyInfo` in DER.
    #[must_use]
    pub fn of(info: &[u8]) -> Self {
        Self(Fingerprint::of(info))
    }
}

impl fmt::Display for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a peer has shown and proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCertificate {
    /// The certificate.
    pub fingerprint: Fingerprint,
    /// The key in it.
    pub key: KeyFingerprint,
}

impl PeerCertificate {
    /// What is shown by a certificate in DER; none if it is no certificate.
    #[must_use]
    pub fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let info = ParsedCertificate::try_from(certificate).ok()?.subject_public_key_info();
        Some(Self { fingerprint: Fingerprint::of(certificate), key: KeyFingerprint::of(&info) })
    }
}

fn parse(text: &str) -> Option<[u8; 32]> {
    let digits = text.trim().strip_prefix(PREFIX)?.chars().filter(|c| *c != ':');
    let digits: Vec<u8> = digits.map(|c| c.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    if digits.len() == 64 { bytes.try_into().ok() } else { None }
}

const PREFIX: &str = "sha256:";

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn text_and_fingerprint_determine_each_other() {
        let fingerprint = Fingerprint::of(b"abc");
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(fingerprint.to_string(), text);
        assert_eq!(text.parse::<Fingerprint>().unwrap(), fingerprint);
        assert_eq!(text.to_uppercase().replace("SHA", "sha").parse::<Fingerprint>().unwrap(), fingerprint);
    }

    #[test]
    fn other_texts_are_refused() {
        let text = Fingerprint::of(b"abc").to_string();
        for wrong in ["", "sha256:", &text[1..], &text[..70], &format!("{text}0"), &text.replace('b', "g")] {
            assert!(wrong.parse::<Fingerprint>().is_err(), "{wrong}");
        }
    }
}
