//! Products of each party's numbers and the other's values, in three messages: multiplexers, and products of shared values.
//!
//! `(c_F xor c_G)(z_F + z_G)` is `c z` of each party's own, and its choice times `(1 - 2c) z` of the other's. `(x_F + x_G)(z_F + z_G)` is
//! `x z` of each party's own, and its number times the other's `z`, bit by bit.

use lanner_primitives::Ring;
use lanner_wire::{Reader, pack_bits};

use super::lanes::{Lanes, Values};
use super::product::{Chosen, Offered};
use super::run::{Role, packed};
use crate::ProtocolError;

/// One party's role. The first says its flips, the second its own and what corrects the first's, the first what corrects the second's.
pub(super) struct BothWays {
    offered: Offered,
    chosen: Chosen,
    /// Bits of the numbers.
    factor: u32,
    /// Bits of the products: bit `i` of a number weighs `2^i`, so what lies above is not sent.
    bits: u32,
    /// What this party multiplies the other's with.
    numbers: Values,
    /// What this party offers.
    offer: Values,
    /// The product, as far as it goes.
    sum: Values,
    /// What the other party said of its numbers.
    flips: Vec<u64>,
    is_first: bool,
    /// Whether the flips were said.
    is_open: bool,
}

/// What a party multiplies.
pub(super) enum Operands<'v> {
    /// Bits, in words, that are shared by sums modulo two, and values modulo a power of two.
    Mux(&'v Values, &'v Values),
    /// Numbers and values, both shared by sums.
    Product(Values, &'v Values),
}

impl BothWays {
    pub(super) fn new(
        (offered, chosen): (Offered, Chosen),
        operands: Operands<'_>,
        [factor, bits]: [u32; 2],
        is_first: bool,
    ) -> Self {
        let ring = Ring::Pow2(bits);
        let (numbers, offer, sum) = match operands {
            Operands::Mux(choices, values) => {
                let choices = choices.bits(values.len());
                let own = values.zip_map(&choices, |z, c| z & c.wrapping_neg());
                let offer = values.zip_map(&own, |z, own| ring.sub(ring.sub(z, own), own));
                (choices, offer, own)
            }
            Operands::Product(numbers, values) => {
                let own = values.zip_map(&numbers, |z, x| ring.embed(z.wrapping_mul(x) as i64));
                (numbers, values.clone(), own)
            }
        };
        Self {
            offered,
            chosen,
            factor,
            bits,
            numbers,
            offer,
            sum,
            flips: Vec::new(),
            is_first,
            is_open: false,
        }
    }

    /// Adds the shares of the products of bit `i`.
    fn add(&mut self, i: u32, shares: &Values) {
        let ring = Ring::Pow2(self.bits);
        let sums = self.sum.iter_mut().zip(shares.iter());
        sums.for_each(|(sum, share)| *sum = ring.add(*sum, ring.embed((share << i) as i64)));
    }

    /// The transfers of bit `i` start here.
    fn start(&self, i: u32) -> usize {
        i as usize * self.numbers.len()
    }

    fn flips(&self) -> Vec<u8> {
        let mut flips = vec![0; self.numbers.len()];
        for i in 0..self.factor {
            let of_bit = self.chosen.flips(self.start(i), &self.numbers.map(|x| x >> i & 1));
            flips.iter_mut().zip(of_bit).for_each(|(flips, flip)| *flips |= flip << i);
        }
        pack_bits(&flips, self.factor)
    }

    fn corrections(&mut self) -> Vec<u8> {
        let mut message = Vec::new();
        for i in 0..self.factor {
            let flips: Vec<u64> = self.flips.iter().map(|word| word >> i & 1).collect();
            let (corrections, given) =
                self.offered.correct(self.start(i), &flips, &self.offer, self.bits - i);
            message.extend(corrections);
            self.add(i, &given);
        }
        message
    }

    fn take(&mut self, message: &mut Reader<'_>) -> Result<(), ProtocolError> {
        for i in 0..self.factor {
            let bits = self.bits - i;
            let corrections = packed(message, self.numbers.len(), bits)?;
            let choices = self.numbers.map(|x| x >> i & 1);
            let got = self.chosen.shares(self.start(i), &choices, &corrections, bits);
            self.add(i, &got);
        }
        Ok(())
    }
}

impl Role for BothWays {
    fn say(&mut self) -> Vec<u8> {
        if self.is_open {
            return self.corrections();
        }
        self.is_open = true;
        let mut message = self.flips();
        if !self.is_first {
            message.extend(self.corrections());
        }
        message
    }

    fn hear(&mut self, message: &mut Reader<'_>) -> Result<(), ProtocolError> {
        // The second's corrections come with its flips, the first's behind both.
        if !self.is_open || self.is_first {
            self.flips = packed(message, self.numbers.len(), self.factor)?;
        }
        if self.is_open { self.take(message) } else { Ok(()) }
    }

    fn finish(self: Box<Self>) -> Vec<Values> {
        vec![self.sum]
    }
}
