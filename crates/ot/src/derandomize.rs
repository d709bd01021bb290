//! From random choices to given ones ([Bea95](https://doi.org/10.1007/3-540-44750-4_8)): the receiver sends its choices against its random
//! ones, a uniform bit for each transfer.

use lanner_primitives::{Bits, Block};
use lanner_wire::{Channel, ChannelError};

use crate::error::expect_length;
use crate::{OtError, kind};

/// Sends the differences between the choices and the random ones of their transfers.
pub(crate) fn send_flips(channel: &mut dyn Channel, choices: &Bits, random: &Bits) -> Result<(), OtError> {
    expect_length("choices", random.len(), choices.len())?;
    if !choices.is_empty() {
        let flips = choices.xor(random)?;
        channel.send(kind::FLIPS, &flips.to_bytes())?;
    }
    Ok(())
}

/// Receives the differences for `count` transfers.
pub(crate) fn receive_flips(channel: &mut dyn Channel, count: usize) -> Result<Bits, OtError> {
    if count == 0 {
        return Ok(Bits::default());
    }
    let bytes = channel.receive(kind::FLIPS, Bits::byte_len(count))?;
    let malformed = |_| ChannelError::Malformed { what: "OT choice bits" };
    Ok(Bits::from_bytes(count, &bytes).map_err(malformed)?)
}

/// Receives the differences and corrects the sender's half of correlated transfers by them.
pub(crate) fn correct(channel: &mut dyn Channel, delta: Block, q: &mut [Block]) -> Result<(), OtError> {
    let flips = receive_flips(channel, q.len())?;
    for (q, flip) in q.iter_mut().zip(flips.iter()) {
        *q ^= delta & Block::mask(flip);
    }
    Ok(())
}
