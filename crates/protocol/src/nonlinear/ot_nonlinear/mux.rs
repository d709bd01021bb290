//! Products of shared bits and shared values, by products in both directions.
//!
//! `(c_F xor c_G)(z_F + z_G)` is `c z` of each party's own, and its choice times `(1 - 2c) z` of the other's.

use lanner_primitives::Ring;
use lanner_wire::{Reader, pack_bits};

use super::lanes::{Lanes, Values};
use super::product::{Chosen, Offered};
use super::run::{Role, packed};
use crate::ProtocolError;

/// One party's role. The first says its flips, the second its own and what corrects the first's, the first what corrects the second's.
pub(super) struct Selected {
    offered: Offered,
    chosen: Chosen,
    bits: u32,
    /// One a lane.
    choices: Values,
    /// What this party offers.
    offer: Values,
    /// The product, as far as it goes.
    sum: Values,
    /// What the other party said of its choices.
    flips: Vec<u64>,
    is_first: bool,
    /// Whether the flips were said.
    is_open: bool,
}

impl Selected {
    pub(super) fn new(
        (offered, chosen): (Offered, Chosen),
        choices: &Values,
        values: &Values,
        bits: u32,
        is_first: bool,
    ) -> Self {
        let ring = Ring::Pow2(bits);
        let choices = choices.bits(values.len());
        let own = values.zip_map(&choices, |x, c| x & c.wrapping_neg());
        let offer = values.zip_map(&own, |x, own| ring.sub(ring.sub(x, own), own));
        Self { offered, chosen, bits, choices, offer, sum: own, flips: Vec::new(), is_first, is_open: false }
    }

    fn add(&mut self, shares: &Values) {
        let ring = Ring::Pow2(self.bits);
        self.sum.iter_mut().zip(shares.iter()).for_each(|(sum, share)| *sum = ring.add(*sum, *share));
    }

    fn corrections(&mut self) -> Vec<u8> {
        let (corrections, given) = self.offered.correct(0, &self.flips, &self.offer, self.bits);
        self.add(&given);
        corrections
    }

    fn take(&mut self, message: &mut Reader<'_>) -> Result<(), ProtocolError> {
        let corrections = packed(message, self.choices.len(), self.bits)?;
        let got = self.chosen.shares(0, &self.choices, &corrections, self.bits);
        self.add(&got);
        Ok(())
    }
}

impl Role for Selected {
    fn say(&mut self) -> Vec<u8> {
        if self.is_open {
            return self.corrections();
        }
        self.is_open = true;
        let mut message = pack_bits(&self.chosen.flips(0, &self.choices), 1);
        if !self.is_first {
            message.extend(self.corrections());
        }
        message
    }

    fn hear(&mut self, message: &mut Reader<'_>) -> Result<(), ProtocolError> {
        // The second's corrections come with its flips, the first's behind both.
        if !self.is_open || self.is_first {
            self.flips = packed(message, self.choices.len(), 1)?;
        }
        if self.is_open { self.take(message) } else { Ok(()) }
    }

    fn finish(self: Box<Self>) -> Vec<Values> {
        vec![self.sum]
    }
}
