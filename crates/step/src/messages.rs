//! A share as a message.

use lanner_primitives::{Ring, Share};
use lanner_wire::{Channel, ChannelError, Kind, pack_bits, packed_len, unpack_bits};

use super::ProtocolError;

/// Sends a share's elements.
///
/// # Errors
/// Those of the channel.
pub fn send_share(channel: &mut dyn Channel, kind: Kind, share: &Share) -> Result<(), ProtocolError> {
    Ok(channel.send(kind, &pack_bits(share.values(), share.ring().bits()))?)
}

/// Receives a share of a given number of elements of a ring.
///
/// # Errors
/// [`ProtocolError::Channel`] if the peer's message is not the one due.
pub fn receive_share(
    channel: &mut dyn Channel,
    kind: Kind,
    ring: Ring,
    length: usize,
) -> Result<Share, ProtocolError> {
    let bytes = channel.receive(kind, packed_len(length, ring.bits()))?;
    let values = unpack_bits(&bytes, length, ring.bits()).map_err(ChannelError::from)?;
    Share::new(ring, values).map_err(|_| ChannelError::Malformed { what: "share" }.into())
}
