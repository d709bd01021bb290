//! Properties of what this crate offers, against naive twins.

mod accumulate;
mod common;
mod conversion;
mod dft;
mod ntt;
mod poly;
mod sample;
