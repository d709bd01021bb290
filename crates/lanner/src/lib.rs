//! Private neural-network inference between a data owner and a model owner: the one crate with an API promise.
//!
//! [`Model::compile`] makes a fixed-point model of a float graph; [`Server`] serves models, [`Client`] asks one for
//! predictions, [`run`] does both in one process. Every failure is an [`Error`] of three parts: what, where, what to do.

#![cfg_attr(target_family = "wasm", allow(dead_code, reason = "some parts are for who compiles and serves"))]

#[cfg(not(target_family = "wasm"))]
mod auto;
mod choice;
mod client;
#[cfg(not(target_family = "wasm"))]
mod connect;
mod convert;
#[cfg(not(target_family = "wasm"))]
mod debug;
#[cfg(not(target_family = "wasm"))]
mod doctor;
mod error;
mod estimate;
#[cfg(not(target_family = "wasm"))]
mod file;
mod hex;
mod kernel_times;
#[cfg(not(target_family = "wasm"))]
mod keys;
mod line;
#[cfg(not(target_family = "wasm"))]
mod link;
#[cfg(not(target_family = "wasm"))]
mod local;
mod manifest;
#[cfg(not(target_family = "wasm"))]
mod model;
mod modes;
mod named;
#[cfg(not(target_family = "wasm"))]
mod offers;
mod options;
#[cfg(not(target_family = "wasm"))]
mod pairings;
mod prediction;
mod progress;
#[cfg(not(target_family = "wasm"))]
mod refusals;
mod report;
#[cfg(not(target_family = "wasm"))]
mod server;
mod set_up;

pub use client::{Client, Wanted};
#[cfg(not(target_family = "wasm"))]
pub use connect::ClientConfig;
#[cfg(not(target_family = "wasm"))]
pub use debug::debug;
#[cfg(not(target_family = "wasm"))]
pub use doctor::doctor;
pub use error::{Error, ErrorKind};
pub use estimate::estimate;
pub use kernel_times::{KernelTimes, describe_kernel_times, shipped_kernel_times};
#[cfg(not(target_family = "wasm"))]
pub use keys::{MadeKeys, keygen};
#[cfg(not(target_family = "wasm"))]
pub use lanner_net::Relay;
pub use lanner_net::{Excerpt, NetworkProfile};
pub use lanner_plan::Cores;
#[cfg(not(target_family = "wasm"))]
pub use lanner_session::server_loop::{ComputedStep, Entry, Snapshot};
pub use lanner_store::PairingEntry;
pub use lanner_text::{Encoded, Encoder, TextError, TextInput, TokenizerFile};
pub use line::Line;
#[cfg(not(target_family = "wasm"))]
pub use link::measure_link;
#[cfg(not(target_family = "wasm"))]
pub use local::run;
pub use manifest::{InputDescription, Manifest};
#[cfg(not(target_family = "wasm"))]
pub use model::{Fixed, Model};
pub use modes::modes;
pub use named::{Embeddings, NamedInput, NamedOutput};
#[cfg(not(target_family = "wasm"))]
pub use offers::{OfferedModel, list_models};
pub use options::{AutoOptions, CompileOptions, LimitOptions};
#[cfg(not(target_family = "wasm"))]
pub use pairings::{pairings, revoke};
pub use prediction::{Cost, LayerCost, Phases, Prediction};
pub use progress::{StepProgress, Watch};
#[cfg(not(target_family = "wasm"))]
pub use refusals::refusals;
#[cfg(not(target_family = "wasm"))]
pub use server::{Kept, PageFile, Server, ServerConfig, WebConfig};
pub use set_up::{PartProgress, SetUpWatch};

/// What every fallible function of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;
