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
    /// Shares do not fit together.
    #[error(transparent)]
    Share(#[from] lanner_primitives::ShareError),
    /// Bit vectors do not fit together.
    #[error(transparent)]
    Bits(#[from] lanner_primitives::PrimitivesError),
    /// Encryption refused its operands or parameters.
    #[error(transparent)]
    Bfv(lanner_bfv::BfvError),
    /// Oblivious transfer failed.
    #[error(transparent)]
    Ot(#[from] lanner_ot::OtError),
    /// Garbling or evaluation failed.
    #[error(transparent)]
    Gc(#[from] lanner_gc::GcError),
    /// Comparison keys refused their shapes.
    #[error(transparent)]
    Dpf(#[from] lanner_dpf::DpfError),
    /// The channel failed or the peer sent something else than was due.
    #[error(transparent)]
    Channel(#[from] lanner_wire::ChannelError),
}

/// What a protocol step gives, or why it failed.
pub type Result<T, E = ProtocolError> = std::result::Result<T, E>;

impl ProtocolError {
    /// The channel's error behind this one, if there is one.
    #[must_use]
    pub fn channel(&self) -> Option<&lanner_wire::ChannelError> {
        match self {
            Self::Channel(error) | Self::Ot(lanner_ot::OtError::Channel(error)) => Some(error),
            _ => None,
        }
    }

    /// Whether the peer failed a check that no honest peer fails: what was made with it must not be used.
    #[must_use]
    pub const fn is_dishonest(&self) -> bool {
        matches!(self, Self::Ot(lanner_ot::OtError::Dishonest { .. }))
    }
}

impl From<lanner_bfv::BfvError> for ProtocolError {
    fn from(error: lanner_bfv::BfvError) -> Self {
        match error {
            // Only a peer's bytes are decoded.
            lanner_bfv::BfvError::Decode(error) => Self::Channel(error.into()),
            error => Self::Bfv(error),
        }
    }
}
