use lanner_primitives::Block;
use lanner_wire::Channel;
use zeroize::ZeroizeOnDrop;

use crate::{CorrelatedSender, OtError};

/// The sender's material of random transfers: two independent keys each.
#[derive(ZeroizeOnDrop)]
pub struct RandomPairs {
    zeros: Vec<Block>,
    ones: Vec<Block>,
}

impl RandomPairs {
    /// Makes `count` transfers, against [`super::RandomChoices::draw`].
    ///
    /// # Errors
    /// Any failure of the channel.
    pub fn draw<S: CorrelatedSender + ?Sized>(
        source: &mut S,
        channel: &mut dyn Channel,
        count: usize,
    ) -> Result<Self, OtError> {
        let mut zeros = Vec::new();
        let first = source.extend_random(channel, count, &mut zeros)?;
        Ok(Self::hashed(source, zeros, first))
    }

    /// Makes `count` transfers, against [`super::RandomChoices::choose`].
    ///
    /// # Errors
    /// Any failure of the channel.
    pub fn offer<S: CorrelatedSender + ?Sized>(
        source: &mut S,
        channel: &mut dyn Channel,
        count: usize,
    ) -> Result<Self, OtError> {
        let mut zeros = Vec::new();
        let first = source.extend(channel, count, &mut zeros)?;
        Ok(Self::hashed(source, zeros, first))
    }

    fn hashed<S: CorrelatedSender + ?Sized>(source: &S, mut zeros: Vec<Block>, first: u64) -> Self {
        let mut ones = Vec::with_capacity(zeros.len());
        // Part by part, so that what is copied is still in the cache when it is hashed.
        for (zeros, first) in zeros.chunks_mut(PART).zip((first..).step_by(PART)) {
            let start = ones.len();
            ones.extend_from_slice(zeros);
            source.hash().hash_in_place(zeros, first);
            source.hash().hash_masked_in_place(&mut ones[start..], source.delta(), first);
        }
        Self { zeros, ones }
    }

    /// The number of transfers.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.zeros.len()
    }

    /// Whether there are no transfers.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.zeros.is_empty()
    }

    /// The keys that choice 0 gets.
    #[must_use]
    pub fn zeros(&self) -> &[Block] {
        &self.zeros
    }

    /// The keys that choice 1 gets.
    #[must_use]
    pub fn ones(&self) -> &[Block] {
        &self.ones
    }
}

/// Transfers that are hashed at a time.
const PART: usize = 1024;
