//! Every integration test of this crate, in one binary.
#![allow(clippy::unwrap_used)]

mod codec;
