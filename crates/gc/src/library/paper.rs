//! The ReLU circuit of [GAZELLE] Juvekar, Vaikuntanathan, Chandrakasan, <https://eprint.iacr.org/2018/073>, section 5.3,
//! as a baseline to compare with.

use super::masked::{MaskedCircuit, paper_circuit};
use super::ring::ShareRing;
use crate::GcError;
use crate::circuit::{CircuitBuilder, Wire};

/// `max(x, 0) + r` mod p, step by step: add the shares, reduce, compare with p/2, select, add the mask, reduce.
///
/// The modulus is an input of the garbler, as in the paper, so nothing folds: `8b + 2` AND gates for p of b bits.
/// Every x of Z_p is in range.
///
/// # Errors
/// [`GcError::Parameters`] if p is even or has fewer than 3 or more than 62 bits.
pub fn paper_relu_reshare(p: u64) -> Result<MaskedCircuit, GcError> {
    let ring = ShareRing::Prime(p);
    ring.signed_bound(0)?;
    let bits = ring.bits();
    let mut gates = CircuitBuilder::new();
    let c = gates.evaluator_word(bits);
    let [s, modulus, largest_positive, r] = [(); 4].map(|()| gates.garbler_word(bits));

    let x = add_mod(&mut gates, &c, &s, &modulus);
    let negative = gates.greater_than(&x, &largest_positive);
    let y = gates.mask_word(!negative, &x);
    let output = add_mod(&mut gates, &y, &r, &modulus);
    Ok(paper_circuit(gates.build(&output)?, ring))
}

/// `a + b` mod the modulus: b ANDs to add, b + 1 to subtract the modulus, b to select.
fn add_mod(gates: &mut CircuitBuilder, a: &[Wire], b: &[Wire], modulus: &[Wire]) -> Vec<Wire> {
    let (mut sum, carry) = gates.add_carry(a, b, Wire::ZERO);
    sum.push(carry);
    let mut wide = modulus.to_vec();
    wide.push(Wire::ZERO);
    let (reduced, fits) = gates.subtract(&sum, &wide);
    gates.mux_word(fits, &reduced[..a.len()], &sum[..a.len()])
}

/// The garbler's inputs for one share, as (word, bits); the mask follows.
pub(super) const fn paper_words(ring: ShareRing, share: u64) -> [(u64, u32); 3] {
    let (p, bits) = (ring.largest() + 1, ring.bits());
    [(share, bits), (p, bits), ((p - 1) / 2, bits)]
}
