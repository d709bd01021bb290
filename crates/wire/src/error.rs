//! Why bytes do not decode.

use thiserror::Error;

use crate::ChannelError;

/// Why bytes do not decode. Never carries a value, only names and sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Fewer bytes are left than the next field takes.
    #[error("{needed} bytes are due and {left} are left")]
    Truncated {
        /// Bytes the field takes.
        needed: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// Bytes are left after the last field.
    #[error("{left} bytes are left after the last field")]
    Trailing {
        /// Bytes that are left.
        left: usize,
    },
    /// A count or length is larger than the reader allows.
    #[error("a length of {length} where at most {limit} is allowed")]
    TooLong {
        /// The length in the bytes.
        length: usize,
        /// The largest length allowed.
        limit: usize,
    },
    /// A field has a value that no writer produces.
    #[error("malformed {what}")]
    Invalid {
        /// The name of the field.
        what: &'static str,
    },
}

impl From<DecodeError> for ChannelError {
    fn from(error: DecodeError) -> Self {
        let what = match error {
            DecodeError::Truncated { .. } => "message: too short",
            DecodeError::Trailing { .. } => "message: trailing bytes",
            DecodeError::TooLong { .. } => "message: a length over its limit",
            DecodeError::Invalid { what } => what,
        };
        Self::Malformed { what }
    }
}
