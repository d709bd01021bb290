use lanner_primitives::Block;
use lanner_wire::{Channel, pack_bits};
use zeroize::Zeroizing;

use super::{CHUNK, Group};
use crate::error::expect_length;
use crate::{CorrelatedSender, OtError, kind};

/// Correlates with the receiver's given bits, against [`super::receive`]: returns the sender's shares, below `m`.
///
/// # Errors
/// [`OtError::Range`] if a correlation is not below `m`; any failure of the channel.
pub fn send<S: CorrelatedSender + ?Sized>(
    source: &mut S,
    channel: &mut dyn Channel,
    group: Group,
    correlations: &[u64],
) -> Result<Zeroizing<Vec<u64>>, OtError> {
    check(group, correlations)?;
    let mut q = Zeroizing::new(Vec::new());
    let first = source.extend(channel, correlations.len(), &mut q)?;
    send_extended(source, channel, group, correlations, &mut q, first)
}

/// As [`send`], with bits that the receiver draws, against [`super::receive_random`].
///
/// # Errors
/// As [`send`].
pub fn send_random<S: CorrelatedSender + ?Sized>(
    source: &mut S,
    channel: &mut dyn Channel,
    group: Group,
    correlations: &[u64],
) -> Result<Zeroizing<Vec<u64>>, OtError> {
    check(group, correlations)?;
    let mut q = Zeroizing::new(Vec::new());
    let first = source.extend_random(channel, correlations.len(), &mut q)?;
    send_extended(source, channel, group, correlations, &mut q, first)
}

/// The second half of [`send_random`], for transfers `q` from index `first` on that `source` extended before: only sends, so that
/// the correlations may depend on what was done in between.
///
/// # Errors
/// As [`send`]; [`OtError::Length`] unless there is a correlation for each transfer.
pub fn send_extended<S: CorrelatedSender + ?Sized>(
    source: &S,
    channel: &mut dyn Channel,
    group: Group,
    correlations: &[u64],
    q: &mut [Block],
    first: u64,
) -> Result<Zeroizing<Vec<u64>>, OtError> {
    expect_length("correlations", q.len(), correlations.len())?;
    check(group, correlations)?;
    let mut shares = Zeroizing::new(Vec::with_capacity(q.len()));
    let mut ones = Zeroizing::new(Vec::with_capacity(q.len().min(CHUNK)));
    let mut index = first;
    for (zeros, correlations) in q.chunks_mut(CHUNK).zip(correlations.chunks(CHUNK)) {
        ones.clear();
        ones.extend_from_slice(zeros);
        source.hash().hash_in_place(zeros, index);
        source.hash().hash_masked_in_place(&mut ones, source.delta(), index);
        let mut corrections = Vec::with_capacity(zeros.len());
        for ((k0, k1), a) in zeros.iter().zip(ones.iter()).zip(correlations) {
            let (k0, minus_k1) = (group.map(*k0), group.negate(group.map(*k1)));
            corrections.push(group.add(group.add(k0, minus_k1), *a));
            shares.push(group.negate(k0));
        }
        channel.send(kind::ARITHMETIC, &pack_bits(&corrections, group.bits()))?;
        index += zeros.len() as u64;
    }
    channel.flush()?;
    Ok(shares)
}

fn check(group: Group, correlations: &[u64]) -> Result<(), OtError> {
    // Folded without an early end: how long it takes says nothing about the values.
    let fits = correlations.iter().fold(true, |fits, a| fits & group.contains(*a));
    if fits { Ok(()) } else { Err(OtError::Range { what: "correlation" }) }
}
