use lanner_primitives::{Bits, Block};
use lanner_wire::{Channel, ChannelError, packed_len, unpack_bits};
use zeroize::Zeroizing;

use super::{CHUNK, Group};
use crate::{CorrelatedReceiver, OtError, kind};

/// Receives shares of the correlations where the given bits are one, against [`super::send`]; shares are below `m`.
///
/// # Errors
/// Any failure of the channel, [`ChannelError::Malformed`] if a correction is not below `m`.
pub fn receive<R: CorrelatedReceiver + ?Sized>(
    source: &mut R,
    channel: &mut dyn Channel,
    group: Group,
    choices: &Bits,
) -> Result<Zeroizing<Vec<u64>>, OtError> {
    let mut t = Zeroizing::new(Vec::new());
    let first = source.extend(channel, choices, &mut t)?;
    correct(source, channel, group, choices, &mut t, first)
}

/// As [`receive`], with `count` bits that are drawn here, against [`super::send_random`]; returns them too.
///
/// # Errors
/// As [`receive`].
pub fn receive_random<R: CorrelatedReceiver + ?Sized>(
    source: &mut R,
    channel: &mut dyn Channel,
    group: Group,
    count: usize,
) -> Result<(Bits, Zeroizing<Vec<u64>>), OtError> {
    let mut t = Zeroizing::new(Vec::new());
    let (choices, first) = source.extend_random(channel, count, &mut t)?;
    let shares = correct(source, channel, group, &choices, &mut t, first)?;
    Ok((choices, shares))
}

fn correct<R: CorrelatedReceiver + ?Sized>(
    source: &R,
    channel: &mut dyn Channel,
    group: Group,
    choices: &Bits,
    t: &mut [Block],
    first: u64,
) -> Result<Zeroizing<Vec<u64>>, OtError> {
    source.hash().hash_in_place(t, first);
    let mut shares = Zeroizing::new(Vec::with_capacity(t.len()));
    let mut bits = choices.iter();
    for keys in t.chunks(CHUNK) {
        let bytes = channel.receive(kind::ARITHMETIC, packed_len(keys.len(), group.bits()))?;
        let corrections = unpack_bits(&bytes, keys.len(), group.bits())?;
        if !corrections.iter().all(|d| group.contains(*d)) {
            return Err(ChannelError::Malformed { what: "OT correction" }.into());
        }
        for ((key, d), x) in keys.iter().zip(&corrections).zip(&mut bits) {
            shares.push(group.add(group.map(*key), d & u64::from(x).wrapping_neg()));
        }
    }
    Ok(shares)
}
