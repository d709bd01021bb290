//! Each party's state of one session, which all steps share.

use std::collections::BTreeMap;
use std::sync::Arc;

use lanner_bfv::{ParameterSet, Parameters, SecretKey};
use lanner_ot::{CotReceiver, CotSender};
use lanner_primitives::{Prg, Seed};
use lanner_wire::{Channel, ChannelError, Encode, Reader, Writer};

use super::{SetKeys, SetUp};
use crate::{
    ClientKeys, EvaluationSession, GarblingSession, Party, ProtocolError, Result, Transfers, receive_keys,
    secret_key, send_keys,
};

/// The client's state of one session.
pub struct Client {
    /// Its secret keys.
    pub keys: Keys<SecretKey>,
    /// What they are made from.
    key_seed: Seed,
    /// Silent transfers in both directions, if a step needs some.
    transfers: Option<Transfers>,
    evaluation: Option<EvaluationSession<CotReceiver>>,
    /// The source of the party's randomness.
    pub rng: Prg,
}

/// The client's state between the two parts of the set-up: its keys are made, and transfers are not prepared.
pub struct KeyedClient {
    keys: Keys<SecretKey>,
    key_seed: Seed,
    rng: Prg,
}

/// The server's state of one session.
pub struct Server {
    /// What it holds of the client's keys.
    pub keys: Keys<ClientKeys>,
    transfers: Option<Transfers>,
    garbling: Option<GarblingSession<CotSender>>,
    /// The source of the party's randomness.
    pub rng: Prg,
}

/// What both parties' states have.
pub trait PartyState: Sized {
    /// Whose state it is.
    const PARTY: Party;

    /// Whether the party's share of the network's input is known ahead of time: the server's is zero.
    const INPUT_IS_KNOWN: bool = matches!(Self::PARTY, Party::Server);

    /// Silent transfers in both directions, and the party's randomness.
    ///
    /// # Errors
    /// [`ProtocolError::NotSetUp`] if the session has not set them up.
    fn transfers(&mut self) -> Result<(&mut Transfers, &mut Prg)>;
}

/// Keys by parameter set.
pub struct Keys<K>(BTreeMap<ParameterSet, Arc<K>>);

const NO_KEYS: ProtocolError = ProtocolError::NotSetUp("keys of the step's parameter set");

impl<K> Keys<K> {
    /// The key of a set.
    ///
    /// # Errors
    /// [`ProtocolError::NotSetUp`] if the session has not set it up.
    pub fn get(&self, set: ParameterSet) -> Result<&K> {
        self.find(set).map(AsRef::as_ref)
    }

    /// The key of the set that parameters are of.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn of(&self, parameters: &Parameters) -> Result<&K> {
        self.get(parameters.set().ok_or(NO_KEYS)?)
    }

    /// The same for who keeps it.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn shared(&self, set: ParameterSet) -> Result<Arc<K>> {
        self.find(set).map(Arc::clone)
    }

    fn find(&self, set: ParameterSet) -> Result<&Arc<K>> {
        self.0.get(&set).ok_or(NO_KEYS)
    }
}

impl KeyedClient {
    /// The set-up's first part, once a session: makes keys and sends them. All randomness of the session comes from `rng`.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the connection fails.
    pub fn new(channel: &mut dyn Channel, needs: &SetUp, mut rng: Prg) -> Result<Self> {
        let key_seed = Seed::random(&mut rng);
        Self::with(channel, needs, key_seed, rng)
    }

    /// The same with the keys of an earlier session, which are sent again: see [`Client::key_seed`].
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with(channel: &mut dyn Channel, needs: &SetUp, key_seed: Seed, rng: Prg) -> Result<Self> {
        let keys = keys_of(needs, &key_seed, |needed, own| {
            send_keys(channel, &needed.parameters, &needed.needed, own)
        })?;
        Ok(Self { keys, key_seed, rng })
    }

    /// The same with the keys of an earlier session, of which the server has what it needs: see [`Client::key_seed`].
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if they are none of these parameters.
    pub fn again(needs: &SetUp, key_seed: Seed, rng: Prg) -> Result<Self> {
        let keys = keys_of(needs, &key_seed, |needed, own| Ok(secret_key(&needed.parameters, own)))?;
        Ok(Self { keys, key_seed, rng })
    }

    /// The set-up's second part: prepares oblivious transfer, where a step needs it.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] or [`ProtocolError::Ot`] if the peer's messages are not the ones due.
    pub fn prepare_transfers(self, channel: &mut dyn Channel, needs: &SetUp) -> Result<Client> {
        let Self { keys, key_seed, mut rng } = self;
        let evaluation = needs.garbling.then(|| EvaluationSession::setup(channel, &mut rng)).transpose()?;
        let transfers = needs.transfers.map(|_| set_up_transfers(channel, Party::Client, needs, &mut rng));
        Ok(Client { keys, key_seed, transfers: transfers.transpose()?, evaluation, rng })
    }
}

impl Client {
    /// Both parts of the set-up with new keys, for who does not look at them apart.
    ///
    /// # Errors
    /// As [`KeyedClient::new`] and [`KeyedClient::prepare_transfers`].
    pub fn set_up(channel: &mut dyn Channel, needs: &SetUp, rng: Prg) -> Result<Self> {
        KeyedClient::new(channel, needs, rng)?.prepare_transfers(channel, needs)
    }

    /// Appends what [`Server::write_keys`] would in a session whose keys are made from a seed. It is no secret.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] for an automorphism of another degree, or any where the parameters have none.
    pub fn write_keys(needs: &SetUp, key_seed: &Seed, writer: &mut Writer) -> Result<()> {
        let keys = keys_of(needs, key_seed, |needed, own| {
            let key = secret_key(&needed.parameters, own);
            ClientKeys::generate(&key, &needed.needed, own)?.encode(writer);
            Ok(key)
        });
        keys.map(drop)
    }

    /// What the secret keys are made from: as secret as they.
    #[must_use]
    pub const fn key_seed(&self) -> &Seed {
        &self.key_seed
    }

    /// The state of evaluating circuits.
    ///
    /// # Errors
    /// [`ProtocolError::NotSetUp`] if the session has not set it up.
    pub fn evaluation(&self) -> Result<&EvaluationSession<CotReceiver>> {
        set_up(self.evaluation.as_ref())
    }

    /// As [`Self::evaluation`], to draw from.
    ///
    /// # Errors
    /// As [`Self::evaluation`].
    pub fn evaluation_mut(&mut self) -> Result<&mut EvaluationSession<CotReceiver>> {
        set_up(self.evaluation.as_mut())
    }
}

impl Server {
    /// Set-up, once a session: receives the client's keys, and prepares oblivious transfer. All randomness of the session comes from `rng`.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] or [`ProtocolError::Ot`] if the peer's messages are not the ones due.
    pub fn set_up(channel: &mut dyn Channel, needs: &SetUp, rng: Prg) -> Result<Self> {
        let receive = |needed: &SetKeys| {
            Ok((needed.set, Arc::new(receive_keys(channel, &needed.parameters, &needed.needed)?)))
        };
        let keys = needs.keys.iter().map(receive).collect::<Result<_>>()?;
        Self::with_keys(channel, needs, Keys(keys), rng)
    }

    /// The same with the client's keys of an earlier session: see [`Self::read_keys`].
    ///
    /// # Errors
    /// As [`Self::set_up`].
    pub fn set_up_again(
        channel: &mut dyn Channel,
        needs: &SetUp,
        keys: Keys<ClientKeys>,
        rng: Prg,
    ) -> Result<Self> {
        Self::with_keys(channel, needs, keys, rng)
    }

    /// Appends what the server has of the client's keys, for another session.
    pub fn write_keys(&self, writer: &mut Writer) {
        self.keys.0.values().for_each(|keys| keys.encode(writer));
    }

    /// Reads what [`Self::write_keys`] wrote.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] or [`ProtocolError::Channel`] unless it is exactly that.
    pub fn read_keys(bytes: &[u8], needs: &SetUp) -> Result<Keys<ClientKeys>> {
        let mut reader = Reader::new(bytes);
        let read = |needed: &SetKeys| {
            let keys = ClientKeys::read(&mut reader, &needed.parameters, &needed.needed)?;
            Ok((needed.set, Arc::new(keys)))
        };
        let keys = needs.keys.iter().map(read).collect::<Result<_>>()?;
        reader.finish().map_err(ChannelError::from)?;
        Ok(Keys(keys))
    }

    fn with_keys(
        channel: &mut dyn Channel,
        needs: &SetUp,
        keys: Keys<ClientKeys>,
        mut rng: Prg,
    ) -> Result<Self> {
        let garbling = needs.garbling.then(|| GarblingSession::setup(channel, &mut rng)).transpose()?;
        let transfers = needs.transfers.map(|_| set_up_transfers(channel, Party::Server, needs, &mut rng));
        Ok(Self { keys, transfers: transfers.transpose()?, garbling, rng })
    }

    /// The state of garbling circuits, to draw from, with the party's randomness.
    ///
    /// # Errors
    /// [`ProtocolError::NotSetUp`] if the session has not set it up.
    pub fn garbling_mut(&mut self) -> Result<(&mut GarblingSession<CotSender>, &mut Prg)> {
        Ok((set_up(self.garbling.as_mut())?, &mut self.rng))
    }
}

impl PartyState for Client {
    const PARTY: Party = Party::Client;

    fn transfers(&mut self) -> Result<(&mut Transfers, &mut Prg)> {
        Ok((set_up(self.transfers.as_mut())?, &mut self.rng))
    }
}

impl PartyState for Server {
    const PARTY: Party = Party::Server;

    fn transfers(&mut self) -> Result<(&mut Transfers, &mut Prg)> {
        Ok((set_up(self.transfers.as_mut())?, &mut self.rng))
    }
}

/// One secret key for each set, made from a generator of its own.
fn keys_of(
    needs: &SetUp,
    seed: &Seed,
    mut make: impl FnMut(&SetKeys, &mut Prg) -> Result<SecretKey>,
) -> Result<Keys<SecretKey>> {
    let mut seeds = Prg::new(seed.clone());
    let mut key = |needed: &SetKeys| {
        let mut own = Prg::new(Seed::random(&mut seeds));
        Ok((needed.set, Arc::new(make(needed, &mut own)?)))
    };
    Ok(Keys(needs.keys.iter().map(&mut key).collect::<Result<_>>()?))
}

/// Sources of transfers, with the server's part of the salts where comparison keys are made.
fn set_up_transfers(
    channel: &mut dyn Channel,
    party: Party,
    needs: &SetUp,
    rng: &mut Prg,
) -> Result<Transfers> {
    let sets = set_up(needs.transfers)?;
    if needs.comparison_keys {
        Transfers::setup_with_salt(channel, party, sets, rng)
    } else {
        Transfers::setup(channel, party, sets, rng)
    }
}

/// What the set-up made where the plan said that it is needed.
fn set_up<T>(part: Option<T>) -> Result<T> {
    part.ok_or(ProtocolError::NotSetUp("a part that the step needs"))
}
