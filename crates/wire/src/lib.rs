//! Bounded encoding and the blocking channel that every protocol speaks over.
//!
//! A message is a frame: a four-byte little-endian length, a two-byte [`Kind`], the payload. Both parties know each
//! message's kind and exact length from the public architecture, so a frame that differs is refused before any
//! memory is allocated for it.

mod channel;

pub use channel::{Channel, ChannelError, Kind, Refusal, Traffic};
