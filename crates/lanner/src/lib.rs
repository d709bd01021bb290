//! Private neural-network inference between a data owner and a model owner: the one crate with an API promise.
//!
//! [`Model::compile`] makes a fixed-point model of a float graph; [`Server`] serves models, [`Client`] asks one for
//! predictions, [`run`] does both in one process. Every failure is an [`Error`] of three parts: what, where, what to do.

mod auto;
mod choice;
mod client;
mod convert;
mod debug;
mod doctor;
mod error;
mod estimate;
mod file;
mod hex;
mod kernel_times;
mod keys;
mod link;
mod local;
mod manifest;
mod model;
mod modes;
mod named;
mod offers;
mod options;
mod pairings;
mod prediction;
mod progress;
mod refusals;
mod report;
mod server;
mod set_up;

pub use client::{Client, ClientConfig};
pub use debug::debug;
pub use doctor::doctor;
pub use error::{Error, ErrorKind};
pub use estimate::estimate;
pub use kernel_times::{KernelTimes, describe_kernel_times, shipped_kernel_times};
pub use keys::{MadeKeys, keygen};
pub use lanner_net::{Excerpt, NetworkProfile, Relay};
pub use lanner_plan::Cores;
pub use lanner_session::server_loop::{ComputedStep, Entry, Snapshot};
pub use lanner_store::PairingEntry;
pub use lanner_text::{Encoded, Encoder, TextError, TextInput, TokenizerFile};
pub use link::measure_link;
pub use local::run;
pub use manifest::{InputDescription, Manifest};
pub use model::{Fixed, Model};
pub use modes::modes;
pub use named::{Embeddings, NamedInput, NamedOutput};
pub use offers::{OfferedModel, list_models};
pub use options::{AutoOptions, CompileOptions, LimitOptions};
pub use pairings::{pairings, revoke};
pub use prediction::{Cost, LayerCost, Phases, Prediction};
pub use progress::{StepProgress, Watch};
pub use refusals::refusals;
pub use server::{Kept, Server, ServerConfig};
pub use set_up::{PartProgress, SetUpWatch};

/// What every fallible function of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;
