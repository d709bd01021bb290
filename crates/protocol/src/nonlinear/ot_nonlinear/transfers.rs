//! The session's sources of transfers, one in each direction.

use lanner_ot::silent::{Parameters, SilentReceiver, SilentSender, Supply};
use lanner_ot::{
    CorrelatedReceiver, CorrelatedSender, CotReceiver, CotSender, base, random_delta, softspoken,
};
use lanner_primitives::{Bits, Block};
use lanner_wire::Channel;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::{Cost, Party, ProtocolError};

/// A party's sources: it is the sender in one and the receiver in the other, with independent deltas.
pub struct Transfers {
    pub(super) party: Party,
    pub(super) sender: SilentSender,
    pub(super) receiver: SilentReceiver,
}

impl Transfers {
    /// Sets up both directions, the server's first, with the sets of the client's transfers and of the server's.
    ///
    /// # Errors
    /// [`ProtocolError::Ot`] if the peer's messages are not the ones due, or the channel fails.
    pub fn setup<R: CryptoRng + ?Sized>(
        channel: &mut dyn Channel,
        party: Party,
        [of_client, of_server]: [Parameters; 2],
        rng: &mut R,
    ) -> Result<Self, ProtocolError> {
        let [sent, received] = match party {
            Party::Client => [of_client, of_server],
            Party::Server => [of_server, of_client],
        };
        let sender = |channel: &mut dyn Channel, rng: &mut R| {
            let source = CotSender::setup(channel, random_delta(rng), rng)?;
            SilentSender::setup(channel, source, sent, rng)
        };
        let receiver = |channel: &mut dyn Channel, rng: &mut R| {
            let source = CotReceiver::setup(channel, rng)?;
            SilentReceiver::setup(channel, source, received)
        };
        let (sender, receiver) = match party {
            Party::Server => (sender(channel, rng)?, receiver(channel, rng)?),
            Party::Client => {
                let receiver = receiver(channel, rng)?;
                (sender(channel, rng)?, receiver)
            }
        };
        Ok(Self { party, sender, receiver })
    }
}

/// Random correlated transfers of both directions, as many of each: `received = sent xor choice delta`, with what the other party sent and its delta.
pub(crate) struct Correlations {
    /// This party's.
    pub(crate) delta: Block,
    pub(crate) sent: Zeroizing<Vec<Block>>,
    pub(crate) received: Zeroizing<Vec<Block>>,
    /// This party's, of what it received.
    pub(crate) choices: Bits,
}

impl Transfers {
    /// Whose they are.
    pub(crate) const fn party(&self) -> Party {
        self.party
    }

    /// The next of both directions, the client's first.
    ///
    /// # Errors
    /// As [`Self::setup`].
    pub(crate) fn both_ways(
        &mut self,
        channel: &mut dyn Channel,
        count: usize,
    ) -> Result<Correlations, ProtocolError> {
        let [mut sent, mut received] = [(); 2].map(|()| Zeroizing::new(Vec::with_capacity(count)));
        let mut choices = Bits::default();
        for sender in [Party::Client, Party::Server] {
            if sender == self.party {
                self.sender.extend_random(channel, count, &mut sent)?;
                channel.flush()?;
            } else {
                (choices, _) = self.receiver.extend_random(channel, count, &mut received)?;
            }
        }
        Ok(Correlations { delta: self.sender.delta(), sent, received, choices })
    }
}

/// The cost of [`Transfers::setup`].
#[must_use]
pub fn setup_cost([of_client, of_server]: [Parameters; 2]) -> Cost {
    let (all, base) = (softspoken::setup_cost(), base::cost(8 * Block::BYTES));
    let [points, pairs] = [base.sender_bytes, base.receiver_bytes].map(|bytes| bytes as usize);
    let trees = all.receiver_bytes as usize - points;
    let salt = all.sender_bytes as usize - pairs;
    let by_server = Cost::NONE.client(points).server(pairs).client(trees).server(salt);
    let by_client = Cost::NONE.client(pairs).server(points).client(salt).server(trees);
    by_server.transfer(of_server.setup_cost()).then(by_client.offer(of_client.setup_cost()))
}

/// The sets of sessions in which the client and the server send so many transfers for a prediction: those that send least for one.
#[must_use]
pub fn parameters(transfers: [usize; 2]) -> [Parameters; 2] {
    transfers.map(Parameters::cheapest)
}

/// How far the sources of both directions have come: what preparing the next layer sends depends on it.
#[derive(Clone, Copy, Debug)]
pub struct CotSupply {
    /// Of transfers that the client sends.
    client: Supply,
    /// Of transfers that the server sends.
    server: Supply,
}

impl CotSupply {
    /// After the set-up of [`Transfers`].
    #[must_use]
    pub const fn new([of_client, of_server]: [Parameters; 2]) -> Self {
        Self { client: Supply::new(of_client), server: Supply::new(of_server) }
    }

    /// What as many transfers of both directions send, the client's first.
    pub(crate) fn both_ways(&mut self, count: usize) -> Cost {
        let client = self.client([count].into_iter());
        client.then(self.server([count].into_iter()))
    }

    /// What transfers of the client's send that are drawn in such parts.
    pub(super) fn client(&mut self, draws: impl Iterator<Item = usize>) -> Cost {
        draws.fold(Cost::NONE, |cost, count| cost.then(Cost::NONE.offer(self.client.take(count))))
    }

    /// What transfers of the server's send that are drawn in such parts.
    pub(super) fn server(&mut self, draws: impl Iterator<Item = usize>) -> Cost {
        draws.fold(Cost::NONE, |cost, count| cost.then(Cost::NONE.transfer(self.server.take(count))))
    }
}
