use lanner_primitives::{Bits, Block};
use lanner_wire::Channel;
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

use super::{chunk_transfers, mask_bytes};
use crate::derandomize::send_flips;
use crate::random::RandomChoices;
use crate::{OtError, kind};

/// Receives the block that each choice asks for.
///
/// # Errors
/// [`OtError::Length`] unless there is a choice for each transfer; any failure of the channel.
pub fn receive_blocks(
    material: RandomChoices,
    channel: &mut dyn Channel,
    choices: &Bits,
) -> Result<Vec<Block>, OtError> {
    send_flips(channel, choices, material.choices())?;
    let mut messages = Vec::with_capacity(material.len());
    let mut masked = Vec::new();
    let mut wanted = choices.iter();
    for keys in material.keys().chunks(chunk_transfers(Block::BYTES)) {
        masked.resize(2 * keys.len(), Block::ZERO);
        channel.receive_into(kind::MASKED, Block::slice_as_bytes_mut(&mut masked))?;
        let pairs = masked.as_chunks::<2>().0;
        for (([zero, one], key), choice) in pairs.iter().zip(keys).zip(&mut wanted) {
            messages.push(*zero ^ ((*zero ^ *one) & Block::mask(choice)) ^ *key);
        }
    }
    Ok(messages)
}

/// Receives the string of `length` bytes that each choice asks for, one after the other.
///
/// # Errors
/// [`OtError::Length`] unless there is a choice for each transfer; any failure of the channel.
pub fn receive_bytes(
    material: RandomChoices,
    channel: &mut dyn Channel,
    length: usize,
    choices: &Bits,
) -> Result<Zeroizing<Vec<u8>>, OtError> {
    send_flips(channel, choices, material.choices())?;
    let mut messages = Zeroizing::new(Vec::with_capacity(material.len() * length));
    if length == 0 {
        return Ok(messages);
    }
    let mut masked = Vec::new();
    let mut wanted = choices.iter();
    for keys in material.keys().chunks(chunk_transfers(length)) {
        masked.resize(2 * length * keys.len(), 0);
        channel.receive_into(kind::MASKED, &mut masked)?;
        for ((pair, key), choice) in masked.chunks_exact(2 * length).zip(keys).zip(&mut wanted) {
            let choice = Choice::from(u8::from(choice));
            let start = messages.len();
            let (zero, one) = pair.split_at(length);
            messages.extend(zero.iter().zip(one).map(|(a, b)| u8::conditional_select(a, b, choice)));
            mask_bytes(*key, &mut messages[start..]);
        }
    }
    Ok(messages)
}
