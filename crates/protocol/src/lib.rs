//! Two-party protocols, one file each, beside their costs.
//!
//! The client owns the data and the secret key, the server owns the model. Protocol code is blocking code over a
//! [`lanner_wire::Channel`] and reads like its paper's message diagram; it knows no transport and no graph.
#![allow(clippy::doc_markdown, reason = "ReLU is the field's name, not code")]

pub mod coefficient;
mod list;
pub mod local;
pub mod packed;
pub mod spectral;
pub mod step;
pub mod tabula;
pub mod transfers;
pub mod yao;

pub use list::Protocol;
