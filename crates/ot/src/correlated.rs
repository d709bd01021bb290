//! What the protocols on top need of correlated transfers, whoever makes them.

use lanner_primitives::{Bits, Block};
use lanner_wire::Channel;

use crate::{OtError, TransferHashes};

/// The sender's side of a source of correlated transfers `t[i] = q[i] xor x[i] * delta`.
///
/// Each call must meet the receiver's call of the same name with the same count.
pub trait CorrelatedSender {
    /// The correlation; its lowest bit is one.
    fn delta(&self) -> Block;

    /// The direction's hashes, the same on both sides.
    fn hashes(&self) -> &TransferHashes;

    /// Appends `count` blocks `q[i]` to `out`, for choices that the receiver gives.
    ///
    /// Returns the index of the first, by which the transfers are hashed: indices run on over the
    /// life of the source, so none comes twice.
    ///
    /// # Errors
    /// Any failure of the channel.
    fn extend(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
        out: &mut Vec<Block>,
    ) -> Result<u64, OtError>;

    /// As [`Self::extend`], for choices that are random.
    ///
    /// # Errors
    /// Any failure of the channel.
    fn extend_random(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
        out: &mut Vec<Block>,
    ) -> Result<u64, OtError>;
}

/// The receiver's side of a source of correlated transfers.
pub trait CorrelatedReceiver {
    /// The direction's hashes, the same on both sides.
    fn hashes(&self) -> &TransferHashes;

    /// Appends `t[i] = q[i] xor choices[i] * delta` to `out`; returns the index of the first.
    ///
    /// # Errors
    /// Any failure of the channel.
    fn extend(
        &mut self,
        channel: &mut dyn Channel,
        choices: &Bits,
        out: &mut Vec<Block>,
    ) -> Result<u64, OtError>;

    /// Appends `count` blocks `t[i]` for choices it draws; returns the choices and the index of the first.
    ///
    /// # Errors
    /// Any failure of the channel.
    fn extend_random(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
        out: &mut Vec<Block>,
    ) -> Result<(Bits, u64), OtError>;
}
