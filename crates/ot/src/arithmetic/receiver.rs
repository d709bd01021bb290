use lanner_primitives::{Bits, Block, Ring, parallel};
use lanner_wire::{Channel, ChannelError, packed_len, unpack_bits};
use zeroize::Zeroizing;

use super::{CHUNK, RUN, check_ring, map};
use crate::error::expect_length;
use crate::{CorrelatedReceiver, OtError, TransferHashes, kind};

/// Receives shares of the correlations where the given bits are one, against [`super::send`]; shares are below `m`.
///
/// # Errors
/// Any failure of the channel, [`ChannelError::Malformed`] if a correction is not below `m`, [`OtError::Range`] as for [`super::send`].
pub fn receive<R: CorrelatedReceiver + ?Sized>(
    source: &mut R,
    channel: &mut dyn Channel,
    ring: Ring,
    choices: &Bits,
) -> Result<Zeroizing<Vec<u64>>, OtError> {
    let mut t = Zeroizing::new(Vec::new());
    let first = source.extend(channel, choices, &mut t)?;
    receive_extended(source.hashes(), channel, ring, choices, &mut t, first)
}

/// As [`receive`], with `count` bits that are drawn here, against [`super::send_random`]; returns them too.
///
/// # Errors
/// As [`receive`].
pub fn receive_random<R: CorrelatedReceiver + ?Sized>(
    source: &mut R,
    channel: &mut dyn Channel,
    ring: Ring,
    count: usize,
) -> Result<(Bits, Zeroizing<Vec<u64>>), OtError> {
    let mut t = Zeroizing::new(Vec::new());
    let (choices, first) = source.extend_random(channel, count, &mut t)?;
    let shares = receive_extended(source.hashes(), channel, ring, &choices, &mut t, first)?;
    Ok((choices, shares))
}

/// The second half of [`receive_random`], for transfers `t` from index `first` on that were extended before: only
/// receives, so that others may be extended in between.
///
/// # Errors
/// As [`receive`]; [`OtError::Length`] unless there is a choice for each transfer.
pub fn receive_extended(
    hashes: &TransferHashes,
    channel: &mut dyn Channel,
    ring: Ring,
    choices: &Bits,
    t: &mut [Block],
    first: u64,
) -> Result<Zeroizing<Vec<u64>>, OtError> {
    expect_length("choices", t.len(), choices.len())?;
    check_ring(ring)?;
    let runs = |t| (first..).step_by(RUN).zip(<[Block]>::chunks_mut(t, RUN));
    parallel::for_each(runs(t), |(first, t)| hashes.hash_in_place(t, Block::ZERO, first));
    let mut shares = Zeroizing::new(vec![0; t.len()]);
    for (number, (keys, shares)) in t.chunks(CHUNK).zip(shares.chunks_mut(CHUNK)).enumerate() {
        let bytes = channel.receive(kind::ARITHMETIC, packed_len(keys.len(), ring.bits()))?;
        let corrections = unpack_bits(&bytes, keys.len(), ring.bits())?;
        if !corrections.iter().all(|d| ring.contains(*d)) {
            return Err(ChannelError::Malformed { what: "OT correction" }.into());
        }
        let inputs = keys.chunks(RUN).zip(corrections.chunks(RUN));
        let runs = (number * CHUNK..).step_by(RUN).zip(inputs.zip(shares.chunks_mut(RUN)));
        parallel::for_each(runs, |(first, ((keys, corrections), shares))| {
            for (i, ((key, d), share)) in (first..).zip(keys.iter().zip(corrections).zip(shares)) {
                *share = ring.add(map(ring, *key), d & u64::from(choices.get(i)).wrapping_neg());
            }
        });
    }
    Ok(shares)
}
