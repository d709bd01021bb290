//! Every integration test of this crate, in one binary.
#![allow(clippy::expect_used, clippy::unwrap_used, unreachable_pub)]

mod ahead;
mod common;
mod faults;
#[cfg(unix)]
mod forked;
mod lanes;
mod memory;
mod proxy;
mod tls;
mod web;
