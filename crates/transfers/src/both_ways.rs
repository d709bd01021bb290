//! Products of each party's numbers and the other's values, in three messages: multiplexers, and products of shared values.
//!
//! `(c_F xor c_G)(z_F + z_G)` is `c z` of each party's own, and its choice times `(1 - 2c) z` of the other's. `(x_F + x_G)(z_F + z_G)` is
//! `x z` of each party's own, and its number times the other's `z`, bit by bit.

use lanner_primitives::Ring;
use lanner_step::Result;
use lanner_wire::Reader;

use super::lanes::{Lanes, Values};
use super::product::{Chosen, Offered, Products};
use super::role::Role;

/// One party's role. The first says its flips, the second its own and what corrects the first's, the first what corrects the second's.
pub(super) struct BothWays {
    offered: Offered,
    chosen: Chosen,
    /// What this party multiplies the other's with.
    numbers: Values,
    /// What this party offers.
    offer: Values,
    products: Products,
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
        let (numbers, offer, own) = match operands {
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
        let products = Products::new([factor, bits], own);
        Self { offered, chosen, numbers, offer, products, flips: Vec::new(), is_first, is_open: false }
    }

    fn corrections(&mut self) -> Vec<u8> {
        self.products.correct(&self.offered, &self.flips, &self.offer)
    }
}

impl Role for BothWays {
    fn say(&mut self) -> Vec<u8> {
        if self.is_open {
            return self.corrections();
        }
        self.is_open = true;
        let mut message = self.products.flips(&self.chosen, &self.numbers);
        if !self.is_first {
            message.extend(self.corrections());
        }
        message
    }

    fn hear(&mut self, message: &mut Reader<'_>) -> Result<()> {
        // The second's corrections come with its flips, the first's behind both.
        if !self.is_open || self.is_first {
            self.flips = self.products.read_flips(message)?;
        }
        if self.is_open { self.products.take(&self.chosen, &self.numbers, message) } else { Ok(()) }
    }

    fn finish(self: Box<Self>) -> Vec<Values> {
        self.products.finish()
    }
}
