//! Products of a bit that one party chooses and a value that the other offers, modulo `2^l`.
//!
//! With keys `k_0, k_1` of a random transfer of choice `r`, the chooser of `c` sends `f = c xor r`; the other answers
//! `v + k_f - k_(1-f)`, which lets the chooser compute `c v + k_f`. Shares are that and `-k_f`.

use lanner_primitives::{Block, Ring, parallel};
use lanner_wire::{DecodeError, Reader, Writer, pack_bits, pack_bits_to, packed_len};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::lanes::{Lanes, Values, bit, decode, words};
use super::run::{Role, packed};
use super::source::{ITEM, Source, parts};
use crate::ProtocolError;

/// The offering party's keys.
pub(super) struct Offered(Zeroizing<Vec<[u64; 2]>>);

/// The choosing party's random choices, in words, and the key of each.
pub(super) struct Chosen {
    random: Values,
    keys: Values,
}

impl ZeroizeOnDrop for Offered {}

impl ZeroizeOnDrop for Chosen {}

impl Offered {
    pub(super) fn new(source: &mut Source<'_>, count: usize) -> Result<Self, ProtocolError> {
        let (mut keys, delta) = (Zeroizing::new(Vec::with_capacity(count)), source.delta());
        for count in parts(count) {
            let part = source.draw(count)?;
            let (zeros, ones) = (part.keys(Block::ZERO), part.keys(delta));
            keys.extend(zeros.iter().zip(ones.iter()).map(|(k0, k1)| [*k0, *k1]));
        }
        Ok(Self(keys))
    }

    pub(super) fn encode(&self, bits: u32, writer: &mut Writer) {
        writer.packed(self.0.as_flattened(), bits);
    }

    /// Of a given number of transfers, of whose keys `bits` bits are of use.
    pub(super) fn decode(reader: &mut Reader, count: usize, bits: u32) -> Result<Self, DecodeError> {
        let keys = decode(reader, 2 * count, bits)?;
        Ok(Self(Zeroizing::new(keys.as_chunks().0.to_vec())))
    }

    /// The corrections of the transfers from `start` on for the flips and values given, and this party's shares.
    pub(super) fn correct(
        &self,
        start: usize,
        flips: &[u64],
        values: &[u64],
        bits: u32,
    ) -> (Vec<u8>, Values) {
        let ring = Ring::Pow2(bits);
        let mut corrections = vec![0; packed_len(values.len(), bits)];
        let mut shares = Zeroizing::new(vec![0; values.len()]);
        let operands = self.0[start..].chunks(ITEM).zip(flips.chunks(ITEM)).zip(values.chunks(ITEM));
        let made = corrections.chunks_mut(packed_len(ITEM, bits)).zip(shares.chunks_mut(ITEM));
        parallel::for_each(made.zip(operands), |((corrections, shares), ((keys, flips), values))| {
            let mut corrected = [0; ITEM];
            let results = corrected.iter_mut().zip(shares).zip(keys.iter().zip(flips).zip(values));
            for ((corrected, share), (([k0, k1], flip), value)) in results {
                let swap = (k0 ^ k1) & flip.wrapping_neg();
                let (zero, one) = (k0 ^ swap, k1 ^ swap);
                *corrected = value.wrapping_add(zero).wrapping_sub(one);
                *share = ring.neg(ring.embed(zero as i64));
            }
            pack_bits_to(&corrected[..values.len()], bits, corrections);
        });
        (corrections, shares)
    }
}

impl Chosen {
    pub(super) fn new(source: &mut Source<'_>, count: usize) -> Result<Self, ProtocolError> {
        let mut random = Zeroizing::new(Vec::with_capacity(words(count)));
        let mut keys = Zeroizing::new(Vec::with_capacity(count));
        for count in parts(count) {
            let part = source.draw(count)?;
            keys.extend_from_slice(&part.keys(Block::ZERO));
            random.extend((0..count).step_by(64).map(|i| part.choices(i)));
        }
        Ok(Self { random, keys })
    }

    pub(super) fn encode(&self, bits: u32, writer: &mut Writer) {
        writer.packed(&self.random, 64);
        writer.packed(&self.keys, bits);
    }

    /// As [`Offered::decode`].
    pub(super) fn decode(reader: &mut Reader, count: usize, bits: u32) -> Result<Self, DecodeError> {
        Ok(Self { random: decode(reader, words(count), 64)?, keys: decode(reader, count, bits)? })
    }

    /// What is sent for choices, each 0 or 1, by the transfers from `start` on.
    pub(super) fn flips(&self, start: usize, choices: &[u64]) -> Vec<u64> {
        choices.iter().zip(start..).map(|(c, i)| c ^ bit(&self.random, i)).collect()
    }

    /// This party's shares of the transfers from `start` on, given the corrections.
    pub(super) fn shares(&self, start: usize, choices: &[u64], corrections: &[u64], bits: u32) -> Values {
        let ring = Ring::Pow2(bits);
        let keys = self.keys[start..start + choices.len()].iter().zip(corrections).zip(choices);
        let share = |((key, correction), choice): ((&u64, &u64), &u64)| {
            ring.embed(key.wrapping_add(correction & choice.wrapping_neg()) as i64)
        };
        Zeroizing::new(keys.map(share).collect())
    }
}

/// The first party's values of `factor` bits times the second's, modulo `2^bits`: bit `i` weighs `2^i`, so what lies above `2^bits` is not
/// sent.
pub(super) struct Factors {
    pub(super) mine: Values,
    pub(super) factor: u32,
    pub(super) bits: u32,
    sum: Values,
}

/// The first party's role in products.
pub(super) struct ChoosingProducts {
    pub(super) chosen: Chosen,
    pub(super) of: Factors,
}

/// The second party's.
pub(super) struct OfferingProducts {
    pub(super) offered: Offered,
    pub(super) of: Factors,
    /// What the first party said.
    flips: Vec<u64>,
}

impl Factors {
    pub(super) fn new(mine: Values, factor: u32, bits: u32) -> Self {
        let sum = Zeroizing::new(vec![0; mine.len()]);
        Self { mine, factor, bits, sum }
    }

    /// Adds the shares of the products of bit `i`.
    fn add(&mut self, i: u32, shares: &[u64]) {
        let ring = Ring::Pow2(self.bits);
        let sums = self.sum.iter_mut().zip(shares);
        sums.for_each(|(sum, share)| *sum = ring.add(*sum, ring.embed((share << i) as i64)));
    }

    /// The transfers of bit `i` start here.
    fn start(&self, i: u32) -> usize {
        i as usize * self.mine.len()
    }
}

impl OfferingProducts {
    pub(super) const fn new(offered: Offered, of: Factors) -> Self {
        Self { offered, of, flips: Vec::new() }
    }
}

impl Role for ChoosingProducts {
    fn say(&mut self) -> Vec<u8> {
        let mut flips = vec![0; self.of.mine.len()];
        for i in 0..self.of.factor {
            let of_bit = self.chosen.flips(self.of.start(i), &self.of.mine.map(|x| x >> i & 1));
            flips.iter_mut().zip(of_bit).for_each(|(flips, flip)| *flips |= flip << i);
        }
        pack_bits(&flips, self.of.factor)
    }

    fn hear(&mut self, message: &mut Reader<'_>) -> Result<(), ProtocolError> {
        for i in 0..self.of.factor {
            let bits = self.of.bits - i;
            let corrections = packed(message, self.of.mine.len(), bits)?;
            let choices = self.of.mine.map(|x| x >> i & 1);
            let shares = self.chosen.shares(self.of.start(i), &choices, &corrections, bits);
            self.of.add(i, &shares);
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<Values> {
        vec![self.of.sum]
    }
}

impl Role for OfferingProducts {
    fn say(&mut self) -> Vec<u8> {
        let mut message = Vec::new();
        for i in 0..self.of.factor {
            let flips: Vec<u64> = self.flips.iter().map(|word| word >> i & 1).collect();
            let (corrections, share) =
                self.offered.correct(self.of.start(i), &flips, &self.of.mine, self.of.bits - i);
            message.extend(corrections);
            self.of.add(i, &share);
        }
        message
    }

    fn hear(&mut self, message: &mut Reader<'_>) -> Result<(), ProtocolError> {
        self.flips = packed(message, self.of.mine.len(), self.of.factor)?;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<Values> {
        vec![self.of.sum]
    }
}
