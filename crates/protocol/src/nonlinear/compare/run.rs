//! The moves as one party makes them, and the protocols made of them: carries, signs, selections, extensions.

use lanner_share::Ring;
use lanner_wire::{Channel, Kind, pack_bits, packed_len};
use zeroize::Zeroizing;

use super::leaf::{split, unpack};
use super::material::{Material, Prepared, Words};
use super::moves::Move;
use crate::{Party, ProtocolError, kind};

/// Values of one party's share, reduced modulo a power of two that the protocol knows.
pub(super) type Values = Zeroizing<Vec<u64>>;

/// One party's walk through the moves of a layer, with their material.
pub(super) struct Run<'c> {
    channel: &'c mut dyn Channel,
    me: Party,
    first: Party,
    material: std::vec::IntoIter<Prepared>,
}

impl<'c> Run<'c> {
    pub(super) fn new(channel: &'c mut dyn Channel, me: Party, material: Material) -> Self {
        Self { channel, me, first: Party::Client, material: material.0.into_iter() }
    }

    /// This party's share of `[a + b >= 2^bits]` for each `a` of the client's and `b` of the server's, both of so many bits.
    pub(super) fn carry(&mut self, mine: &[u64], bits: u32) -> Result<Words, ProtocolError> {
        let leaves = self.leaves(mine, bits)?;
        // Neighbours join, the higher block deciding: less = less_h xor (equal_h and less_l). Of the lowest, equality is not needed.
        let mut level: Vec<[Words; 2]> = leaves;
        while level.len() > 1 {
            level = self.join(level)?;
        }
        let [less, _] = level.pop().ok_or(ProtocolError::Shape { what: "a carry of no bits" })?;
        Ok(less)
    }

    /// This party's shares modulo `2^to` of what [`Self::carry`] gives as bits: the sum of both parties' bits less twice their product.
    pub(super) fn carry_value(&mut self, mine: &[u64], bits: u32, to: u32) -> Result<Values, ProtocolError> {
        let (carry, ring) = (self.carry(mine, bits)?, Ring::Pow2(to));
        let carry = unpacked(&carry, mine.len());
        let both = self.overlap(&carry, both_bits(to))?;
        Ok(Zeroizing::new(
            carry.iter().zip(both.iter()).map(|(carry, both)| ring.sub(*carry, both << 1)).collect(),
        ))
    }

    /// This party's share of the sign of each value shared modulo `2^bits`.
    pub(super) fn negative(&mut self, x: &[u64], bits: u32) -> Result<Words, ProtocolError> {
        let low: Values = Zeroizing::new(x.iter().map(|x| x & mask(bits - 1)).collect());
        let mut sign = self.carry(&low, bits - 1)?;
        for (i, x) in x.iter().enumerate() {
            sign[i / 64] ^= (x >> (bits - 1) & 1) << (i % 64);
        }
        Ok(sign)
    }

    /// This party's share of the complement of a shared bit.
    pub(super) fn not(&self, mut bits: Words) -> Words {
        if self.me == Party::Client {
            bits.iter_mut().for_each(|word| *word = !*word);
        }
        bits
    }

    /// This party's share of each value where the shared bit is one, and of zero elsewhere, modulo `2^bits`.
    pub(super) fn select(&mut self, choices: &Words, x: &[u64], bits: u32) -> Result<Values, ProtocolError> {
        let (Prepared::Selections(offered, chosen), is_first) = self.next()? else {
            return Err(other_material());
        };
        let ring = Ring::Pow2(bits);
        let choices = unpacked(choices, x.len());
        // (c_F xor c_G)(z_F + z_G) = c z of each party's own, and its choice times (1 - 2c) z of the other's.
        let own = x.iter().zip(choices.iter()).map(|(x, c)| x & c.wrapping_neg());
        let own: Values = Zeroizing::new(own.collect());
        let offer = x.iter().zip(own.iter()).map(|(x, own)| ring.sub(ring.sub(*x, *own), *own));
        let offer: Values = Zeroizing::new(offer.collect());
        let flips = pack_bits(&chosen.flips(&choices), 1);
        let (one, width) = (packed_len(x.len(), 1), packed_len(x.len(), bits));
        let (corrections, given) = if is_first {
            self.send(kind::SELECTIONS, &flips)?;
            let message = self.channel.receive(kind::SELECTIONS, one + width)?;
            let (theirs, corrections) = split(&message, one)?;
            let (mine, given) = offered.correct(0, &unpack(theirs, x.len(), 1)?, &offer, bits);
            self.send(kind::SELECTIONS, &mine)?;
            (corrections.to_vec(), given)
        } else {
            let theirs = self.channel.receive(kind::SELECTIONS, one)?;
            let (mine, given) = offered.correct(0, &unpack(&theirs, x.len(), 1)?, &offer, bits);
            self.send(kind::SELECTIONS, &[flips, mine].concat())?;
            let corrections = self.channel.receive(kind::SELECTIONS, width)?;
            (corrections, given)
        };
        let got = chosen.shares(0, &choices, &corrections, bits)?;
        let sum = own.iter().zip(given.iter()).zip(got.iter());
        Ok(Zeroizing::new(sum.map(|((own, given), got)| ring.add(ring.add(*own, *given), *got)).collect()))
    }

    /// This party's share modulo `2^bits` of the product of both parties' bits, each 0 or 1.
    pub(super) fn overlap(&mut self, mine: &[u64], bits: u32) -> Result<Values, ProtocolError> {
        let width = packed_len(mine.len(), bits);
        match self.next()?.0 {
            Prepared::Chosen(chosen) => {
                self.send(kind::PRODUCTS, &pack_bits(&chosen.flips(mine), 1))?;
                let corrections = self.channel.receive(kind::PRODUCTS, width)?;
                chosen.shares(0, mine, &corrections, bits)
            }
            Prepared::Offered(offered) => {
                let flips = self.channel.receive(kind::PRODUCTS, packed_len(mine.len(), 1))?;
                let (corrections, share) = offered.correct(0, &unpack(&flips, mine.len(), 1)?, mine, bits);
                self.send(kind::PRODUCTS, &corrections)?;
                Ok(share)
            }
            _ => Err(other_material()),
        }
    }

    /// This party's share modulo `2^bits` of the product of both parties' values.
    pub(super) fn product(&mut self, mine: &[u64], bits: u32) -> Result<Values, ProtocolError> {
        let (values, ring) = (mine.len(), Ring::Pow2(bits));
        // Bit i of the first party's value weighs 2^i: what lies above 2^bits is not sent.
        let mut sum: Values = Zeroizing::new(vec![0; values]);
        let mut add = |bit: u32, share: &[u64]| {
            let terms = sum.iter_mut().zip(share);
            terms.for_each(|(sum, share)| *sum = ring.add(*sum, ring.embed((share << bit) as i64)));
        };
        match self.next()?.0 {
            Prepared::Chosen(chosen) => {
                let bit =
                    |bit: u32| -> Values { Zeroizing::new(mine.iter().map(|x| x >> bit & 1).collect()) };
                let choices: Values = Zeroizing::new((0..bits).flat_map(|i| bit(i).to_vec()).collect());
                let flips = chosen.flips(&choices);
                let packed = (0..values)
                    .map(|v| (0..bits).rev().fold(0, |word, i| word << 1 | flips[i as usize * values + v]));
                let packed: Vec<u64> = packed.collect();
                self.send(kind::PRODUCTS, &pack_bits(&packed, bits))?;
                let length = (1..=bits).map(|bits| packed_len(values, bits)).sum();
                let message = self.channel.receive(kind::PRODUCTS, length)?;
                let mut rest = message.as_slice();
                for i in 0..bits {
                    let (now, later) = split(rest, packed_len(values, bits - i))?;
                    rest = later;
                    let start = i as usize * values;
                    add(i, &chosen.shares(start, &choices[start..start + values], now, bits - i)?);
                }
            }
            Prepared::Offered(offered) => {
                let packed = self.channel.receive(kind::PRODUCTS, packed_len(values, bits))?;
                let packed = unpack(&packed, values, bits)?;
                let mut message = Vec::new();
                for i in 0..bits {
                    let flips: Vec<u64> = packed.iter().map(|word| word >> i & 1).collect();
                    let (corrections, share) = offered.correct(i as usize * values, &flips, mine, bits - i);
                    message.extend(corrections);
                    add(i, &share);
                }
                self.send(kind::PRODUCTS, &message)?;
            }
            _ => return Err(other_material()),
        }
        Ok(sum)
    }

    /// Shares modulo `2^to` of values from 0 that are shared modulo `2^from`. Where all are `below_half`, of the latter, that takes one product.
    pub(super) fn extend(
        &mut self,
        x: &[u64],
        from: u32,
        to: u32,
        below_half: bool,
    ) -> Result<Values, ProtocolError> {
        let ring = Ring::Pow2(to);
        if to <= from {
            return Ok(Zeroizing::new(x.iter().map(|x| ring.embed(*x as i64)).collect()));
        }
        let wraps = if below_half {
            // The shares wrap if either has its top bit set: the value has not. Both have it in the product.
            let top: Values = Zeroizing::new(x.iter().map(|x| x >> (from - 1) & 1).collect());
            let both = self.overlap(&top, to - from)?;
            Zeroizing::new(top.iter().zip(both.iter()).map(|(top, both)| top.wrapping_sub(*both)).collect())
        } else {
            self.carry_value(x, from, to - from)?
        };
        let extended = x.iter().zip(wraps.iter());
        let extended = extended.map(|(x, wrap)| ring.sub(*x, ring.embed((wrap << from) as i64)));
        Ok(Zeroizing::new(extended.collect()))
    }

    fn leaves(&mut self, mine: &[u64], bits: u32) -> Result<Vec<[Words; 2]>, ProtocolError> {
        match self.next()?.0 {
            Prepared::LeafChoices(choices) => {
                let x: Values = Zeroizing::new(mine.iter().map(|a| !a & mask(bits)).collect());
                self.send(kind::LEAF_CHOICES, &choices.choose(&x))?;
                let step = Move::Leaves { values: mine.len(), bits };
                let reply = self.channel.receive(kind::LEAF_REPLIES, step.messages()[1])?;
                choices.open(&x, &reply)
            }
            Prepared::LeafKeys(keys) => {
                let choices = self.channel.receive(kind::LEAF_CHOICES, packed_len(mine.len(), bits))?;
                let (reply, leaves) = keys.reply(&choices, mine)?;
                self.send(kind::LEAF_REPLIES, &reply)?;
                Ok(leaves)
            }
            _ => Err(other_material()),
        }
    }

    /// One level of the tree: neighbours joined, all in one exchange.
    fn join(&mut self, level: Vec<[Words; 2]>) -> Result<Vec<[Words; 2]>, ProtocolError> {
        let (mut u, mut v) = (Zeroizing::new(Vec::new()), Zeroizing::new(Vec::new()));
        for (number, pair) in level.chunks_exact(2).enumerate() {
            let [[less, equal], [_, equal_high]] = [&pair[0], &pair[1]];
            u.extend_from_slice(equal_high);
            v.extend_from_slice(less);
            if number > 0 {
                u.extend_from_slice(equal_high);
                v.extend_from_slice(equal);
            }
        }
        let products = self.conjunction(&u, &v)?;
        let mut products = products.chunks_exact(level[0][0].len());
        let mut joined = Vec::with_capacity(level.len().div_ceil(2));
        let mut level = level.into_iter();
        while let Some(low) = level.next() {
            let Some([mut less, _]) = level.next() else {
                joined.push(low);
                break;
            };
            let lower = products.next().unwrap_or_default();
            less.iter_mut().zip(lower).for_each(|(less, lower)| *less ^= lower);
            let equal = if joined.is_empty() {
                low[1].to_vec()
            } else {
                products.next().unwrap_or_default().to_vec()
            };
            joined.push([less, Zeroizing::new(equal)]);
        }
        Ok(joined)
    }

    /// This party's share of the product of each shared bit of `u` and that of `v`, in words.
    pub(super) fn conjunction(&mut self, u: &[u64], v: &[u64]) -> Result<Words, ProtocolError> {
        let (Prepared::Triples(triples), is_first) = self.next()? else { return Err(other_material()) };
        let mine = triples.masked(u, v);
        let theirs = if is_first {
            self.send(kind::CONJUNCTIONS, &mine)?;
            self.channel.receive(kind::CONJUNCTIONS, mine.len())?
        } else {
            let theirs = self.channel.receive(kind::CONJUNCTIONS, mine.len())?;
            self.send(kind::CONJUNCTIONS, &mine)?;
            theirs
        };
        Ok(triples.product(&mine, &theirs))
    }

    /// The material of the next move, and whether this party speaks first in it.
    fn next(&mut self) -> Result<(Prepared, bool), ProtocolError> {
        let prepared = self.material.next().ok_or_else(other_material)?;
        let is_first = self.me == self.first;
        // As the turns of `Moves`.
        if !matches!(prepared, Prepared::Selections(..)) {
            self.first = self.first.other();
        }
        Ok((prepared, is_first))
    }

    fn send(&mut self, kind: Kind, message: &[u8]) -> Result<(), ProtocolError> {
        self.channel.send(kind, message)?;
        Ok(self.channel.flush()?)
    }
}

/// Bits of what both parties' bits are a product of in a carry modulo `2^to`: twice it counts.
pub(super) const fn both_bits(to: u32) -> u32 {
    if to > 1 { to - 1 } else { 1 }
}

/// Bits, one a word, as words of 64.
pub(super) fn packed(bits: &[u64]) -> Words {
    let word = |bits: &[u64]| bits.iter().rev().fold(0, |word, bit| word << 1 | bit);
    Zeroizing::new(bits.chunks(64).map(word).collect())
}

/// The bits of the first `count` values, one a word.
pub(super) fn unpacked(bits: &Words, count: usize) -> Values {
    Zeroizing::new((0..count).map(|i| bits[i / 64] >> (i % 64) & 1).collect())
}

pub(super) const fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

fn other_material() -> ProtocolError {
    ProtocolError::Shape { what: "material of another move" }
}
