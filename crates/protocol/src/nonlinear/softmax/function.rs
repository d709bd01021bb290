//! What the circuit computes, in the clear too, and how shares become its inputs: known to both parties.

use lanner_gc::Circuit;
use lanner_gc::library::{self, MaskedCircuit};
use lanner_primitives::Bits;
use lanner_primitives::Ring;
use lanner_share::Share;

use super::Precision;
use crate::ProtocolError;

/// The label and its probability, over shared scores.
#[derive(Clone, Debug)]
pub struct Softmax {
    precision: Precision,
    ring: Ring,
    circuit: MaskedCircuit,
}

/// What the client learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Likely {
    /// The index of the largest score, ties to the lowest.
    pub label: usize,
    /// Its probability in units of `10^-digits`, within one unit of the exact softmax.
    pub parts: u64,
    /// The digits.
    pub digits: u32,
}

impl Likely {
    /// What a softmax of these scores, each unit of which stands for `scale`, gives over a ring of `bits` bits: the same in every run.
    ///
    /// # Errors
    /// As [`Precision::new`].
    pub fn of(scores: &[i64], digits: u32, scale: f64, bits: u32) -> Result<Self, ProtocolError> {
        let precision = Precision::new(scores.len(), digits, scale, bits)?;
        let exponential = precision.exponential()?;
        let (label, parts) = library::softmax_parts(scores, precision.dropped(), &exponential, digits);
        Ok(Self { label, parts, digits })
    }

    /// The probability, in 0..=1.
    #[must_use]
    pub fn probability(self) -> f64 {
        self.parts as f64 / 10_f64.powi(self.digits as i32)
    }
}

impl Softmax {
    /// The softmax of `classes` scores shared in `ring`, each unit of which stands for `scale`, to a given number of decimal digits.
    ///
    /// # Errors
    /// As [`Precision::new`]; [`ProtocolError::Gc`] if the ring has no circuit.
    pub fn new(classes: usize, digits: u32, scale: f64, ring: Ring) -> Result<Self, ProtocolError> {
        let precision = Precision::new(classes, digits, scale, ring.bits())?;
        let exponential = precision.exponential()?;
        let circuit = library::softmax(ring, classes, precision.dropped(), &exponential, digits)?;
        Ok(Self { precision, ring, circuit })
    }

    /// The widths.
    #[must_use]
    pub fn precision(&self) -> &Precision {
        &self.precision
    }

    /// The circuit.
    #[must_use]
    pub fn circuit(&self) -> &Circuit {
        self.circuit.circuit()
    }

    /// What the circuit's outputs mean; none if they mean nothing.
    pub(super) fn likely(&self, outputs: &Bits) -> Option<Likely> {
        let digits = self.precision.digits();
        let index_bits = self.precision.classes().next_power_of_two().trailing_zeros() as usize;
        let word = |range: std::ops::Range<usize>| {
            range.rev().fold(0, |word, i| word << 1 | u64::from(outputs.get(i)))
        };
        let (label, parts) = (word(0..index_bits) as usize, word(index_bits..outputs.len()));
        let right = label < self.precision.classes() && parts <= 10_u64.pow(digits);
        right.then_some(Likely { label, parts, digits })
    }

    pub(super) fn evaluator_bits(&self, share: &Share) -> Result<Bits, ProtocolError> {
        Ok(self.circuit.evaluator_bits(self.checked(share)?)?)
    }

    pub(super) fn garbler_bits(&self, share: &Share) -> Result<Bits, ProtocolError> {
        Ok(self.circuit.garbler_bits(self.checked(share)?)?)
    }

    fn checked<'s>(&self, share: &'s Share) -> Result<&'s [u64], ProtocolError> {
        if (share.ring(), share.len()) == (self.ring, self.precision.classes()) {
            Ok(share.values())
        } else {
            Err(ProtocolError::Shape { what: "input share of a softmax" })
        }
    }
}
