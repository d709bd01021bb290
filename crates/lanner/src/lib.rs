//! Private neural-network inference between a data owner and a model owner: the one crate with an API promise.
//!
//! [`Model::compile`] makes a fixed-point model of a float graph; [`Server`] serves models, [`Client`] asks one for
//! predictions, [`run`] does both in one process. Every failure is an [`Error`] of three parts: what, where, what to do.

#![cfg_attr(not(unix), allow(dead_code, reason = "some parts are for who compiles and serves"))]

#[cfg(unix)]
mod auto;
mod choice;
mod client;
#[cfg(unix)]
mod connect;
mod convert;
#[cfg(unix)]
mod debug;
#[cfg(unix)]
mod doctor;
mod error;
mod estimate;
#[cfg(unix)]
mod file;
mod hex;
mod kernel_times;
#[cfg(unix)]
mod keys;
mod line;
#[cfg(unix)]
mod link;
#[cfg(unix)]
mod local;
mod manifest;
#[cfg(unix)]
mod model;
mod modes;
mod named;
#[cfg(unix)]
mod offers;
mod options;
#[cfg(unix)]
mod pairings;
mod prediction;
mod progress;
#[cfg(unix)]
mod refusals;
mod report;
#[cfg(unix)]
mod server;
mod set_up;

pub use client::{Client, Wanted};
#[cfg(unix)]
pub use connect::ClientConfig;
#[cfg(unix)]
pub use debug::debug;
#[cfg(unix)]
pub use doctor::doctor;
pub use error::{Error, ErrorKind};
pub use estimate::estimate;
pub use kernel_times::{KernelTimes, describe_kernel_times, shipped_kernel_times};
#[cfg(unix)]
pub use keys::{MadeKeys, keygen};
#[cfg(unix)]
pub use lanner_net::Relay;
pub use lanner_net::{Excerpt, NetworkProfile};
pub use lanner_plan::Cores;
#[cfg(unix)]
pub use lanner_session::server_loop::{ComputedStep, Entry, Snapshot};
pub use lanner_store::PairingEntry;
pub use lanner_text::{Encoded, Encoder, TextError, TextInput, TokenizerFile};
pub use line::Line;
#[cfg(unix)]
pub use link::measure_link;
#[cfg(unix)]
pub use local::run;
pub use manifest::{InputDescription, Manifest};
#[cfg(unix)]
pub use model::{Fixed, Model};
pub use modes::modes;
pub use named::{Embeddings, NamedInput, NamedOutput};
#[cfg(unix)]
pub use offers::{OfferedModel, list_models};
pub use options::{AutoOptions, CompileOptions, LimitOptions};
#[cfg(unix)]
pub use pairings::{pairings, revoke};
pub use prediction::{Cost, LayerCost, Phases, Prediction};
pub use progress::{StepProgress, Watch};
#[cfg(unix)]
pub use refusals::refusals;
#[cfg(unix)]
pub use server::{Kept, PageFile, Server, ServerConfig, WebConfig};
pub use set_up::{PartProgress, SetUpWatch};

/// What every fallible function of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;
