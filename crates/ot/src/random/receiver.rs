use lanner_primitives::{Bits, Block};
use lanner_wire::Channel;
use zeroize::ZeroizeOnDrop;

use crate::{CorrelatedReceiver, OtError};

/// The receiver's material of random transfers: a choice and the key it chose.
#[derive(ZeroizeOnDrop)]
pub struct RandomChoices {
    choices: Bits,
    keys: Vec<Block>,
}

impl RandomChoices {
    /// Makes `count` transfers with random choices, against [`super::RandomPairs::draw`].
    ///
    /// # Errors
    /// Any failure of the channel.
    pub fn draw<R: CorrelatedReceiver + ?Sized>(
        source: &mut R,
        channel: &mut dyn Channel,
        count: usize,
    ) -> Result<Self, OtError> {
        let mut keys = Vec::new();
        let (choices, first) = source.extend_random(channel, count, &mut keys)?;
        source.hash().hash_in_place(&mut keys, first);
        Ok(Self { choices, keys })
    }

    /// Makes a transfer for each of the given choices, against [`super::RandomPairs::offer`].
    ///
    /// # Errors
    /// Any failure of the channel.
    pub fn choose<R: CorrelatedReceiver + ?Sized>(
        source: &mut R,
        channel: &mut dyn Channel,
        choices: Bits,
    ) -> Result<Self, OtError> {
        let mut keys = Vec::new();
        let first = source.extend(channel, &choices, &mut keys)?;
        source.hash().hash_in_place(&mut keys, first);
        Ok(Self { choices, keys })
    }

    /// The number of transfers.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are no transfers.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The choices.
    #[must_use]
    pub const fn choices(&self) -> &Bits {
        &self.choices
    }

    /// The key that each choice got.
    #[must_use]
    pub fn keys(&self) -> &[Block] {
        &self.keys
    }
}
