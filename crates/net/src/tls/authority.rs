//! Which certificates are authorities'.
//!
//! TLS takes whatever certificate it is given for an authority's. Where a client has to be known again that is too much: of its own certificate in the file of authorities it
//! would sign itself others, each of which is a client.

use std::path::Path;

use super::certificates;
use crate::{Fingerprint, NetError};

/// Checks that every certificate of a PEM file says that it is an authority's.
///
/// # Errors
/// [`NetError::File`] if the file cannot be read; [`NetError::Identity`] naming a certificate that does not.
pub fn check_authorities(path: &Path) -> Result<(), NetError> {
    let all = certificates(path)?;
    match all.iter().enumerate().find(|(_, certificate)| !says_authority(certificate)) {
        None => Ok(()),
        Some((index, certificate)) => Err(NetError::Identity {
            path: path.to_owned(),
            what: format!(
                "certificate {} of {}, {}, is not an authority's (no CA:TRUE): its owner could issue certificates to avoid a ban",
                index + 1,
                all.len(),
                Fingerprint::of(certificate),
            ),
            fix: "give the issuing authority's certificate".to_owned(),
        }),
    }
}

/// Whether a certificate in DER has `basicConstraints` with CA:TRUE. Not if it cannot be read.
fn says_authority(certificate: &[u8]) -> bool {
    constraints(certificate)
        .is_some_and(|mut constraints| element(&mut constraints, BOOLEAN) == Some(&[0xff]))
}

/// The content of `basicConstraints`.
fn constraints(mut certificate: &[u8]) -> Option<&[u8]> {
    let mut signed = element(&mut certificate, SEQUENCE)?;
    let mut content = element(&mut signed, SEQUENCE)?;
    let mut extensions = loop {
        let (tag, mut value) = any(&mut content)?;
        if tag == EXTENSIONS {
            break element(&mut value, SEQUENCE)?;
        }
    };
    loop {
        let mut extension = element(&mut extensions, SEQUENCE)?;
        if element(&mut extension, OBJECT_IDENTIFIER)? != BASIC_CONSTRAINTS {
            continue;
        }
        // Whether it is critical comes first, if it is said.
        let mut value = loop {
            if let (OCTET_STRING, value) = any(&mut extension)? {
                break value;
            }
        };
        return element(&mut value, SEQUENCE);
    }
}

/// The content of the next element if it has this tag.
fn element<'a>(bytes: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    any(bytes).filter(|(found, _)| *found == tag).map(|(_, content)| content)
}

/// The next element: its tag and its content.
fn any<'a>(bytes: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&[tag, first], mut rest) = bytes.split_first_chunk()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        let (digits, behind) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if digits.is_empty() || digits.len() > 4 {
            return None;
        }
        length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
        rest = behind;
    }
    let content;
    (content, *bytes) = rest.split_at_checked(length)?;
    Some((tag, content))
}

const BOOLEAN: u8 = 0x01;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// `[3]` of what is signed.
const EXTENSIONS: u8 = 0xa3;
/// 2.5.29.19
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    use super::*;

    fn certificate(is_ca: IsCa) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.is_ca = is_ca;
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn an_authority_says_so() {
        for (is_ca, expected) in [
            (IsCa::Ca(BasicConstraints::Unconstrained), true),
            (IsCa::Ca(BasicConstraints::Constrained(0)), true),
            (IsCa::ExplicitNoCa, false),
            (IsCa::NoCa, false),
        ] {
            assert_eq!(says_authority(&certificate(is_ca)), expected, "{is_ca:?}");
        }
    }

    #[test]
    fn what_is_cut_or_changed_is_no_authority_and_no_panic() {
        let whole = certificate(IsCa::Ca(BasicConstraints::Constrained(0)));
        for length in 0..whole.len() {
            assert!(!says_authority(&whole[..length]), "{length}");
        }
        // A byte of 0x80 or more in place of a length, too.
        for place in 0..whole.len() {
            for value in [0, 0x7f, 0x80, 0x84, 0x88, 0xff] {
                let mut changed = whole.clone();
                changed[place] = value;
                let _ = says_authority(&changed);
            }
        }
    }
}
