//! The session's state of garbling and of evaluating circuits.

use lanner_gc::{GcError, batches};
use lanner_ot::{
    CorrelatedReceiver, CorrelatedSender, CotReceiver, CotSender, TransferHashes, random_delta, softspoken,
};
use lanner_primitives::{Bits, Block};
use lanner_wire::Channel;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::{Cost, ProtocolError, kind};

/// The server's state of garbling in one session: delta is the correlation of the oblivious transfers.
pub struct GarblingSession<S> {
    cot: S,
    salt: Block,
    next_batch: u64,
}

/// The client's state of evaluation in one session.
pub struct EvaluationSession<R> {
    cot: R,
    salt: Block,
    next_batch: u64,
}

/// What a circuit's gates are hashed with: the session's salt, and the number of the first batch.
#[derive(Clone, Copy, Debug)]
pub struct Tweaks {
    /// The salt.
    pub salt: Block,
    /// The batch.
    pub first_batch: u64,
}

impl GarblingSession<CotSender> {
    /// Set-up, once a session: base transfers with a fresh delta, and a fresh salt.
    ///
    /// # Errors
    /// [`ProtocolError::Ot`] if the peer's messages are not the ones due.
    pub fn setup(channel: &mut dyn Channel, rng: &mut impl CryptoRng) -> Result<Self, ProtocolError> {
        let cot = CotSender::setup(channel, random_delta(rng), rng)?;
        let salt = Block::public(rng);
        // S -> C: salt
        channel.send(kind::SALT, &salt.to_bytes())?;
        channel.flush()?;
        Ok(Self::new(cot, salt))
    }
}

impl<S: CorrelatedSender> GarblingSession<S> {
    /// Takes the session's source of oblivious transfers and its public salt, both fresh.
    #[must_use]
    pub fn new(cot: S, salt: Block) -> Self {
        Self { cot, salt, next_batch: 0 }
    }

    /// Takes `count` transfers that the client asks for: `q_i`, and the index of the first.
    ///
    /// # Errors
    /// [`ProtocolError::Ot`] if the peer's messages are not the ones due.
    pub fn transfers(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
    ) -> Result<(Zeroizing<Vec<Block>>, u64), ProtocolError> {
        let mut q = Zeroizing::new(Vec::with_capacity(count));
        let first = self.cot.extend_random(channel, count, &mut q)?;
        Ok((q, first))
    }

    /// The source of transfers, whose correlation is delta.
    #[must_use]
    pub const fn cot(&self) -> &S {
        &self.cot
    }

    /// What the next circuit's gates are hashed with, which has a given number of instances: no batch is garbled twice, whatever fails
    /// afterwards.
    ///
    /// # Errors
    /// [`GcError::BatchesExhausted`] if no batch is left.
    pub fn take_batches(&mut self, instances: usize) -> Result<Tweaks, ProtocolError> {
        let next = self.next_batch.checked_add(batches(instances)).ok_or(GcError::BatchesExhausted)?;
        let first_batch = std::mem::replace(&mut self.next_batch, next);
        Ok(Tweaks { salt: self.salt, first_batch })
    }
}

impl EvaluationSession<CotReceiver> {
    /// Set-up, once a session: base transfers, and the salt of the server's garbling.
    ///
    /// # Errors
    /// [`ProtocolError::Ot`] or [`ProtocolError::Channel`] if the peer's messages are not the ones due.
    pub fn setup(channel: &mut dyn Channel, rng: &mut impl CryptoRng) -> Result<Self, ProtocolError> {
        let cot = CotReceiver::setup(channel, rng)?;
        // S -> C: salt
        let mut salt = [0; Block::BYTES];
        channel.receive_into(kind::SALT, &mut salt)?;
        Ok(Self::new(cot, Block::from_bytes(salt)))
    }
}

impl<R: CorrelatedReceiver> EvaluationSession<R> {
    /// Takes the session's source of oblivious transfers and its public salt.
    #[must_use]
    pub fn new(cot: R, salt: Block) -> Self {
        Self { cot, salt, next_batch: 0 }
    }

    /// Asks for `count` transfers with random choices: these, `t_i`, and the index of the first.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn transfers(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
    ) -> Result<(Bits, Zeroizing<Vec<Block>>, u64), ProtocolError> {
        let mut blocks = Zeroizing::new(Vec::with_capacity(count));
        let (choices, first) = self.cot.extend_random(channel, count, &mut blocks)?;
        Ok((choices, blocks, first))
    }

    /// What the next circuit's gates are hashed with, which has a given number of instances.
    pub fn take_batches(&mut self, instances: usize) -> Tweaks {
        let tweaks = Tweaks { salt: self.salt, first_batch: self.next_batch };
        self.next_batch += batches(instances);
        tweaks
    }

    /// The hashes of the transfers.
    pub fn hashes(&self) -> &TransferHashes {
        self.cot.hashes()
    }
}

/// The cost of setting up a session, with [`softspoken`] as the source of transfers.
#[must_use]
pub fn garbling_cost() -> Cost {
    // The sender of the transfers answers the points and sends its salt before the punctured trees come.
    let (all, base) = (softspoken::setup_cost(), lanner_ot::base::cost(8 * Block::BYTES));
    let trees = lanner_ot::Cost {
        receiver_bytes: all.receiver_bytes - base.sender_bytes,
        receiver_messages: all.receiver_messages - base.sender_messages,
        sender_bytes: all.sender_bytes - base.receiver_bytes,
        sender_messages: all.sender_messages - base.receiver_messages,
    };
    let base = lanner_ot::Cost {
        receiver_bytes: base.sender_bytes,
        receiver_messages: base.sender_messages,
        sender_bytes: base.receiver_bytes,
        sender_messages: base.receiver_messages,
    };
    Cost::NONE.transfer(base).transfer(trees).server(Block::BYTES)
}
