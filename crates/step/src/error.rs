//! Errors of the two-party protocols.

use lanner_primitives::{Ring, Share};
use thiserror::Error;

/// Why a protocol step failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// There are more or fewer of something than the step has.
    #[error("{what}: expected {expected}, found {found}")]
    Length {
        /// What there are more or fewer of.
        what: &'static str,
        /// How many the step has.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// Elements are of another ring than the step's.
    #[error("{what}: expected elements of {expected:?}, found elements of {found:?}")]
    WrongRing {
        /// Whose elements.
        what: &'static str,
        /// The step's ring.
        expected: Ring,
        /// Theirs.
        found: Ring,
    },
    /// No step has such parameters, or such a shape.
    #[error("the parameters do not fit: {0}")]
    Parameters(&'static str),
    /// What a step reads is not what it can read.
    #[error("the inputs do not fit the step: {0}")]
    WrongInput(&'static str),
    /// What a step kept, or was sent, was made by another step.
    #[error("the material was made by another step: {0}; use each step's own, once")]
    WrongMaterial(&'static str),
    /// The model is not the one that the plan was made for.
    #[error("the model does not fit the plan: {0}; plan the model that is executed")]
    WrongModel(&'static str),
    /// The session was set up for other steps.
    #[error("the session was set up without {0}; set it up for the plan that it executes")]
    NotSetUp(&'static str),
    /// A part of a step gave less than the next one reads.
    #[error("too few results: {0}")]
    Missing(&'static str),
    /// What the peer computed is not what it committed to.
    #[error("the peer computed something else than it committed to")]
    Cheating,
    /// The peer left when nothing was due any more but what shows that it computed what it committed to.
    #[error("the peer left before its check: {0}")]
    Unchecked(#[source] lanner_wire::ChannelError),
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
    /// Refuses parameters that no step has.
    ///
    /// # Errors
    /// [`Self::Parameters`] if they are `unfit`.
    pub const fn refuse_if(unfit: bool, what: &'static str) -> Result<()> {
        if unfit { Err(Self::Parameters(what)) } else { Ok(()) }
    }

    /// Checks how many there are of something.
    ///
    /// # Errors
    /// [`Self::Length`] if there are not as many as expected.
    pub const fn check_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
        if expected == found { Ok(()) } else { Err(Self::Length { what, expected, found }) }
    }

    /// Checks that a share has `expected` elements of a ring.
    ///
    /// # Errors
    /// [`Self::WrongRing`] or [`Self::Length`] otherwise.
    pub fn check_share(what: &'static str, share: &Share, ring: Ring, expected: usize) -> Result<()> {
        if share.ring() != ring {
            return Err(Self::WrongRing { what, expected: ring, found: share.ring() });
        }
        Self::check_length(what, expected, share.len())
    }

    /// The channel's error behind this one, if there is one.
    #[must_use]
    pub fn channel(&self) -> Option<&lanner_wire::ChannelError> {
        match self {
            Self::Channel(error) | Self::Unchecked(error) | Self::Ot(lanner_ot::OtError::Channel(error)) => {
                Some(error)
            }
            _ => None,
        }
    }

    /// Whether the peer failed a check that no honest peer fails: what was made with it must not be used.
    #[must_use]
    pub const fn is_dishonest(&self) -> bool {
        matches!(
            self,
            Self::Ot(lanner_ot::OtError::Dishonest { .. })
                | Self::Bfv(lanner_bfv::BfvError::Unproved)
                | Self::Cheating
        )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_another_ring_or_length_are_refused_with_both() {
        let share = Share::zero(Ring::Pow2(8), 3);
        let check = |ring, count| ProtocolError::check_share("input of a test", &share, ring, count);
        assert!(check(Ring::Pow2(8), 3).is_ok());
        let said =
            [check(Ring::Prime(7), 3), check(Ring::Pow2(8), 4)].map(|error| error.unwrap_err().to_string());
        let expected = [
            "input of a test: expected elements of Prime(7), found elements of Pow2(8)",
            "input of a test: expected 4, found 3",
        ];
        assert_eq!(said, expected);
    }
}
