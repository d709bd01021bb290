//! The list of all two-party protocols.
//!
//! The client owns the data and the secret key, the server owns the model. Each family of protocols is a crate below this one; what they have
//! in common is `lanner-step`. Protocol code is blocking code over a `lanner_wire::Channel` and reads like its paper's message diagram; it knows
//! no transport and no graph.

mod list;

pub use list::Protocol;
