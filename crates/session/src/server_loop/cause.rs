//! Why a connection ended otherwise than it should, as one of a few words.
//!
//! A sentence is for who reads the log; a word is for who counts. The words are all here, so that no client can make up another one.

use std::error::Error;

use lanner_net::NetError;
use lanner_step::ProtocolError;
use lanner_store::StoreError;
use lanner_wire::ChannelError;
use serde::Serialize;

use super::Exhausted;
use crate::executor::ExecutionError;
use crate::handshake::HandshakeError;
use crate::serving::Convicted;

/// Why a connection was turned away or cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// Too many connections were at their handshake.
    Connections,
    /// All sessions were taken.
    Sessions,
    /// What sessions keep left no room for the material of this one.
    Material,
    /// Another prediction of the same client was under way for too long.
    Turn,
    /// One side speaks TLS and the other does without, or the TLS handshake failed.
    Tls,
    /// No certificate came that is accepted.
    Certificate,
    /// The client was silent for too long.
    Timeout,
    /// The connection broke off.
    Disconnected,
    /// The client speaks another wire version.
    Version,
    /// The client named no model that is served.
    Model,
    /// The model is not the one that the client pinned.
    Pin,
    /// Client and server derive different parameters from the model.
    Parameters,
    /// The client sent something else than was due.
    Protocol,
    /// The client failed a check that no honest client fails.
    Cheating,
    /// The client left when nothing was due of it any more but the check.
    Unchecked,
    /// The client refused to go on.
    Refused,
    /// The server's own fault: a panic.
    Panic,
    /// The server's own fault: a disk, randomness, or whatever else it could not do.
    Server,
}

impl Cause {
    /// The cause of an error that ended a session.
    pub(super) fn of_session(error: &(dyn Error + 'static)) -> Self {
        if error.is::<Convicted>() {
            return Self::Cheating;
        }
        if error.is::<Exhausted>() {
            return Self::Material;
        }
        if matches!(error.downcast_ref(), Some(StoreError::Taken { .. })) {
            return Self::Turn;
        }
        if let Some(error) = error.downcast_ref::<HandshakeError>() {
            return Self::of_handshake(error);
        }
        if let Some(error) = error.downcast_ref::<ExecutionError>() {
            return match error {
                error if error.is_dishonest() => Self::Cheating,
                ExecutionError::TooMuchAhead { .. } => Self::Material,
                ExecutionError::Step { source: ProtocolError::Unchecked(error), .. } => {
                    match Self::of_channel(error) {
                        Self::Protocol => Self::Protocol,
                        _ => Self::Unchecked,
                    }
                }
                // Nothing but what the peer sent can fail in a step that was built.
                ExecutionError::Step { .. } | ExecutionError::Setup(_) => {
                    error.channel().map_or(Self::Protocol, Self::of_channel)
                }
                error => error.channel().map_or(Self::Server, Self::of_channel),
            };
        }
        error.downcast_ref().map_or(Self::Server, Self::of_channel)
    }

    /// The cause of an error before there was a session.
    pub(super) const fn of_connection(error: &NetError) -> Self {
        match error {
            NetError::HandshakeTimedOut { .. } => Self::Timeout,
            NetError::HandshakeClosed => Self::Disconnected,
            NetError::Certificate(_)
            | NetError::SelfIssued
            | NetError::Term(_)
            | NetError::OwnCertificate(_) => Self::Certificate,
            NetError::Plaintext | NetError::Http | NetError::Tls(_) => Self::Tls,
            NetError::Web(_) => Self::Protocol,
            NetError::Channel(error) => Self::of_channel(error),
            _ => Self::Server,
        }
    }

    const fn of_handshake(error: &HandshakeError) -> Self {
        match error {
            HandshakeError::Version { .. } => Self::Version,
            HandshakeError::UnknownModel { .. } => Self::Model,
            HandshakeError::WrongModel { .. } => Self::Pin,
            HandshakeError::Parameters => Self::Parameters,
            HandshakeError::Tls => Self::Tls,
            HandshakeError::Channel(error) => Self::of_channel(error),
            HandshakeError::Stranger
            | HandshakeError::Role { .. }
            | HandshakeError::Confirmation
            | HandshakeError::OnlyListed => Self::Protocol,
        }
    }

    const fn of_channel(error: &ChannelError) -> Self {
        match error {
            ChannelError::Unexpected { .. } | ChannelError::Malformed { .. } => Self::Protocol,
            ChannelError::Refused(_) => Self::Refused,
            ChannelError::TimedOut => Self::Timeout,
            ChannelError::OwnCertificate(_) => Self::Certificate,
            _ => Self::Disconnected,
        }
    }
}

#[cfg(test)]
mod tests {
    use lanner_wire::Refusal;

    use super::*;

    #[test]
    fn errors_of_a_session_have_a_cause_each() {
        let unexpected = || ChannelError::Malformed { what: "message" };
        let step = |source| ExecutionError::Step { step: "output".into(), source };
        let cases: [(Box<dyn Error>, Cause); 18] = [
            (Box::new(Exhausted { bytes: 3, held: 1, limit: 2 }), Cause::Material),
            (Box::new(ExecutionError::TooMuchAhead { bytes: 3, most: 2 }), Cause::Material),
            (Box::new(StoreError::Taken { path: "convictions".into(), seconds: 1.0 }), Cause::Turn),
            (Box::new(HandshakeError::Version { ours: 1, theirs: 2 }), Cause::Version),
            (Box::new(HandshakeError::UnknownModel { name: "secret".into() }), Cause::Model),
            (Box::new(HandshakeError::wrong_model(&[1; 32], &[2; 32])), Cause::Pin),
            (Box::new(HandshakeError::Channel(ChannelError::TimedOut)), Cause::Timeout),
            (Box::new(ExecutionError::Channel(unexpected())), Cause::Protocol),
            (Box::new(ExecutionError::Setup(ChannelError::Disconnected.into())), Cause::Disconnected),
            (Box::new(ExecutionError::NoStore), Cause::Server),
            (Box::new(ChannelError::Refused(Refusal::Refused)), Cause::Refused),
            (Box::new(step(ProtocolError::Cheating)), Cause::Cheating),
            (Box::new(step(ProtocolError::Unchecked(ChannelError::Disconnected))), Cause::Unchecked),
            (Box::new(step(ProtocolError::Unchecked(unexpected()))), Cause::Protocol),
            (Box::new(step(ProtocolError::Channel(ChannelError::Disconnected))), Cause::Disconnected),
            (Box::new(Convicted::Elsewhere), Cause::Cheating),
            (Box::new(Convicted::Nobody), Cause::Cheating),
            ("something else".into(), Cause::Server),
        ];
        for (error, cause) in cases {
            assert_eq!(Cause::of_session(&*error), cause, "{error}");
        }
    }

    #[test]
    fn errors_of_a_connection_have_a_cause_each() {
        let cases = [
            (NetError::Plaintext, Cause::Tls),
            (NetError::Http, Cause::Tls),
            (NetError::Web("a page".into()), Cause::Protocol),
            (NetError::HandshakeTimedOut { seconds: 1 }, Cause::Timeout),
            (NetError::HandshakeClosed, Cause::Disconnected),
            (NetError::Certificate("unknown".into()), Cause::Certificate),
            (NetError::Channel(ChannelError::Disconnected), Cause::Disconnected),
        ];
        for (error, cause) in cases {
            assert_eq!(Cause::of_connection(&error), cause, "{error}");
        }
    }
}
