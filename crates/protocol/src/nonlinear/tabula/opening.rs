//! One party's part of the online phase: both openings, and what follows from them.

use lanner_dpf::Salts;
use lanner_primitives::Ring;
use lanner_wire::{Channel, ChannelError, Reader, pack_bits, packed_len};

use super::keys::Made;
use super::signs::Signs;
use super::{Activation, Material, Shape};
use crate::{Party, ProtocolError, kind};

/// An activation with its material, which it uses up.
pub(super) struct Opening<'a> {
    layer: &'a Activation,
    party: Party,
    /// Of the borrows' keys, and of the signs'.
    salts: [Salts; 2],
    material: Material,
}

impl<'a> Opening<'a> {
    pub(super) fn new(layer: &'a Activation, party: Party, material: Material) -> Self {
        // There are no keys of borrows in a stochastic rescale: those of signs are the first.
        let numbers = [0, u32::from(material.borrows.is_some())];
        Self { layer, party, salts: numbers.map(|number| Salts::new(material.salt, number)), material }
    }

    /// e, given this party's part of v.
    pub(super) fn open(&self, channel: &mut dyn Channel, masked: &[u64]) -> Result<Vec<u64>, ProtocolError> {
        let (kept, ring) = (self.layer.kept, Ring::Pow2(self.layer.kept));
        let (mine, theirs) = match (self.party, &self.material.borrows) {
            (Party::Client, Some(borrows)) => self.ask(channel, masked, borrows)?,
            (Party::Server, Some(borrows)) => self.answer(channel, masked, borrows)?,
            // A stochastic rescale is what is left of v, whose low bits the client must not see.
            (Party::Client, None) => {
                send(channel, &pack_bits(masked, self.layer.bits()))?;
                return receive(channel, masked.len(), kept);
            }
            (Party::Server, None) => {
                let v = self.sum(channel, masked)?;
                let e: Vec<u64> = v.iter().map(|v| v >> self.layer.dropped).collect();
                send(channel, &pack_bits(&e, kept))?;
                return Ok(e);
            }
        };
        Ok(mine.iter().zip(theirs).map(|(a, b)| ring.add(*a, b)).collect())
    }

    /// The server's sum of both parties' parts of v.
    fn sum(&self, channel: &mut dyn Channel, masked: &[u64]) -> Result<Vec<u64>, ProtocolError> {
        let (bits, ring) = (self.layer.bits(), Ring::Pow2(self.layer.bits()));
        let theirs = receive(channel, masked.len(), bits)?;
        Ok(masked.iter().zip(theirs).map(|(a, b)| ring.add(*a, b)).collect())
    }

    /// The client's share of e, and the server's.
    fn ask(
        &self,
        channel: &mut dyn Channel,
        masked: &[u64],
        borrows: &Made,
    ) -> Result<(Vec<u64>, Vec<u64>), ProtocolError> {
        let (wide, kept) = (self.layer.bits(), self.layer.kept);
        let length = |bits: u32| packed_len(masked.len(), bits);
        send(channel, &pack_bits(masked, wide))?;
        let message = channel.receive(kind::MASKED_VALUES, length(wide) + length(kept))?;
        let mut message = Reader::new(&message);
        let v = message.packed(masked.len(), wide).map_err(ChannelError::from)?;
        let theirs = message.packed(masked.len(), kept).map_err(ChannelError::from)?;
        let mine = self.rescaled(&v, borrows)?;
        send(channel, &pack_bits(&mine, kept))?;
        Ok((mine, theirs))
    }

    /// The server's share of e, and the client's.
    fn answer(
        &self,
        channel: &mut dyn Channel,
        masked: &[u64],
        borrows: &Made,
    ) -> Result<(Vec<u64>, Vec<u64>), ProtocolError> {
        let (wide, kept) = (self.layer.bits(), self.layer.kept);
        let (ring, half) = (Ring::Pow2(wide), 1 << (self.layer.dropped - 1));
        let v: Vec<u64> = self.sum(channel, masked)?.iter().map(|v| ring.add(*v, half)).collect();
        let mine = self.rescaled(&v, borrows)?;
        send(channel, &[pack_bits(&v, wide), pack_bits(&mine, kept)].concat())?;
        Ok((mine, receive(channel, masked.len(), kept)?))
    }

    /// This party's share of e: `v_hi - s_hi - [v_lo < s_lo] + t`.
    fn rescaled(&self, v: &[u64], borrows: &Made) -> Result<Vec<u64>, ProtocolError> {
        let (Material { masks, signs, .. }, dropped) = (&self.material, self.layer.dropped);
        let points: Vec<u64> = v.iter().map(|v| v & ((1 << dropped) - 1)).collect();
        let [borrowed, _] = borrows.keys.evaluate(&self.salts[0], &points)?;
        let (ring, wide) = (Ring::Pow2(self.layer.kept), Ring::Pow2(self.layer.bits()));
        let share = |i: usize| {
            // A mask less its low bits is a multiple of 2^d: what this party drew.
            let drawn = wide.sub(masks[i], borrows.thresholds[i]) >> dropped;
            let own = signs.thresholds[i].wrapping_sub(drawn).wrapping_sub(borrowed[i]);
            ring.embed(own.wrapping_add(self.public(v[i] >> dropped)) as i64)
        };
        Ok((0..v.len()).map(share).collect())
    }

    /// This party's shares of the results, given e.
    pub(super) fn results(&self, e: &[u64]) -> Result<Vec<u64>, ProtocolError> {
        let Activation { kept, to, shape, .. } = *self.layer;
        let signs = Signs { party: self.party, salts: &self.salts[1], made: &self.material.signs, kept, to };
        match shape {
            Shape::Identity => signs.values(e),
            Shape::Relu => signs.positive(e),
            Shape::Clip(high) => {
                // What is above the bound, the positive part of u less that, is taken off.
                let (of, ring) = (Ring::Pow2(kept), Ring::Pow2(to));
                let above = signs.positive(&e.iter().map(|e| of.sub(*e, high)).collect::<Vec<_>>())?;
                let both = signs.positive(e)?.into_iter().zip(above);
                Ok(both.map(|(positive, above)| ring.sub(positive, above)).collect())
            }
        }
    }

    /// This party's share of a public number.
    fn public(&self, number: u64) -> u64 {
        if self.party == Party::Server { number } else { 0 }
    }
}

fn send(channel: &mut dyn Channel, message: &[u8]) -> Result<(), ProtocolError> {
    channel.send(kind::MASKED_VALUES, message)?;
    Ok(channel.flush()?)
}

/// Values of a message of the peer's.
fn receive(channel: &mut dyn Channel, count: usize, bits: u32) -> Result<Vec<u64>, ProtocolError> {
    let message = channel.receive(kind::MASKED_VALUES, packed_len(count, bits))?;
    Ok(Reader::new(&message).packed(count, bits).map_err(ChannelError::from)?)
}
