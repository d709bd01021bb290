//! Every integration test of this crate, in one binary.
#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs, unreachable_pub)]

mod common;
mod interleave;
mod known_answers;
mod laws;
mod levels;
mod noise;
mod phase;
mod products;
mod twin;
mod wire;
