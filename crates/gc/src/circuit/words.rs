//! Word-level helpers of the builder. Words are slices of wires, lowest bit first.
//!
//! Adders and comparators take one AND per bit: the carry is `c' = ((a xor c) and (b xor c)) xor c`
//! ([KSS09] Kolesnikov, Sadeghi, Schneider, <https://eprint.iacr.org/2009/411>, section 3.1).

use super::{CircuitBuilder, Wire};
use crate::GcError;

impl CircuitBuilder {
    /// `bits` input bits of the evaluator.
    pub fn evaluator_word(&mut self, bits: u32) -> Vec<Wire> {
        (0..bits).map(|_| self.evaluator_input()).collect()
    }

    /// `bits` input bits of the garbler.
    pub fn garbler_word(&mut self, bits: u32) -> Vec<Wire> {
        (0..bits).map(|_| self.garbler_input()).collect()
    }

    /// The low `bits` bits of a public integer.
    #[must_use]
    pub fn constant_word(value: u64, bits: u32) -> Vec<Wire> {
        (0..bits).map(|i| Wire::constant(value.checked_shr(i).unwrap_or(0) & 1 == 1)).collect()
    }

    /// `a + b + carry` as a word of the same width and the carry out: one AND per bit.
    pub fn add_carry(&mut self, a: &[Wire], b: &[Wire], carry: Wire) -> (Vec<Wire>, Wire) {
        self.same_width(a, b);
        let mut carry = carry;
        let mut sum = Vec::with_capacity(a.len());
        for (&a, &b) in a.iter().zip(b) {
            let (left, right) = (self.xor(a, carry), self.xor(b, carry));
            sum.push(self.xor(left, b));
            let change = self.and(left, right);
            carry = self.xor(change, carry);
        }
        (sum, carry)
    }

    /// `a + b` modulo two to the width: one AND per bit but the top one.
    pub fn add(&mut self, a: &[Wire], b: &[Wire]) -> Vec<Wire> {
        self.add_carry(a, b, Wire::ZERO).0
    }

    /// `a - b` modulo two to the width, and whether `a >= b` as unsigned integers: one AND per bit.
    pub fn subtract(&mut self, a: &[Wire], b: &[Wire]) -> (Vec<Wire>, Wire) {
        let inverted = invert(b);
        self.add_carry(a, &inverted, Wire::ONE)
    }

    /// Whether `a > b` as unsigned integers: one AND per bit.
    pub fn greater_than(&mut self, a: &[Wire], b: &[Wire]) -> Wire {
        // a + (2^n - 1 - b) carries out of n bits exactly if a - b >= 1.
        let inverted = invert(b);
        self.add_carry(a, &inverted, Wire::ZERO).1
    }

    /// Whether `a >= b` as unsigned integers: one AND per bit.
    pub fn at_least(&mut self, a: &[Wire], b: &[Wire]) -> Wire {
        self.subtract(a, b).1
    }

    /// `when_one` if `select` else `when_zero`, bit by bit: one AND per bit.
    pub fn mux_word(&mut self, select: Wire, when_one: &[Wire], when_zero: &[Wire]) -> Vec<Wire> {
        self.same_width(when_one, when_zero);
        when_one.iter().zip(when_zero).map(|(&one, &zero)| self.mux(select, one, zero)).collect()
    }

    /// `a` if `keep` else zero: one AND per bit.
    pub fn mask_word(&mut self, keep: Wire, a: &[Wire]) -> Vec<Wire> {
        a.iter().map(|&bit| self.and(keep, bit)).collect()
    }

    /// The larger of two unsigned words, and whether it is `b` that is strictly larger: two ANDs per bit.
    pub fn max_word(&mut self, a: &[Wire], b: &[Wire]) -> (Vec<Wire>, Wire) {
        let larger = self.greater_than(b, a);
        (self.mux_word(larger, b, a), larger)
    }

    fn same_width(&mut self, a: &[Wire], b: &[Wire]) {
        if a.len() != b.len() {
            self.fail(GcError::Width { left: a.len(), right: b.len() });
        }
    }
}

fn invert(word: &[Wire]) -> Vec<Wire> {
    word.iter().map(|&bit| !bit).collect()
}
