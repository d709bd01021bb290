//! A fresh sharing of a shared value, whose server share was known ahead of time.
//!
//! ```text
//! C: x_C                    S: x_S; r uniform (offline)
//!       <-----------------  x_S - r
//! x_C + x_S - r             r
//! ```
//!
//! The message is uniform, since `r` is uniform and used once.

use lanner_share::{Ring, Share};
use lanner_wire::{Channel, pack_bits, packed_len, unpack_bits};

use crate::{Cost, ProtocolError, kind};

/// The server's side: moves from `share` to `fresh`, which was drawn uniformly.
///
/// # Errors
/// [`ProtocolError::Share`] if the shares do not fit together.
pub fn server(channel: &mut dyn Channel, share: &Share, fresh: Share) -> Result<Share, ProtocolError> {
    send_share(channel, kind::REMASK, &share.sub(&fresh)?)?;
    Ok(fresh)
}

/// The client's side.
///
/// # Errors
/// [`ProtocolError::Channel`] if the peer's message is not the one due.
pub fn client(channel: &mut dyn Channel, share: &Share) -> Result<Share, ProtocolError> {
    let difference = receive_share(channel, kind::REMASK, share.ring(), share.len())?;
    Ok(share.add(&difference)?)
}

/// The server opens a value to the client.
///
/// # Errors
/// Those of the channel.
pub fn reveal(channel: &mut dyn Channel, share: &Share) -> Result<(), ProtocolError> {
    send_share(channel, kind::REVEAL, share)
}

/// The client learns a value that the server opens, as signed integers.
///
/// # Errors
/// [`ProtocolError::Channel`] if the peer's message is not the one due.
pub fn learn(channel: &mut dyn Channel, share: &Share) -> Result<Vec<i64>, ProtocolError> {
    let other = receive_share(channel, kind::REVEAL, share.ring(), share.len())?;
    Ok(share.reveal(&other)?)
}

/// The cost of either: one message of `values` elements.
#[must_use]
pub fn cost(ring: Ring, values: usize) -> Cost {
    Cost::NONE.server(packed_len(values, ring.bits()))
}

fn send_share(
    channel: &mut dyn Channel,
    kind: lanner_wire::Kind,
    share: &Share,
) -> Result<(), ProtocolError> {
    Ok(channel.send(kind, &pack_bits(share.values(), share.ring().bits()))?)
}

fn receive_share(
    channel: &mut dyn Channel,
    kind: lanner_wire::Kind,
    ring: Ring,
    length: usize,
) -> Result<Share, ProtocolError> {
    let bytes = channel.receive(kind, packed_len(length, ring.bits()))?;
    let values = unpack_bits(&bytes, length, ring.bits()).map_err(lanner_wire::ChannelError::from)?;
    Share::new(ring, values).map_err(|_| lanner_wire::ChannelError::Malformed { what: "share" }.into())
}
