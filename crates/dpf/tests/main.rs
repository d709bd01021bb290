//! Every integration test of this crate, in one binary.
#![allow(clippy::unwrap_used)]

mod comparison;
mod point;
