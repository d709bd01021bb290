//! How the material of a layer is made, from the transfers of one direction and then of the other, or read.

use lanner_step::{Party, ProtocolError, Result, Transfers};
use lanner_wire::{Channel, DecodeError, Reader};
use rand_core::CryptoRng;

use super::driver::Program;
use super::layer::Layer;
use super::material::{Half, Material, Prepared, PreparedMove};
use super::moves::Move;
use super::source::Source;

/// The first half of a layer's preparation: what the transfers give that the client sends.
pub struct Request(Vec<HalfMove>);

/// A move with what one direction gives for it; nothing where that has no transfers.
struct HalfMove {
    step: Move,
    first: Party,
    half: Option<Half>,
}

impl Material {
    /// Reads what [`Self::encode`] wrote of this party's material for one run of the layer, whose moves say every length.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if fewer bytes are left; [`DecodeError::Invalid`] if padding is set.
    pub fn decode<P>(reader: &mut Reader<'_>, layer: &Layer<P>, party: Party) -> Result<Self, DecodeError> {
        let prepared = |(step, first): (Move, Party)| {
            let is_first = first == party;
            Ok(PreparedMove { step, is_first, prepared: Prepared::decode(reader, step, is_first)? })
        };
        layer.moves.in_turn().map(prepared).collect::<Result<_, _>>().map(Self)
    }
}

impl<P: Program> Layer<P> {
    /// Offline: draws the transfers that the client sends, and expands them to what moves take of them.
    ///
    /// # Errors
    /// [`ProtocolError::Ot`] if the channel fails or the peer sends something else.
    pub fn request(&self, channel: &mut dyn Channel, transfers: &mut Transfers) -> Result<Request> {
        let sends = transfers.party == Party::Client;
        self.draw(channel, transfers, sends).map(Request)
    }

    /// Offline: draws the transfers that the server sends, and makes the material of the moves.
    ///
    /// # Errors
    /// As [`Self::request`]; [`ProtocolError::WrongMaterial`] if the request is another layer's.
    pub fn prepare(
        &self,
        channel: &mut dyn Channel,
        transfers: &mut Transfers,
        Request(by_client): Request,
        rng: &mut impl CryptoRng,
    ) -> Result<Material> {
        let (party, sends) = (transfers.party, transfers.party == Party::Server);
        let by_server = self.draw(channel, transfers, sends)?;
        let (sent, received) = if sends { (by_server, by_client) } else { (by_client, by_server) };
        let other = ProtocolError::WrongMaterial("the request of another layer");
        if sent.len() != received.len() {
            return Err(other);
        }
        let prepare = |(sent, received): (HalfMove, HalfMove)| {
            let HalfMove { step, first, half } = sent;
            let is_same = (received.step, received.first) == (step, first);
            let prepared = is_same.then(|| Prepared::new(step, half, received.half, rng)).flatten()?;
            Some(PreparedMove { step, is_first: first == party, prepared })
        };
        let prepared: Option<Vec<PreparedMove>> = sent.into_iter().zip(received).map(prepare).collect();
        prepared.map(Material).ok_or(other)
    }

    /// What all moves take of one direction.
    fn draw(
        &self,
        channel: &mut dyn Channel,
        transfers: &mut Transfers,
        sends: bool,
    ) -> Result<Vec<HalfMove>> {
        let party = transfers.party;
        let mut source = Source::new(channel, transfers, sends);
        let draw = |(step, first): (Move, Party)| {
            let half = Half::draw(&mut source, step, first == party, sends)?;
            Ok(HalfMove { step, first, half })
        };
        self.moves.in_turn().map(draw).collect()
    }
}
