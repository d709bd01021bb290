//! Errors of the two-party protocols.

use thiserror::Error;

/// Why a protocol step failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A shape or a length does not fit the layer.
    #[error("the shape does not fit: {what}")]
    Shape {
        /// What does not fit.
        what: &'static str,
    },
}
