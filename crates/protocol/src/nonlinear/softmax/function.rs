//! What the circuits compute, and how shares become their inputs: known to both parties.

use lanner_gc::Circuit;
use lanner_gc::library::{self, MaskedCircuit};
use lanner_ot::arithmetic::Group;
use lanner_primitives::{Bits, Block};
use lanner_share::{Ring, Share};
use zeroize::Zeroizing;

use super::Precision;
use super::exponential::Exponential;
use crate::ProtocolError;
use crate::nonlinear::yao::share_ring;

/// The label and its probability, over shared scores.
#[derive(Clone, Debug)]
pub struct Softmax {
    precision: Precision,
    ring: Ring,
    exponents: MaskedCircuit,
    division: Circuit,
    group: Group,
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
    /// The probability, in 0..=1.
    #[must_use]
    pub fn probability(self) -> f64 {
        self.parts as f64 / 10_f64.powi(self.digits as i32)
    }
}

impl Softmax {
    /// The softmax of `classes` scores shared in `ring`, each unit of which stands for `scale`, to so many decimal digits.
    ///
    /// # Errors
    /// As [`Precision::new`]; [`ProtocolError::Gc`] if the ring has no circuit.
    pub fn new(classes: usize, digits: u32, scale: f64, ring: Ring) -> Result<Self, ProtocolError> {
        let precision = Precision::new(classes, digits, scale, ring.bits())?;
        let (dropped, width) = (precision.dropped(), precision.width());
        let exponents = library::softmax_exponents(share_ring(ring), classes, dropped, width)?;
        let division = library::reciprocal(precision.sum_bits(), precision.fraction(), digits)?;
        let group = Group::power_of_two(precision.sum_bits())?;
        Ok(Self { precision, ring, exponents, division, group })
    }

    /// The widths.
    #[must_use]
    pub fn precision(&self) -> &Precision {
        &self.precision
    }

    /// The circuit of the label and the masked exponents.
    #[must_use]
    pub fn exponents(&self) -> &Circuit {
        self.exponents.circuit()
    }

    /// The circuit of the digits.
    #[must_use]
    pub fn division(&self) -> &Circuit {
        &self.division
    }

    /// Bits that the client's products are made of: two factors for each class.
    #[must_use]
    pub fn product_bits(&self) -> usize {
        2 * self.precision.classes() * self.precision.factor_bits() as usize
    }

    /// Bits of the label.
    pub(super) fn index_bits(&self) -> usize {
        self.precision.classes().next_power_of_two().trailing_zeros() as usize
    }

    /// Outputs of the first circuit that the client learns: the label and the masked exponents. The wrap bits follow.
    pub(super) fn revealed_bits(&self) -> usize {
        self.exponents().outputs() - self.precision.classes()
    }

    pub(super) fn sum_bits(&self) -> usize {
        self.precision.sum_bits() as usize
    }

    /// The ring of the sum.
    pub(super) fn sum_ring(&self) -> Ring {
        Ring::Pow2(self.precision.sum_bits())
    }

    pub(super) fn group(&self) -> Group {
        self.group
    }

    pub(super) fn exponential(&self) -> Exponential {
        Exponential::new(&self.precision)
    }

    pub(super) fn evaluator_bits(&self, share: &Share) -> Result<Bits, ProtocolError> {
        Ok(self.exponents.evaluator_bits(self.checked(share)?)?)
    }

    pub(super) fn garbler_bits(&self, share: &Share, masks: &Share) -> Result<Bits, ProtocolError> {
        Ok(self.exponents.garbler_bits_with_masks(self.checked(share)?, masks.values())?)
    }

    /// The bits of a share of the sum.
    pub(super) fn sum_as_bits(&self, sum: u64) -> Bits {
        (0..self.sum_bits()).map(|i| sum >> i & 1 == 1).collect()
    }

    /// The labels of the division's wires, given those of the client's share. The wires of the server's share need no transfer: their
    /// labels are zero until they are given.
    pub(super) fn division_labels(&self, of_share: &[Block]) -> Zeroizing<Vec<Block>> {
        let mut labels = Zeroizing::new(vec![Block::ZERO; self.division.evaluator_inputs()]);
        labels.iter_mut().zip(of_share).for_each(|(to, from)| *to = *from);
        labels
    }

    fn checked<'s>(&self, share: &'s Share) -> Result<&'s [u64], ProtocolError> {
        if (share.ring(), share.len()) == (self.ring, self.precision.classes()) {
            Ok(share.values())
        } else {
            Err(ProtocolError::Shape { what: "input share of a softmax" })
        }
    }
}

/// A party's share of the sum of all products, from its shares of `z c`, by what it does with each and the masked bit `b xor z`.
///
/// `b c` is `z c` if the masked bit is zero, else `c - z c`.
pub(super) fn sum_products(
    ring: Ring,
    terms: impl Iterator<Item = (u64, bool)>,
    whole: impl Fn(usize) -> u64,
) -> u64 {
    terms.enumerate().fold(0, |sum, (i, (share, masked))| {
        let flip = u64::from(masked).wrapping_neg();
        let term = share ^ ((share ^ ring.sub(whole(i), share)) & flip);
        ring.add(sum, term)
    })
}
