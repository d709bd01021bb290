//! Kernels over [`Registers`](super::registers::Registers).
//!
//! They are always inlined: what instructions they may use is said where they are compiled for a set.

pub(super) mod double;
pub(super) mod encryption;
pub(super) mod hash;
pub(super) mod local_code;
pub(super) mod low_bits;
mod numbers;
pub(super) mod short_hash;
pub(super) mod siblings;
