//! Oblivious transfer: base, SoftSpoken and silent correlated, and arithmetic correlated.
//!
//! | module | what the sender gets | what the receiver gets |
//! |---|---|---|
//! | [`base`] | key pairs | one key of each pair; public-key cryptography, once a session |
//! | [`softspoken`] | `delta`, `q[i]` | choices `x[i]` and `t[i] = q[i] xor x[i] * delta` |
//! | [`silent`] | as [`softspoken`], with almost no bytes | |
//! | [`arithmetic`] | `a[i]`-correlated share | the share that completes `x[i] * a[i]` in `Z_m` |
//!
//! [`arithmetic`] speaks to a [`CorrelatedSender`] or [`CorrelatedReceiver`], so another source of
//! correlated transfers can take its place.
//!
//! Threat model: [`base`] and [`softspoken`] hold against malicious parties, of whom a receiver that cheats is caught before a transfer is given out; for [`silent`]'s trees
//! and what [`arithmetic`] sends parties are semi-honest. [`SECURITY_BITS`] of what is hashed, and those of [`base`] and [`silent`]. A peer's bytes may be anything all the same: every
//! message has one length, known from public counts, and points are decoded strictly.
//!
//! One direction is one pair of values: a session that transfers both ways sets up two, each with its own `delta`.

pub mod arithmetic;
pub mod base;
mod correlated;
mod cost;
mod derandomize;
mod error;
mod hashes;
mod kind;
pub mod silent;
pub mod softspoken;

pub use correlated::{CorrelatedReceiver, CorrelatedSender};
pub use cost::Cost;
pub use error::OtError;
pub use hashes::{MAX_WIDTH, SECURITY_BITS, TransferHashes};
pub use silent::{SilentReceiver, SilentSender};
pub use softspoken::{CotReceiver, CotSender, random_delta};
