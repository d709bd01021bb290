//! What the steps of this protocol have in common: material is masks and keys, which both parties make under a salt that comes from both.

use lanner_primitives::{Block, Share};
use lanner_step::{
    BoxedStep, Built, Client, Cost, CotSupply, Inputs, Memory, ModelParts, Needs, OfflineCost, Party,
    PartyState, ProtocolError, Server, Step, StepCost, Transfers, Value, kind,
};
use lanner_wire::{Channel, ChannelError, DecodeError, Reader, Writer};
use rand_core::CryptoRng;

/// What a party makes masks and keys with.
pub struct Maker<'m, R> {
    /// To the other party, who makes its own.
    pub channel: &'m mut dyn Channel,
    /// Those of both directions.
    pub transfers: &'m mut Transfers,
    /// The source of its randomness.
    pub rng: &'m mut R,
}

/// A step whose material is masks and keys; both parties run the same one.
pub trait Keyed: Send + Sync + 'static {
    /// One party's one-time masks and keys.
    type Material: Send + 'static;

    /// How many results it has.
    fn values(&self) -> usize;

    /// Transfers that a party sends for one run.
    fn transfers(&self, sender: Party) -> usize;

    /// What preparation sends.
    fn offline_cost(&self, supply: &mut CotSupply) -> OfflineCost;

    /// What the online phase sends.
    fn online_cost(&self) -> Cost;

    /// Bytes of a party's material.
    fn held(&self) -> u64;

    /// Bytes that either party holds while it makes the material or computes, at most and besides it.
    fn working(&self) -> u64;

    /// Nodes of all trees that are grown for the keys.
    fn nodes(&self) -> u64;

    /// Bytes that say where elements lie.
    fn layouts(&self) -> u64 {
        0
    }

    /// Offline: what the client begins with, its part of a public salt that is used once.
    ///
    /// # Errors
    /// Those of the channel.
    fn request(
        &self,
        channel: &mut dyn Channel,
        party: Party,
        rng: &mut impl CryptoRng,
    ) -> Result<Block, ProtocolError> {
        if party == Party::Server {
            let bytes = channel.receive(kind::KEY_SALT, Block::BYTES)?;
            let salt = bytes.first_chunk().ok_or(ChannelError::Malformed { what: "salt" })?;
            return Ok(Block::from_bytes(*salt));
        }
        let salt = Block::public(rng);
        channel.send(kind::KEY_SALT, &salt.to_bytes())?;
        Ok(salt)
    }

    /// Offline: makes masks and keys with the other party, under a salt that is used once.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] or [`ProtocolError::Ot`] if the peer's messages are not the ones due.
    fn prepare(
        &self,
        maker: &mut Maker<'_, impl CryptoRng>,
        salt: Block,
    ) -> Result<Self::Material, ProtocolError>;

    /// Online: this party's share of the results.
    ///
    /// # Errors
    /// [`ProtocolError::WrongRing`] or [`ProtocolError::Length`] if the share or the material is not this step's; [`ProtocolError::Channel`] if the channel fails or the peer sends
    /// something else.
    fn online(
        &self,
        channel: &mut dyn Channel,
        party: Party,
        material: Self::Material,
        share: &Share,
    ) -> Result<Share, ProtocolError>;

    /// Appends all of the material.
    fn encode(&self, material: &Self::Material, writer: &mut Writer);

    /// Reads what [`Self::encode`] wrote of a party's material.
    ///
    /// # Errors
    /// [`DecodeError`] if it is another step's.
    fn decode(&self, reader: &mut Reader<'_>, party: Party) -> Result<Self::Material, DecodeError>;
}

/// Such a step, as a plan walks over it.
pub(crate) struct ByKeys<K>(pub(crate) K);

impl<K: Keyed> Built for ByKeys<K> {
    fn needs(&self) -> Result<Needs, ProtocolError> {
        let transfers = [Party::Client, Party::Server].map(|party| self.0.transfers(party));
        Ok(Needs { transfers, comparison_keys: true, ..Needs::default() })
    }

    fn cost(&self, supply: &mut CotSupply) -> Result<StepCost, ProtocolError> {
        Ok(StepCost { offline: self.0.offline_cost(supply), online: self.0.online_cost() })
    }

    fn memory(&self) -> Result<Memory, ProtocolError> {
        let (held, working) = (self.0.held(), self.0.working());
        Ok(Memory {
            client_material: held,
            server_material: held,
            working,
            client_working: working,
            layouts: self.0.layouts(),
            ..Memory::default()
        })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let transfers = self.0.transfers(Party::Client) + self.0.transfers(Party::Server);
        vec![
            ("instances", self.0.values() as u64),
            ("transfers", transfers as u64),
            ("nodes", self.0.nodes()),
        ]
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(self)
    }

    fn server(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Server> {
        Ok(self)
    }
}

impl<K: Keyed, P: PartyState> Step<P> for ByKeys<K> {
    /// The client's part of the keys' salt.
    type Request = Block;
    type Material = K::Material;

    fn request(&self, channel: &mut dyn Channel, party: &mut P) -> Result<Block, ProtocolError> {
        self.0.request(channel, P::PARTY, party.transfers()?.1)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        party: &mut P,
        salt: Block,
        _: &Inputs,
    ) -> Result<(K::Material, Option<Value>), ProtocolError> {
        let (transfers, rng) = party.transfers()?;
        let salt = transfers.key_salt(salt)?;
        Ok((self.0.prepare(&mut Maker { channel, transfers, rng }, salt)?, None))
    }

    fn encode(&self, material: &K::Material, writer: &mut Writer) {
        self.0.encode(material, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<K::Material, DecodeError> {
        self.0.decode(reader, P::PARTY)
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        material: K::Material,
        inputs: &Inputs,
    ) -> Result<Value, ProtocolError> {
        self.0.online(channel, P::PARTY, material, inputs.share()?).map(Value::Shared)
    }
}
