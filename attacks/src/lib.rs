//! What cheating peers are made of: small models, records of honest runs, and every way to change one message of them.
//!
//! A cheating peer here is a [`Script`](script::Script): it says what it was told to, whatever it hears, then falls silent or leaves. A
//! script is an honest run's messages ([`record`](session::record)) with one of them changed ([`Mutation`](mutation::Mutation)), and
//! [`verdict`](verdict::Verdict) says how the party under attack must end. `live` has peers over sockets.
//!
//! Every run is guarded ([`guard`]): it ends in time, panics nowhere, and allocates little.

// The whole crate is test code.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]

pub mod deviant;
pub mod extent;
pub mod guard;
pub mod lanes;
pub mod live;
pub mod models;
pub mod mutation;
pub mod script;
pub mod session;
pub mod verdict;
pub mod web;
