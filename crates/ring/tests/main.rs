//! Every integration test of this crate, in one binary.
#![allow(clippy::unwrap_used, unreachable_pub)]

mod accumulate;
mod common;
mod conversion;
mod dft;
mod ntt;
mod poly;
mod sample;
