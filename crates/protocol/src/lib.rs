//! Two-party protocols, one file each, beside their costs.
//!
//! The client owns the data and the secret key, the server owns the model. Protocol code is blocking code over a
//! [`lanner_wire::Channel`] and reads like its paper's message diagram; it knows no transport and no graph.
#![allow(clippy::doc_markdown, reason = "ReLU is the field's name, not code")]

pub mod convert;
mod cost;
mod error;
mod kind;
pub mod linear;
pub mod local;
pub mod nonlinear;
mod party;
mod samples;
pub mod spectral;
pub mod step;

pub use cost::{Cost, OfflineCost};
pub use error::ProtocolError;
pub use party::Party;
pub use samples::Samples;
