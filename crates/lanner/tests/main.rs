//! Every integration test of this crate, in one binary.
#![allow(clippy::panic, clippy::unwrap_used)]

mod against;
#[cfg(unix)]
mod banned;
mod equalised;
#[cfg(unix)]
mod forked;
mod functions;
mod kernel_times;
mod lying_server;
mod many_clients;
mod model_file;
mod public_half;
mod web;
