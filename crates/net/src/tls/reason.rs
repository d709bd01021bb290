//! Why a certificate is rejected, in words that name what to change.

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error};

use super::pin::WrongPin;
use crate::NetError;

/// What is wrong with the certificate that the peer showed.
pub(super) fn of_peer(error: CertificateError) -> NetError {
    let outside = |what: String| NetError::Term(what);
    match error {
        CertificateError::Other(other) => match other.0.downcast_ref::<WrongPin>() {
            Some(WrongPin { expected, got }) => NetError::WrongPin { expected: *expected, got: *got },
            None => spelled_out(&other.to_string()),
        },
        CertificateError::Expired => outside("it has expired".into()),
        CertificateError::ExpiredContext { not_after, .. } => {
            outside(format!("it expired on {}", date(not_after)))
        }
        CertificateError::NotValidYet => outside("it is not valid yet".into()),
        CertificateError::NotValidYetContext { not_before, .. } => {
            outside(format!("it is not valid before {}", date(not_before)))
        }
        CertificateError::UnknownIssuer => {
            NetError::Certificate("no authority that this side trusts issued it".into())
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            NetError::Certificate("its extended key usage does not allow this use".into())
        }
        error => NetError::Certificate(error.to_string()),
    }
}

/// What the library names by a code alone.
fn spelled_out(code: &str) -> NetError {
    if code.contains("CaUsedAsEndEntity") {
        return NetError::SelfIssued;
    }
    if code.contains("UnsupportedCertVersion") {
        return NetError::Certificate(
            "it is an X.509 certificate of version 1; TLS requires version 3".into(),
        );
    }
    NetError::Certificate(code.to_owned())
}

/// What the peer says against the certificate of this side; none if the alert is about something else.
pub(super) fn of_alert(alert: AlertDescription) -> Option<NetError> {
    let what = match alert {
        AlertDescription::CertificateRequired => "it requires one and none was given",
        AlertDescription::CertificateExpired => "the certificate has expired, or is not valid yet",
        AlertDescription::CertificateRevoked => "the certificate is revoked",
        AlertDescription::UnknownCA => "no authority that the peer trusts issued it",
        AlertDescription::UnsupportedCertificate => "the certificate's kind is not supported",
        AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::DecryptError
        | AlertDescription::AccessDenied => {
            "it is not for this name or use, or no authority that the peer trusts issued it"
        }
        _ => return None,
    };
    Some(NetError::OwnCertificate(what.into()))
}

/// What keeps a certificate's own term from holding now; none if it holds, or cannot be read.
pub(super) fn of_term(error: Error) -> Option<String> {
    let Error::InvalidCertificate(error) = error else { return None };
    match of_peer(error) {
        NetError::Term(what) => Some(what),
        _ => None,
    }
}

/// The day in UTC, as 2026-11-27.
fn date(time: UnixTime) -> String {
    // Years that begin in March have their leap day at their end; a cycle of 400 of them has 146,097 days.
    let days = time.as_secs() / 86_400 + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (month_day, month) =
        (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = 400 * cycle + year + u64::from(month <= 2);
    format!("{year}-{month:02}-{month_day:02}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01"),
            (86_399, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_612_137_600, "2021-02-01"),
            (1_798_675_200, "2026-12-31"),
            (1_798_761_600, "2027-01-01"),
            (4_107_542_399, "2100-02-28"),
            (4_107_542_400, "2100-03-01"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(date(UnixTime::since_unix_epoch(Duration::from_secs(seconds))), expected, "{seconds}");
        }
    }
}
