use lanner_primitives::Block;
use lanner_wire::Channel;

use super::{chunk_transfers, mask_bytes};
use crate::derandomize::receive_flips;
use crate::error::expect_length;
use crate::random::RandomPairs;
use crate::{OtError, kind};

/// Sends one pair of blocks for each transfer of `material`.
///
/// # Errors
/// [`OtError::Length`] unless there is a pair for each transfer; any failure of the channel.
pub fn send_blocks(
    material: RandomPairs,
    channel: &mut dyn Channel,
    messages: &[[Block; 2]],
) -> Result<(), OtError> {
    expect_length("message pairs", material.len(), messages.len())?;
    let flips = receive_flips(channel, material.len())?;
    let keys = material.zeros().iter().zip(material.ones()).zip(flips.iter());
    let mut masked = Vec::with_capacity(messages.len().min(chunk_transfers(Block::BYTES)));
    for (i, (pair, keys)) in messages.iter().zip(keys).enumerate() {
        let [k0, k1] = ordered(keys);
        masked.push([pair[0] ^ k0, pair[1] ^ k1]);
        if masked.len() == chunk_transfers(Block::BYTES) || i + 1 == messages.len() {
            channel.send(kind::MASKED, Block::slice_as_bytes(masked.as_flattened()))?;
            masked.clear();
        }
    }
    channel.flush()?;
    Ok(())
}

/// Sends one pair of strings of `length` bytes for each transfer of `material`; `zeros` and `ones` have the strings for
/// choice 0 and choice 1 one after the other.
///
/// # Errors
/// [`OtError::Length`] unless there is a pair for each transfer; any failure of the channel.
pub fn send_bytes(
    material: RandomPairs,
    channel: &mut dyn Channel,
    length: usize,
    zeros: &[u8],
    ones: &[u8],
) -> Result<(), OtError> {
    let expected = material.len().saturating_mul(length);
    expect_length("message bytes", expected, zeros.len())?;
    expect_length("message bytes", expected, ones.len())?;
    let flips = receive_flips(channel, material.len())?;
    if length == 0 {
        return Ok(());
    }
    let keys = material.zeros().iter().zip(material.ones()).zip(flips.iter());
    let pairs = zeros.chunks_exact(length).zip(ones.chunks_exact(length));
    let chunk = chunk_transfers(length);
    let mut masked = Vec::with_capacity(2 * length * chunk.min(material.len()));
    for (i, ((zero, one), keys)) in pairs.zip(keys).enumerate() {
        for (message, key) in [zero, one].into_iter().zip(ordered(keys)) {
            let start = masked.len();
            masked.extend_from_slice(message);
            mask_bytes(key, &mut masked[start..]);
        }
        if masked.len() == 2 * length * chunk || i + 1 == material.len() {
            channel.send(kind::MASKED, &masked)?;
            masked.clear();
        }
    }
    channel.flush()?;
    Ok(())
}

/// The keys that mask the messages for choice 0 and choice 1; the flip is public.
fn ordered(((zero, one), flip): ((&Block, &Block), bool)) -> [Block; 2] {
    if flip { [*one, *zero] } else { [*zero, *one] }
}
