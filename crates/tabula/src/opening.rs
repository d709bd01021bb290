//! One party's part of the online phase: both openings, and what follows from them.

use lanner_dpf::Salts;
use lanner_primitives::Ring;
use lanner_step::{Party, Result, kind};
use lanner_wire::{Channel, ChannelError, Reader, pack_bits, packed_len};

use super::keys::Made;

/// A party's view of values under masks s, of which `dropped` of all bits are dropped, and of the numbers t that those are opened under.
pub(super) struct Opening<'a> {
    pub(super) party: Party,
    /// Of the keys of low bits.
    pub(super) salts: &'a Salts,
    pub(super) kept: u32,
    pub(super) dropped: u32,
    /// This party's shares of s.
    pub(super) masks: &'a [u64],
    /// Of the low bits of s; none of a stochastic rescale, whose t is the upper bits of s.
    pub(super) borrows: Option<&'a Made>,
    /// This party's shares of t.
    pub(super) t: &'a [u64],
}

impl Opening<'_> {
    /// Bits of a value.
    const fn bits(&self) -> u32 {
        self.kept + self.dropped
    }

    /// e of values, given this party's shares of them.
    pub(super) fn rescale(&self, channel: &mut dyn Channel, share: &[u64]) -> Result<Vec<u64>> {
        let ring = Ring::Pow2(self.bits());
        let masked = share.iter().zip(self.masks).map(|(x, s)| ring.add(ring.embed(*x as i64), *s));
        self.open(channel, &masked.collect::<Vec<_>>())
    }

    /// e, given this party's part of v.
    fn open(&self, channel: &mut dyn Channel, masked: &[u64]) -> Result<Vec<u64>> {
        let (kept, ring) = (self.kept, Ring::Pow2(self.kept));
        let (mine, theirs) = match (self.party, self.borrows) {
            (Party::Client, Some(borrows)) => self.ask(channel, masked, borrows)?,
            (Party::Server, Some(borrows)) => self.answer(channel, masked, borrows)?,
            // A stochastic rescale is what is left of v, whose low bits the client must not see.
            (Party::Client, None) => {
                send(channel, &pack_bits(masked, self.bits()))?;
                return receive(channel, masked.len(), kept);
            }
            (Party::Server, None) => {
                let v = self.sum(channel, masked)?;
                let e: Vec<u64> = v.iter().map(|v| v >> self.dropped).collect();
                send(channel, &pack_bits(&e, kept))?;
                return Ok(e);
            }
        };
        Ok(mine.iter().zip(theirs).map(|(a, b)| ring.add(*a, b)).collect())
    }

    /// The server's sum of both parties' parts of v.
    fn sum(&self, channel: &mut dyn Channel, masked: &[u64]) -> Result<Vec<u64>> {
        let (bits, ring) = (self.bits(), Ring::Pow2(self.bits()));
        let theirs = receive(channel, masked.len(), bits)?;
        Ok(masked.iter().zip(theirs).map(|(a, b)| ring.add(*a, b)).collect())
    }

    /// The client's share of e, and the server's.
    fn ask(&self, channel: &mut dyn Channel, masked: &[u64], borrows: &Made) -> Result<(Vec<u64>, Vec<u64>)> {
        let (wide, kept) = (self.bits(), self.kept);
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
    ) -> Result<(Vec<u64>, Vec<u64>)> {
        let (wide, kept) = (self.bits(), self.kept);
        let (ring, half) = (Ring::Pow2(wide), 1 << (self.dropped - 1));
        let v: Vec<u64> = self.sum(channel, masked)?.iter().map(|v| ring.add(*v, half)).collect();
        let mine = self.rescaled(&v, borrows)?;
        send(channel, &[pack_bits(&v, wide), pack_bits(&mine, kept)].concat())?;
        Ok((mine, receive(channel, masked.len(), kept)?))
    }

    /// This party's share of e: `v_hi - s_hi - [v_lo < s_lo] + t`.
    fn rescaled(&self, v: &[u64], borrows: &Made) -> Result<Vec<u64>> {
        let dropped = self.dropped;
        let points: Vec<u64> = v.iter().map(|v| v & ((1 << dropped) - 1)).collect();
        let [borrowed, _] = borrows.keys.evaluate(self.salts, &points)?;
        let (ring, wide) = (Ring::Pow2(self.kept), Ring::Pow2(self.bits()));
        let share = |i: usize| {
            // A mask less its low bits is a multiple of 2^d: what this party drew.
            let drawn = wide.sub(self.masks[i], borrows.thresholds[i]) >> dropped;
            let own = self.t[i].wrapping_sub(drawn).wrapping_sub(borrowed[i]);
            ring.embed(own.wrapping_add(self.public(v[i] >> dropped)) as i64)
        };
        Ok((0..v.len()).map(share).collect())
    }

    /// This party's share of a public number.
    fn public(&self, number: u64) -> u64 {
        if self.party == Party::Server { number } else { 0 }
    }
}

fn send(channel: &mut dyn Channel, message: &[u8]) -> Result<()> {
    channel.send(kind::MASKED_VALUES, message)?;
    Ok(channel.flush()?)
}

/// Values of a message of the peer's.
fn receive(channel: &mut dyn Channel, count: usize, bits: u32) -> Result<Vec<u64>> {
    let message = channel.receive(kind::MASKED_VALUES, packed_len(count, bits))?;
    Ok(Reader::new(&message).packed(count, bits).map_err(ChannelError::from)?)
}
