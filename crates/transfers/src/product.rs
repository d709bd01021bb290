//! Products of a bit that one party chooses and a value that the other offers, modulo `2^l`.
//!
//! With keys `k_0, k_1` of a random transfer of choice `r`, the chooser of `c` sends `f = c xor r`; the other answers
//! `v + k_f - k_(1-f)`, which lets the chooser compute `c v + k_f`. Shares are that and `-k_f`.

use lanner_primitives::{Block, Ring, parallel};
use lanner_step::Result;
use lanner_wire::{DecodeError, Reader, Writer, pack_bits, pack_bits_to, packed_len};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::lanes::{Lanes, Values, bit, decode, words};
use super::role::{Role, packed};
use super::source::{ITEM, Source, parts};

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
    pub(super) fn new(source: &mut Source<'_>, count: usize) -> Result<Self> {
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
    pub(super) fn new(source: &mut Source<'_>, count: usize) -> Result<Self> {
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

/// This party's shares of products of one's numbers and the other's values, modulo `2^bits`, summed bit by bit of the numbers: bit `i`
/// weighs `2^i`, so what lies above `2^bits` is not sent.
pub(super) struct Products {
    /// Bits of the numbers.
    factor: u32,
    bits: u32,
    sum: Values,
}

/// The first party's role in products.
pub(super) struct ChoosingProducts {
    chosen: Chosen,
    numbers: Values,
    products: Products,
}

/// The second party's.
pub(super) struct OfferingProducts {
    offered: Offered,
    values: Values,
    /// What the first party said.
    flips: Vec<u64>,
    products: Products,
}

impl Products {
    /// On top of what was summed before.
    pub(super) const fn new([factor, bits]: [u32; 2], sum: Values) -> Self {
        Self { factor, bits, sum }
    }

    /// What the party of the numbers says.
    pub(super) fn flips(&self, chosen: &Chosen, numbers: &Values) -> Vec<u8> {
        let mut flips = vec![0; numbers.len()];
        for i in 0..self.factor {
            let of_bit = chosen.flips(self.start(i), &numbers.map(|x| x >> i & 1));
            flips.iter_mut().zip(of_bit).for_each(|(flips, flip)| *flips |= flip << i);
        }
        pack_bits(&flips, self.factor)
    }

    /// What the party of the values hears.
    pub(super) fn read_flips(&self, message: &mut Reader<'_>) -> Result<Vec<u64>> {
        packed(message, self.sum.len(), self.factor)
    }

    /// Adds the shares of the party of the values, which then says this.
    pub(super) fn correct(&mut self, offered: &Offered, flips: &[u64], values: &Values) -> Vec<u8> {
        let mut message = Vec::new();
        for i in 0..self.factor {
            let flips: Vec<u64> = flips.iter().map(|flips| flips >> i & 1).collect();
            let (corrections, shares) = offered.correct(self.start(i), &flips, values, self.bits - i);
            message.extend(corrections);
            self.add(i, &shares);
        }
        message
    }

    /// Adds the shares of the party of the numbers, which hears that.
    pub(super) fn take(&mut self, chosen: &Chosen, numbers: &Values, message: &mut Reader<'_>) -> Result<()> {
        for i in 0..self.factor {
            let bits = self.bits - i;
            let corrections = packed(message, numbers.len(), bits)?;
            let choices = numbers.map(|x| x >> i & 1);
            let shares = chosen.shares(self.start(i), &choices, &corrections, bits);
            self.add(i, &shares);
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Vec<Values> {
        vec![self.sum]
    }

    /// Adds the shares of the products of bit `i`.
    fn add(&mut self, i: u32, shares: &Values) {
        let ring = Ring::Pow2(self.bits);
        let sums = self.sum.iter_mut().zip(shares.iter());
        sums.for_each(|(sum, share)| *sum = ring.add(*sum, ring.embed((share << i) as i64)));
    }

    /// The transfers of bit `i` start here.
    fn start(&self, i: u32) -> usize {
        i as usize * self.sum.len()
    }
}

impl ChoosingProducts {
    pub(super) fn new(chosen: Chosen, numbers: Values, size: [u32; 2]) -> Self {
        let sum = numbers.map(|_| 0);
        Self { chosen, numbers, products: Products::new(size, sum) }
    }
}

impl OfferingProducts {
    pub(super) fn new(offered: Offered, values: Values, size: [u32; 2]) -> Self {
        let sum = values.map(|_| 0);
        Self { offered, values, flips: Vec::new(), products: Products::new(size, sum) }
    }
}

impl Role for ChoosingProducts {
    fn say(&mut self) -> Vec<u8> {
        self.products.flips(&self.chosen, &self.numbers)
    }

    fn hear(&mut self, message: &mut Reader<'_>) -> Result<()> {
        self.products.take(&self.chosen, &self.numbers, message)
    }

    fn finish(self: Box<Self>) -> Vec<Values> {
        self.products.finish()
    }
}

impl Role for OfferingProducts {
    fn say(&mut self) -> Vec<u8> {
        self.products.correct(&self.offered, &self.flips, &self.values)
    }

    fn hear(&mut self, message: &mut Reader<'_>) -> Result<()> {
        self.flips = self.products.read_flips(message)?;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<Values> {
        self.products.finish()
    }
}
