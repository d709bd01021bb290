use lanner_primitives::PrimitivesError;
use lanner_wire::{ChannelError, DecodeError};
use thiserror::Error;

/// What can go wrong in a transfer. No variant carries a secret value.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OtError {
    /// The channel failed, or the peer's message is not the one due.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// A delta whose lowest bit is not one.
    #[error("the lowest bit of delta must be one")]
    Delta,
    /// Two inputs of one call have different lengths, or not the length of the material.
    #[error("{got} {what} where {expected} were due")]
    Length {
        /// What was counted.
        what: &'static str,
        /// The count that was due.
        expected: usize,
        /// The count that came.
        got: usize,
    },
    /// A modulus or bit width outside the supported range, or a correlation outside the ring.
    #[error("{what} out of range")]
    Range {
        /// The name of the value.
        what: &'static str,
    },
    /// The peer's messages are well formed, and no honest party's: what they would give away is kept, and the source is of no use any more.
    #[error(
        "the peer's {what} contradict each other, which an honest peer's never do: the session is over, and what it made is gone; \
             open another one with a peer that follows the protocol"
    )]
    Dishonest {
        /// What was checked.
        what: &'static str,
    },
    /// A local primitive was misused.
    #[error(transparent)]
    Primitives(#[from] PrimitivesError),
}

impl From<DecodeError> for OtError {
    fn from(error: DecodeError) -> Self {
        Self::Channel(error.into())
    }
}

/// Checks a count against another of the same call.
pub(crate) fn expect_length(what: &'static str, expected: usize, got: usize) -> Result<(), OtError> {
    if expected == got { Ok(()) } else { Err(OtError::Length { what, expected, got }) }
}
