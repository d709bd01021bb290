use lanner_primitives::{Block, Prg};
use lanner_wire::Channel;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::engine::{Engine, Grower, Trees};
use super::parameters::Parameters;
use super::tree;
use crate::derandomize::correct;
use crate::{CorrelatedSender, CotSender, OtError, TransferHashes, kind};

/// The sender of silent transfers.
pub struct SilentSender {
    /// Where the first transfers come from, and whose delta and hashes are kept.
    source: CotSender,
    engine: Engine,
    roots: Prg,
    /// The index of the next transfer.
    index: u64,
}

impl SilentSender {
    /// Sets up against [`super::SilentReceiver::setup`], from a source that then serves no one else.
    ///
    /// # Errors
    /// Any failure of the channel.
    pub fn setup<R: CryptoRng + ?Sized>(
        channel: &mut dyn Channel,
        mut source: CotSender,
        parameters: Parameters,
        rng: &mut R,
    ) -> Result<Self, OtError> {
        let count = Parameters::SMALLEST.reserve();
        let mut start = Zeroizing::new(Vec::new());
        let index = source.extend_random(channel, count, &mut start)? + count as u64;
        start.iter_mut().for_each(|q| *q = q.with_lsb(false));
        let mut roots = Prg::new(lanner_primitives::Seed::random(rng));
        let mut grower = Roots { delta: source.delta(), rng: &mut roots };
        let engine = Engine::bootstrap(parameters, start, channel, source.hashes(), &mut grower)?;
        Ok(Self { source, engine, roots, index })
    }

    fn take(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
        out: &mut Vec<Block>,
    ) -> Result<u64, OtError> {
        let mut grower = Roots { delta: self.source.delta(), rng: &mut self.roots };
        self.engine.take(count, channel, self.source.hashes(), &mut grower, out, |_| {})?;
        let first = self.index;
        self.index += count as u64;
        Ok(first)
    }
}

/// Grows the sender's trees from random roots.
struct Roots<'a> {
    delta: Block,
    rng: &'a mut Prg,
}

impl Grower for Roots<'_> {
    fn grow(
        &mut self,
        channel: &mut dyn Channel,
        trees: &Trees<'_>,
        tags: &mut [Block],
        out: &mut Vec<Block>,
    ) -> Result<(), OtError> {
        let mut message = trees.message();
        let roots = Zeroizing::new(trees.roots(self.rng));
        let parts = trees.parts(&mut message, tags).zip(roots.iter());
        let delta = self.delta;
        trees.each(parts, out, |((blocks, tags), root), hash, q, leaves| {
            blocks[q.len()] = tree::grow(&hash, delta, *root, q, blocks, leaves, tags);
        });
        let digest = trees.digest(&message, tags);
        message.set_digest(&digest);
        // S -> R: the left sums of every level of every tree and the sum of its tags; the digest of all tags
        channel.send(kind::TREES, message.as_bytes())?;
        Ok(channel.flush()?)
    }
}

impl CorrelatedSender for SilentSender {
    fn delta(&self) -> Block {
        self.source.delta()
    }

    fn hashes(&self) -> &TransferHashes {
        self.source.hashes()
    }

    fn extend(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
        out: &mut Vec<Block>,
    ) -> Result<u64, OtError> {
        let start = out.len();
        let first = self.take(channel, count, out)?;
        correct(channel, self.delta(), &mut out[start..])?;
        Ok(first)
    }

    fn extend_random(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
        out: &mut Vec<Block>,
    ) -> Result<u64, OtError> {
        self.take(channel, count, out)
    }
}
