use lanner_primitives::{Block, Ring, parallel};
use lanner_wire::{Channel, pack_bits};
use zeroize::Zeroizing;

use super::{CHUNK, RUN, check_ring, map};
use crate::error::expect_length;
use crate::{CorrelatedSender, OtError, TransferHashes, kind};

/// Correlates with the receiver's given bits, against [`super::receive`]: returns the sender's shares, below `m`.
///
/// # Errors
/// [`OtError::Range`] if `m` is above `2^50` and no power of two, or a correlation not below it; any failure of the channel.
pub fn send<S: CorrelatedSender + ?Sized>(
    source: &mut S,
    channel: &mut dyn Channel,
    ring: Ring,
    correlations: &[u64],
) -> Result<Zeroizing<Vec<u64>>, OtError> {
    check(ring, correlations)?;
    let mut q = Zeroizing::new(Vec::new());
    let first = source.extend(channel, correlations.len(), &mut q)?;
    send_extended(source, channel, ring, correlations, &mut q, first)
}

/// As [`send`], with bits that the receiver draws, against [`super::receive_random`].
///
/// # Errors
/// As [`send`].
pub fn send_random<S: CorrelatedSender + ?Sized>(
    source: &mut S,
    channel: &mut dyn Channel,
    ring: Ring,
    correlations: &[u64],
) -> Result<Zeroizing<Vec<u64>>, OtError> {
    check(ring, correlations)?;
    let mut q = Zeroizing::new(Vec::new());
    let first = source.extend_random(channel, correlations.len(), &mut q)?;
    send_extended(source, channel, ring, correlations, &mut q, first)
}

/// The second half of [`send_random`], for transfers `q` from index `first` on that `source` extended before: only sends, so that
/// the correlations may depend on what was done in between.
///
/// # Errors
/// As [`send`]; [`OtError::Length`] unless there is a correlation for each transfer.
pub fn send_extended<S: CorrelatedSender + ?Sized>(
    source: &S,
    channel: &mut dyn Channel,
    ring: Ring,
    correlations: &[u64],
    q: &mut [Block],
    first: u64,
) -> Result<Zeroizing<Vec<u64>>, OtError> {
    expect_length("correlations", q.len(), correlations.len())?;
    check(ring, correlations)?;
    let mut shares = Zeroizing::new(vec![0; q.len()]);
    let (hashes, delta) = (source.hashes(), Zeroizing::new(source.delta()));
    let mut corrections = Vec::new();
    let messages = q.chunks_mut(CHUNK).zip(correlations.chunks(CHUNK)).zip(shares.chunks_mut(CHUNK));
    for (first, ((q, correlations), shares)) in (first..).step_by(CHUNK).zip(messages) {
        corrections.resize(q.len(), 0);
        let inputs = q.chunks_mut(RUN).zip(correlations.chunks(RUN));
        let outputs = shares.chunks_mut(RUN).zip(corrections.chunks_mut(RUN));
        let runs = (first..).step_by(RUN).zip(inputs).zip(outputs);
        parallel::for_each(runs, |((first, (q, correlations)), (shares, corrections))| {
            correct(hashes, *delta, ring, q, correlations, first, shares, corrections);
        });
        channel.send(kind::ARITHMETIC, &pack_bits(&corrections, ring.bits()))?;
    }
    channel.flush()?;
    Ok(shares)
}

/// The shares and the corrections `k0 - k1 + a` of the transfers from index `first` on.
#[expect(clippy::too_many_arguments, reason = "what is sent, what is kept, and what both are made of")]
fn correct(
    hashes: &TransferHashes,
    delta: Block,
    ring: Ring,
    zeros: &mut [Block],
    correlations: &[u64],
    first: u64,
    shares: &mut [u64],
    corrections: &mut [u64],
) {
    let mut ones = Zeroizing::new([Block::ZERO; RUN]);
    let ones = &mut ones[..zeros.len()];
    ones.copy_from_slice(zeros);
    hashes.hash_in_place(zeros, Block::ZERO, first);
    hashes.hash_in_place(ones, delta, first);
    let keys = zeros.iter().zip(ones.iter()).zip(correlations);
    for (((k0, k1), a), (share, correction)) in keys.zip(shares.iter_mut().zip(corrections)) {
        let (k0, k1) = (map(ring, *k0), map(ring, *k1));
        *correction = ring.add(ring.sub(k0, k1), *a);
        *share = ring.neg(k0);
    }
}

fn check(ring: Ring, correlations: &[u64]) -> Result<(), OtError> {
    check_ring(ring)?;
    // Folded without an early end: how long it takes says nothing about the values.
    let fits = correlations.iter().fold(true, |fits, a| fits & ring.contains(*a));
    if fits { Ok(()) } else { Err(OtError::Range { what: "correlation" }) }
}
