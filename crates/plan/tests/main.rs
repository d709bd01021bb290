//! Every integration test of this crate, in one binary.
#![allow(clippy::panic, clippy::unwrap_used, unreachable_pub)]

mod branches;
mod common;
mod functions;
mod hostile;
mod margins;
mod maxima;
mod networks;
mod repeating;
mod rounding;
mod select;
mod sparse;
mod spectral;
mod steps;
mod weights;
