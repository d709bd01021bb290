//! Every integration test of this crate, in one binary.
#![allow(clippy::panic, clippy::unwrap_used)]

mod cheating;
mod common;
mod delphi;
mod described;
mod digest;
mod executor;
#[cfg(unix)]
mod forked;
mod handshake;
mod hardened;
mod hardened_sums;
mod kept;
mod loops;
mod material;
mod matrices;
mod mixed;
mod narrow;
mod overlap;
mod packed;
mod reveal_saturation;
mod saturated;
mod select;
mod server_loop;
mod sparse;
mod spectral;
mod steps;
mod unread;
mod uploads;
