//! Each party's state of one session, which all steps share.

use std::collections::BTreeMap;

use lanner_bfv::{ParameterSet, SecretKey};
use lanner_ot::{CotReceiver, CotSender};
use lanner_primitives::Prg;
use lanner_wire::Channel;

use super::SetUp;
use crate::linear::keys::{ClientKeys, receive_keys, send_keys};
use crate::nonlinear::ot_nonlinear::Transfers;
use crate::nonlinear::yao::{EvaluationSession, GarblingSession};
use crate::{Party, ProtocolError};

/// The client's state of one session.
pub struct Client {
    /// Its secret keys.
    pub keys: Keys<SecretKey>,
    /// Silent transfers in both directions, if a step needs some.
    transfers: Option<Transfers>,
    evaluation: Option<EvaluationSession<CotReceiver>>,
    /// The source of the party's randomness.
    pub rng: Prg,
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
    /// [`ProtocolError::Shape`] if the session has not set them up.
    fn transfers(&mut self) -> Result<(&mut Transfers, &mut Prg), ProtocolError>;
}

/// Keys by parameter set.
pub struct Keys<K>(BTreeMap<ParameterSet, K>);

impl<K> Keys<K> {
    /// The key of a set.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if the session has not set it up.
    pub fn get(&self, set: ParameterSet) -> Result<&K, ProtocolError> {
        self.0.get(&set).ok_or(ProtocolError::Shape { what: "keys of another parameter set" })
    }
}

impl Client {
    /// Set-up, once a session: makes and sends the keys, and prepares oblivious transfer. All randomness of the session comes from `rng`.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] or [`ProtocolError::Ot`] if the peer's messages are not the ones due.
    pub fn set_up(channel: &mut dyn Channel, needs: &SetUp, mut rng: Prg) -> Result<Self, ProtocolError> {
        let mut keys = BTreeMap::new();
        for needed in &needs.keys {
            let key = send_keys(channel, &needed.parameters, &needed.automorphisms, &mut rng)?;
            keys.insert(needed.set, key);
        }
        let evaluation = needs.garbling.then(|| EvaluationSession::setup(channel, &mut rng)).transpose()?;
        let transfers = needs.transfers.map(|set| Transfers::setup(channel, Party::Client, set, &mut rng));
        Ok(Self { keys: Keys(keys), transfers: transfers.transpose()?, evaluation, rng })
    }

    /// The state of evaluating circuits.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if the session has not set it up.
    pub fn evaluation(&self) -> Result<&EvaluationSession<CotReceiver>, ProtocolError> {
        set_up(self.evaluation.as_ref())
    }

    /// As [`Self::evaluation`], to draw from.
    ///
    /// # Errors
    /// As [`Self::evaluation`].
    pub fn evaluation_mut(&mut self) -> Result<&mut EvaluationSession<CotReceiver>, ProtocolError> {
        set_up(self.evaluation.as_mut())
    }
}

impl Server {
    /// Set-up, once a session: receives the client's keys, and prepares oblivious transfer. All randomness of the session comes from `rng`.
    ///
    /// # Errors
    /// As [`Client::set_up`].
    pub fn set_up(channel: &mut dyn Channel, needs: &SetUp, mut rng: Prg) -> Result<Self, ProtocolError> {
        let mut keys = BTreeMap::new();
        for needed in &needs.keys {
            keys.insert(needed.set, receive_keys(channel, &needed.parameters, &needed.automorphisms)?);
        }
        let garbling = needs.garbling.then(|| GarblingSession::setup(channel, &mut rng)).transpose()?;
        let transfers = needs.transfers.map(|set| Transfers::setup(channel, Party::Server, set, &mut rng));
        Ok(Self { keys: Keys(keys), transfers: transfers.transpose()?, garbling, rng })
    }

    /// The state of garbling circuits, to draw from, with the party's randomness.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if the session has not set it up.
    pub fn garbling_mut(&mut self) -> Result<(&mut GarblingSession<CotSender>, &mut Prg), ProtocolError> {
        Ok((set_up(self.garbling.as_mut())?, &mut self.rng))
    }
}

impl PartyState for Client {
    const PARTY: Party = Party::Client;

    fn transfers(&mut self) -> Result<(&mut Transfers, &mut Prg), ProtocolError> {
        Ok((set_up(self.transfers.as_mut())?, &mut self.rng))
    }
}

impl PartyState for Server {
    const PARTY: Party = Party::Server;

    fn transfers(&mut self) -> Result<(&mut Transfers, &mut Prg), ProtocolError> {
        Ok((set_up(self.transfers.as_mut())?, &mut self.rng))
    }
}

/// What the set-up made where the plan said that it is needed.
fn set_up<T>(part: Option<T>) -> Result<T, ProtocolError> {
    part.ok_or(ProtocolError::Shape { what: "a part of the set-up" })
}
