//! The moves as one party makes them with its peer.

use lanner_primitives::Ring;
use lanner_wire::{Channel, ChannelError, Kind, Reader, pack_bits};
use zeroize::Zeroizing;

use super::driver::Driver;
use super::lanes::{Lanes, Values, mask};
use super::leaf::Leaves;
use super::material::{Material, Prepared, PreparedMove};
use super::moves::Move;
use crate::{Party, ProtocolError, kind};

/// One party's walk through the moves of a layer, with their material.
pub(super) struct Run<'c> {
    channel: &'c mut dyn Channel,
    party: Party,
    material: std::vec::IntoIter<PreparedMove>,
}

impl<'c> Run<'c> {
    pub(super) fn new(channel: &'c mut dyn Channel, party: Party, material: Material) -> Self {
        Self { channel, party, material: material.0.into_iter() }
    }

    /// The material of this move, which must be the next, and whether this party speaks first in it.
    fn next(&mut self, step: Move) -> Result<(Prepared, bool), ProtocolError> {
        match self.material.next() {
            Some(next) if next.step == step => Ok((next.prepared, next.is_first)),
            _ => Err(other_material()),
        }
    }

    /// Ends the walk, which has come through all the material.
    pub(super) fn finish(mut self) -> Result<(), ProtocolError> {
        self.material.next().map_or(Ok(()), |_| Err(other_material()))
    }

    fn send(&mut self, kind: Kind, message: &[u8]) -> Result<(), ProtocolError> {
        self.channel.send(kind, message)?;
        Ok(self.channel.flush()?)
    }
}

impl Driver for Run<'_> {
    type Values = Values;

    fn party(&self) -> Party {
        self.party
    }

    fn leaves(&mut self, mine: &Values, bits: u32) -> Result<Leaves, ProtocolError> {
        let step = Move::Leaves { values: mine.len(), bits };
        let lengths = step.messages();
        match self.next(step)?.0 {
            Prepared::LeafChoices(choices) => {
                let x = mine.map(|a| !a & mask(bits));
                self.send(kind::LEAF_CHOICES, &choices.choose(&x, bits))?;
                let reply = self.channel.receive(kind::LEAF_REPLIES, lengths[1])?;
                choices.open(&x, bits, &reply)
            }
            Prepared::LeafKeys(keys) => {
                let choices = self.channel.receive(kind::LEAF_CHOICES, lengths[0])?;
                let (reply, leaves) = keys.reply(&choices, mine, bits)?;
                self.send(kind::LEAF_REPLIES, &reply)?;
                Ok(leaves)
            }
            _ => Err(other_material()),
        }
    }

    fn and(&mut self, u: &Values, v: &Values) -> Result<Values, ProtocolError> {
        let step = Move::AndTriples { words: u.len() };
        let (Prepared::AndTriples(triples), is_first) = self.next(step)? else {
            return Err(other_material());
        };
        let mine = triples.masked(u, v);
        let message = pack_bits(&mine, 64);
        if is_first {
            self.send(kind::AND_TRIPLES, &message)?;
        }
        let theirs = self.channel.receive(kind::AND_TRIPLES, message.len())?;
        if !is_first {
            self.send(kind::AND_TRIPLES, &message)?;
        }
        let theirs = packed(&mut Reader::new(&theirs), mine.len(), 64)?;
        Ok(triples.product(&mine, &theirs, is_first))
    }

    fn mux(&mut self, choices: &Values, x: &Values, bits: u32) -> Result<Values, ProtocolError> {
        let step = Move::Mux { values: x.len(), bits };
        let (Prepared::Mux(offered, chosen), is_first) = self.next(step)? else {
            return Err(other_material());
        };
        let (ring, lengths) = (Ring::Pow2(bits), step.messages());
        let choices = choices.bits(x.len());
        // (c_F xor c_G)(z_F + z_G) = c z of each party's own, and its choice times (1 - 2c) z of the other's.
        let own = x.zip_map(&choices, |x, c| x & c.wrapping_neg());
        let offer = x.zip_map(&own, |x, own| ring.sub(ring.sub(x, own), own));
        let flips = pack_bits(&chosen.flips(0, &choices), 1);
        let (given, corrections) = if is_first {
            self.send(kind::MUX, &flips)?;
            let message = self.channel.receive(kind::MUX, lengths[1])?;
            let mut message = Reader::new(&message);
            let (mine, given) = offered.correct(0, &packed(&mut message, x.len(), 1)?, &offer, bits);
            self.send(kind::MUX, &mine)?;
            (given, packed(&mut message, x.len(), bits)?)
        } else {
            let theirs = self.channel.receive(kind::MUX, lengths[0])?;
            let theirs = packed(&mut Reader::new(&theirs), x.len(), 1)?;
            let (mine, given) = offered.correct(0, &theirs, &offer, bits);
            self.send(kind::MUX, &[flips, mine].concat())?;
            let corrections = self.channel.receive(kind::MUX, lengths[2])?;
            (given, packed(&mut Reader::new(&corrections), x.len(), bits)?)
        };
        let got = chosen.shares(0, &choices, &corrections, bits);
        let add = |x, y| ring.add(x, y);
        Ok(own.zip_map(&given, add).zip_map(&got, add))
    }

    fn product(&mut self, mine: &Values, factor: u32, bits: u32) -> Result<Values, ProtocolError> {
        let (values, ring) = (mine.len(), Ring::Pow2(bits));
        let step = Move::Products { values, factor, bits };
        let lengths = step.messages();
        // Bit i of the first party's value weighs 2^i: what lies above 2^bits is not sent.
        let add = |sum: &Values, share: &Values, i: u32| {
            sum.zip_map(share, |sum, share| ring.add(sum, ring.embed((share << i) as i64)))
        };
        let bit = |word: u64, i: u32| word >> i & 1;
        let start = |i: u32| i as usize * values;
        let mut sum = Zeroizing::new(vec![0; values]);
        match self.next(step)?.0 {
            Prepared::Chosen(chosen) => {
                let mut flips = vec![0; values];
                for i in 0..factor {
                    let of_bit = chosen.flips(start(i), &mine.map(|x| bit(x, i)));
                    flips.iter_mut().zip(of_bit).for_each(|(flips, flip)| *flips |= flip << i);
                }
                self.send(kind::PRODUCTS, &pack_bits(&flips, factor))?;
                let message = self.channel.receive(kind::PRODUCTS, lengths[1])?;
                let mut message = Reader::new(&message);
                for i in 0..factor {
                    let corrections = packed(&mut message, values, bits - i)?;
                    let choices = mine.map(|x| bit(x, i));
                    sum = add(&sum, &chosen.shares(start(i), &choices, &corrections, bits - i), i);
                }
            }
            Prepared::Offered(offered) => {
                let message = self.channel.receive(kind::PRODUCTS, lengths[0])?;
                let flips = packed(&mut Reader::new(&message), values, factor)?;
                let mut message = Vec::with_capacity(lengths[1]);
                for i in 0..factor {
                    let flips: Vec<u64> = flips.iter().map(|word| bit(*word, i)).collect();
                    let (corrections, share) = offered.correct(start(i), &flips, mine, bits - i);
                    message.extend(corrections);
                    sum = add(&sum, &share, i);
                }
                self.send(kind::PRODUCTS, &message)?;
            }
            _ => return Err(other_material()),
        }
        Ok(sum)
    }
}

/// The next values of a peer's message.
pub(super) fn packed(message: &mut Reader, count: usize, bits: u32) -> Result<Vec<u64>, ProtocolError> {
    Ok(message.packed(count, bits).map_err(ChannelError::from)?)
}

fn other_material() -> ProtocolError {
    ProtocolError::Shape { what: "material of another move" }
}
