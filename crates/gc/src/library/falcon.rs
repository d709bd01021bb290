//! The circuits of Li, Xue, Ding, Gao, Wei, Wan, Wu, *FALCON: A Fourier Transform Based Approach for Fast and Secure
//! Convolutional Neural Network Predictions*, <https://arxiv.org/abs/1811.08257>, section 5.3, listings 1 to 4, for every
//! x of Z_p: baselines to compare with, as the circuits that rescale take only what [`ShareRing::signed_bound`] allows.
//!
//! The listings as printed do not compute what their text says, and these differ from them in four places:
//!
//! - Data preparation subtracts the modulus where `s >= p`; the printed `>` leaves the sum p as it is.
//! - The multiplexer keeps x where it is not negative, x <= (p-1)/2, and gives 0 elsewhere; as printed, ReLU keeps the negative ones.
//! - The maximum of residues takes a negative number for a large one, which is right behind a ReLU only. Here `(p-1)/2` is added to
//!   the garbler's share first: this *offset form* has the order of the values.
//! - The garbler's constant is its share less p, so that the sum's carry tells whether p was reached: one comparison fewer.
//!
//! Mean pooling needs no circuit: each party sums its shares, and the divisor goes into the next scale.

use super::masked::{MaskedBuilder, MaskedCircuit};
use super::reshare::add_mod;
use super::ring::ShareRing;
use crate::GcError;
use crate::circuit::{CircuitBuilder, Wire};

/// Listing 1, data preparation: the residue of `x + (p-1)/2` for the shared x, b output bits, unsigned: the offset form.
///
/// AND gates: `2b - 1` for a prime of b bits.
///
/// # Errors
/// [`GcError::Parameters`] if p is even or has fewer than 3 or more than 62 bits.
pub fn falcon_prepare(p: u64) -> Result<MaskedCircuit, GcError> {
    let mut circuit = Listing::new(p)?;
    let value = circuit.prepared();
    circuit.builder.finish(&value)
}

/// Listing 2, ReLU: `max(x, 0)` in `b - 1` output bits, unsigned.
///
/// AND gates: those of [`falcon_prepare`], `b - 1 - v` to compare, where `2^v` is the largest power of two that divides (p-1)/2, and
/// `b - 1` to select. The paper counts two gates on words.
///
/// # Errors
/// As for [`falcon_prepare`].
pub fn falcon_relu(p: u64) -> Result<MaskedCircuit, GcError> {
    falcon_max_pool_relu(p, 1)
}

/// Listing 3, max-pool: the largest of k values in offset form, b output bits.
///
/// AND gates: k times those of [`falcon_prepare`] and `2 (k - 1) b`. The paper counts k - 1 pairs of gates on words.
///
/// # Errors
/// As for [`falcon_prepare`], and if k is zero.
pub fn falcon_max_pool(p: u64, k: usize) -> Result<MaskedCircuit, GcError> {
    let mut circuit = Listing::new(p)?;
    let maximum = circuit.maximum(k)?;
    circuit.builder.finish(&maximum)
}

/// Listing 4, max-pool before ReLU: `max(x_1, ..., x_k, 0)` in `b - 1` output bits, unsigned.
///
/// AND gates: those of [`falcon_max_pool`] and one ReLU, `2b - 2 - v`; a ReLU for each value would take k. The paper counts 2k gates
/// on words instead of 4k - 2.
///
/// # Errors
/// As for [`falcon_max_pool`].
pub fn falcon_max_pool_relu(p: u64, k: usize) -> Result<MaskedCircuit, GcError> {
    let mut circuit = Listing::new(p)?;
    let maximum = circuit.maximum(k)?;
    let half = CircuitBuilder::constant_word((p - 1) / 2, maximum.len() as u32);
    let gates = &mut circuit.builder.gates;
    let (difference, keep) = gates.subtract(&maximum, &half);
    let outputs = gates.mask_word(keep, &difference[..maximum.len() - 1]);
    circuit.builder.finish(&outputs)
}

struct Listing {
    builder: MaskedBuilder,
    p: u64,
}

impl Listing {
    fn new(p: u64) -> Result<Self, GcError> {
        Ok(Self { builder: MaskedBuilder::in_offset_form(ShareRing::Prime(p))?, p })
    }

    /// The next shared value: both shares added modulo p.
    fn prepared(&mut self) -> Vec<Wire> {
        let bits = ShareRing::Prime(self.p).bits();
        let share = self.builder.next_share();
        let constant = self.builder.gates.garbler_word(bits);
        add_mod(&mut self.builder.gates, &share, &constant, self.p)
    }

    fn maximum(&mut self, k: usize) -> Result<Vec<Wire>, GcError> {
        if k == 0 {
            return Err(GcError::Parameters("a pooling region has no values"));
        }
        let mut maximum = self.prepared();
        for _ in 1..k {
            let value = self.prepared();
            maximum = self.builder.gates.max_word(&maximum, &value).0;
        }
        Ok(maximum)
    }
}
