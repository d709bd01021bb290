use lanner_primitives::{Bits, Block, low_bits};
use lanner_wire::Channel;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use super::engine::{Engine, Grower, Trees};
use super::parameters::Parameters;
use super::tree;
use crate::derandomize::send_flips;
use crate::{CorrelatedReceiver, CotReceiver, OtError, TransferHashes, kind};

/// The receiver of silent transfers.
pub struct SilentReceiver {
    /// Where the first transfers come from, and whose hashes are kept.
    source: CotReceiver,
    engine: Engine,
    /// The index of the next transfer.
    index: u64,
}

impl SilentReceiver {
    /// Sets up against [`super::SilentSender::setup`], from a source that then serves no one else.
    ///
    /// # Errors
    /// Any failure of the channel.
    pub fn setup(
        channel: &mut dyn Channel,
        mut source: CotReceiver,
        parameters: Parameters,
    ) -> Result<Self, OtError> {
        let count = Parameters::SMALLEST.reserve();
        let mut start = Zeroizing::new(Vec::new());
        let (choices, first) = source.extend_random(channel, count, &mut start)?;
        start.iter_mut().zip(choices.iter()).for_each(|(u, x)| *u = u.with_lsb(x));
        let engine = Engine::bootstrap(parameters, start, channel, source.hashes(), &mut Completed)?;
        Ok(Self { source, engine, index: first + count as u64 })
    }

    /// Only trees that pass their check give transfers: after one that does not, there are none any more.
    fn take(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
        out: &mut Vec<Block>,
    ) -> Result<(Bits, u64), OtError> {
        // The choices are the low bits, which are read while blocks are in the cache.
        let mut choices = Zeroizing::new(Vec::with_capacity(count.div_ceil(64)));
        if self.engine.is_forgotten() {
            return Err(DISHONEST);
        }
        let start = out.len();
        let taken = self.engine.take(count, channel, self.source.hashes(), &mut Completed, out, |made| {
            let whole = if made.len() < count { made.len() - made.len() % 64 } else { count };
            low_bits(&made[64 * choices.len()..whole], &mut choices);
        });
        if taken.is_err() {
            out[start..].zeroize();
            out.truncate(start);
        }
        if matches!(taken, Err(OtError::Dishonest { .. })) {
            self.engine.forget();
        }
        taken?;
        let first = self.index;
        self.index += count as u64;
        Ok((Bits::from_words(count, std::mem::take(&mut choices)), first))
    }
}

/// What a sender has done whose trees fail their check.
const DISHONEST: OtError = OtError::Dishonest { what: "silent trees" };

/// Completes the sender's trees.
struct Completed;

impl Grower for Completed {
    fn grow(
        &mut self,
        channel: &mut dyn Channel,
        trees: &Trees<'_>,
        tags: &mut [Block],
        out: &mut Vec<Block>,
    ) -> Result<(), OtError> {
        let mut message = trees.message();
        channel.receive_into(kind::TREES, message.as_bytes_mut())?;
        trees.each(trees.parts(&mut message, tags), out, |(blocks, tags), hash, u, leaves| {
            let (sum, blocks) = (blocks[u.len()], &blocks[..u.len()]);
            tree::complete(&hash, u, blocks, sum, leaves, tags);
        });
        if bool::from(trees.digest(&message, tags).ct_eq(message.digest())) { Ok(()) } else { Err(DISHONEST) }
    }
}

impl CorrelatedReceiver for SilentReceiver {
    fn hashes(&self) -> &TransferHashes {
        self.source.hashes()
    }

    fn extend(
        &mut self,
        channel: &mut dyn Channel,
        choices: &Bits,
        out: &mut Vec<Block>,
    ) -> Result<u64, OtError> {
        let (random, first) = self.take(channel, choices.len(), out)?;
        send_flips(channel, choices, &random)?;
        Ok(first)
    }

    fn extend_random(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
        out: &mut Vec<Block>,
    ) -> Result<(Bits, u64), OtError> {
        self.take(channel, count, out)
    }
}
