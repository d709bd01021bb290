//! Every integration test of this crate, in one binary.
#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]

mod base;
mod common;
mod correlated;
mod cost;
mod silent;
mod threads;
mod uncorrelated;
mod uniform;
