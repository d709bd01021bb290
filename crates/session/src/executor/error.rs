//! Why a plan cannot be executed.

use lanner_plan::PlanError;
use lanner_primitives::PrimitivesError;
use lanner_process::OtherProcess;
use lanner_step::ProtocolError;
use lanner_wire::{ChannelError, DecodeError};
use thiserror::Error;

/// Why a plan cannot be executed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExecutionError {
    /// A step failed.
    #[error("layer {step}: {source}")]
    Step {
        /// The step's name.
        step: String,
        /// What failed.
        source: ProtocolError,
    },
    /// The set-up failed.
    #[error("set-up: {0}")]
    Setup(#[from] ProtocolError),
    /// The channel failed.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The network cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The plan and the network, or the input, do not fit together.
    #[error("{what} does not fit the plan")]
    Mismatch {
        /// What does not fit.
        what: &'static str,
    },
    /// A prediction that is prepared takes more memory than this party may use.
    #[error("a prepared prediction takes {bytes} bytes of memory here, and {most} may be used")]
    TooMuchAhead {
        /// Bytes of material, and of what lives beside it.
        bytes: u64,
        /// How many there may be.
        most: u64,
    },
    /// An earlier exchange of the session failed half-way.
    #[error("an earlier exchange failed, so the session is out of step; open another one")]
    Broken,
    /// The session, or its material, is another process's, of which this one is a copy: both would use the same masks.
    #[error(transparent)]
    OtherProcess(#[from] OtherProcess),
    /// Material cannot be kept, or was used.
    #[error(transparent)]
    Store(#[from] lanner_store::StoreError),
    /// Material cannot be kept: a layer's needs more than a channel.
    #[error("layer {step}: its material serves this session alone and cannot be kept")]
    NotKept {
        /// The step's name.
        step: String,
    },
    /// Material is to be kept, or taken, and there is no store.
    #[error("there is no store to keep material in")]
    NoStore,
    /// Kept material is not for this party, this plan, or this release.
    #[error("the kept material is of another {what}")]
    OtherMaterial {
        /// What differs.
        what: &'static str,
    },
    /// The bytes of kept material do not decode.
    #[error("kept material: {0}")]
    Material(#[from] DecodeError),
    /// Keys are to be made or used for sessions that have none.
    #[error("sessions with this model need no keys")]
    NoKeys,
    /// Keys were made for models with other needs.
    #[error("the keys are for {have}, and sessions with this model need {need}")]
    OtherKeys {
        /// What they were made for.
        have: String,
        /// What the model's keys are.
        need: String,
    },
    /// The bytes of keys are not what was written.
    #[error("this is {what}")]
    DamagedKeys {
        /// What they are.
        what: &'static str,
    },
    /// A file of keys is of a release that writes them otherwise.
    #[error("the file of keys has version {theirs}, this release reads {ours}")]
    KeysVersion {
        /// The version that this release reads.
        ours: u32,
        /// The version of the file.
        theirs: u32,
    },
    /// The operating system gave no randomness.
    #[error(transparent)]
    Randomness(#[from] PrimitivesError),
}

impl ExecutionError {
    /// The error of the step of this name.
    pub(super) fn step(name: &str) -> impl FnOnce(ProtocolError) -> Self {
        |source| Self::Step { step: name.to_owned(), source }
    }

    /// Whether the peer failed a check that no honest peer fails: what was made with it must not be used.
    #[must_use]
    pub const fn is_dishonest(&self) -> bool {
        let (Self::Step { source, .. } | Self::Setup(source)) = self else { return false };
        source.is_dishonest()
    }

    /// The channel's error behind this one, if there is one.
    #[must_use]
    pub fn channel(&self) -> Option<&ChannelError> {
        match self {
            Self::Channel(error) => Some(error),
            Self::Step { source, .. } | Self::Setup(source) => source.channel(),
            _ => None,
        }
    }
}
