//! The session's sources of transfers, one in each direction.

use lanner_ot::silent::{Parameters, SilentReceiver, SilentSender, Supply};
use lanner_ot::{
    CorrelatedReceiver, CorrelatedSender, CotReceiver, CotSender, base, random_delta, softspoken,
};
use lanner_primitives::{Bits, Block};
use lanner_wire::Channel;
use rand_core::CryptoRng;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::{Cost, Party, ProtocolError, Result, kind};

/// A party's sources: it is the sender in one and the receiver in the other, with independent deltas.
pub struct Transfers {
    /// Whose they are.
    pub party: Party,
    /// Of the transfers that it sends.
    pub sender: SilentSender,
    /// Of those that it receives.
    pub receiver: SilentReceiver,
    /// The server's part of all salts of comparison keys, where they are made.
    key_salt: Option<Block>,
}

impl Transfers {
    /// Sets up both directions, the server's first, with the sets of the client's transfers and of the server's.
    ///
    /// # Errors
    /// [`ProtocolError::Ot`] if the peer's messages are not the ones due, or the channel fails.
    pub fn setup<R: CryptoRng + ?Sized>(
        channel: &mut dyn Channel,
        party: Party,
        sets: [Parameters; 2],
        rng: &mut R,
    ) -> Result<Self> {
        Self::begin(channel, party, sets, false, rng)
    }

    /// The same where comparison keys are made: the server sends its part of their salts, behind what it sends last before the client
    /// answers, so that nobody waits for it.
    ///
    /// # Errors
    /// As [`Self::setup`]; [`ProtocolError::Channel`] if the server's part of the salts is not what is due.
    pub fn setup_with_salt<R: CryptoRng + ?Sized>(
        channel: &mut dyn Channel,
        party: Party,
        sets: [Parameters; 2],
        rng: &mut R,
    ) -> Result<Self> {
        Self::begin(channel, party, sets, true, rng)
    }

    fn begin<R: CryptoRng + ?Sized>(
        channel: &mut dyn Channel,
        party: Party,
        [of_client, of_server]: [Parameters; 2],
        salted: bool,
        rng: &mut R,
    ) -> Result<Self> {
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
        let salt = |channel: &mut dyn Channel, rng: &mut R| {
            salted.then(|| exchange_key_salt(channel, party, rng)).transpose()
        };
        let (sender, key_salt, receiver) = match party {
            Party::Server => (sender(channel, rng)?, salt(channel, rng)?, receiver(channel, rng)?),
            Party::Client => {
                let receiver = receiver(channel, rng)?;
                let salt = salt(channel, rng)?;
                (sender(channel, rng)?, salt, receiver)
            }
        };
        Ok(Self { party, sender, receiver, key_salt })
    }

    /// The salt of which the client has drawn a part: a hash of both parties' parts, as good as random while one of them is.
    ///
    /// # Errors
    /// [`ProtocolError::NotSetUp`] without [`Self::setup_with_salt`].
    pub fn key_salt(&self, of_client: Block) -> Result<Block> {
        let of_server =
            self.key_salt.ok_or(ProtocolError::NotSetUp("the server's salt of comparison keys"))?;
        let hash = Sha256::new_with_prefix("lanner comparison keys v1").chain_update(of_server.to_bytes());
        let salt = hash.chain_update(of_client.to_bytes()).finalize();
        Ok(Block::from_bytes(std::array::from_fn(|byte| salt[byte])))
    }
}

/// The server sends its part of the salts of a session's comparison keys.
fn exchange_key_salt<R: CryptoRng + ?Sized>(
    channel: &mut dyn Channel,
    party: Party,
    rng: &mut R,
) -> Result<Block> {
    let mut bytes = [0; Block::BYTES];
    match party {
        Party::Client => channel.receive_into(kind::KEY_SALT, &mut bytes)?,
        Party::Server => {
            bytes = Block::public(rng).to_bytes();
            channel.send(kind::KEY_SALT, &bytes)?;
            // The client may have something else to do before it answers.
            channel.flush()?;
        }
    }
    Ok(Block::from_bytes(bytes))
}

/// Random correlated transfers of both directions, as many of each: `received = sent xor choice delta`, with what the other party sent and its delta.
pub struct Correlations {
    /// This party's.
    pub delta: Block,
    /// What it sent.
    pub sent: Zeroizing<Vec<Block>>,
    /// What it received.
    pub received: Zeroizing<Vec<Block>>,
    /// This party's, of what it received.
    pub choices: Bits,
}

impl Transfers {
    /// The next of both directions, the client's first.
    ///
    /// # Errors
    /// As [`Self::setup`].
    pub fn both_ways(&mut self, channel: &mut dyn Channel, count: usize) -> Result<Correlations> {
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

/// The cost of [`Transfers::setup`], or of [`Transfers::setup_with_salt`].
#[must_use]
pub fn transfers_cost([of_client, of_server]: [Parameters; 2], salted: bool) -> Cost {
    let (all, base) = (softspoken::setup_cost(), base::cost(8 * Block::BYTES));
    let [points, pairs] = [base.sender_bytes, base.receiver_bytes].map(|bytes| bytes as usize);
    let trees = all.receiver_bytes as usize - points;
    let salt = all.sender_bytes as usize - pairs;
    let by_server = Cost::NONE.client(points).server(pairs).client(trees).server(salt);
    let by_client = Cost::NONE.client(pairs).server(points).client(salt).server(trees);
    let by_server = by_server.transfer(of_server.setup_cost());
    let by_server = if salted { by_server.server(Block::BYTES) } else { by_server };
    by_server.then(by_client.offer(of_client.setup_cost()))
}

/// The sets of sessions in which the client and the server send so many transfers for a prediction: those that send least for one.
#[must_use]
pub fn transfer_sets(transfers: [usize; 2]) -> [Parameters; 2] {
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
    pub fn both_ways(&mut self, count: usize) -> Cost {
        let client = self.client([count].into_iter());
        client.then(self.server([count].into_iter()))
    }

    /// What transfers of the client's send that are drawn in such parts.
    pub fn client(&mut self, draws: impl Iterator<Item = usize>) -> Cost {
        draws.fold(Cost::NONE, |cost, count| cost.then(Cost::NONE.offer(self.client.take(count))))
    }

    /// What transfers of the server's send that are drawn in such parts.
    pub fn server(&mut self, draws: impl Iterator<Item = usize>) -> Cost {
        draws.fold(Cost::NONE, |cost, count| cost.then(Cost::NONE.transfer(self.server.take(count))))
    }
}
