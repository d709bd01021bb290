//! Bounded encoding and the blocking channel that every protocol speaks over.
//!
//! A message is a frame: a four-byte little-endian length, a two-byte [`Kind`], the payload. Both parties know each
//! message's kind and exact length from the public architecture, so a frame that differs is refused before any
//! memory is allocated for it.

mod bits;
mod channel;
mod encode;
mod error;
mod reader;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod writer;

pub use bits::{pack_bits, pack_bits_to, packed_len, unpack_bits};
pub use channel::{Arrivals, Channel, ChannelError, Divisible, Kind, Refusal, Traffic};
pub use encode::{Decode, Encode};
pub use error::DecodeError;
pub use reader::Reader;
pub use writer::Writer;
