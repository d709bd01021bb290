//! Resharing inside the circuit: the output is the value plus a mask of the garbler's, in the next layer's ring.
//!
//! The alternative is an XOR-shared output that correlated OT makes arithmetic, which costs less; these circuits need no
//! OT after them.

use super::masked::{MaskedBuilder, MaskedCircuit};
use super::pool::maximum;
use super::relu::relu;
use super::ring::ShareRing;
use crate::GcError;
use crate::circuit::{CircuitBuilder, Wire};

/// `rescale(max(x, 0), d) + r` in the ring `next`: an element's bits.
///
/// AND gates: those of [`super::relu_rescale`] and `2b' - 1` for a prime `next` with b' bits, `l' - 1` for Z_{2^l'};
/// so `3 (l - 1)` from Z_{2^l} to itself with `d = 0`.
///
/// # Errors
/// [`GcError::Parameters`] as for [`ShareRing::signed_bound`], and if `next` cannot hold the output.
pub fn relu_rescale_reshare(ring: ShareRing, d: u32, next: ShareRing) -> Result<MaskedCircuit, GcError> {
    let mut builder = MaskedBuilder::new(ring, d)?;
    let value = builder.value();
    let value = relu(&mut builder.gates, &value);
    let outputs = reshare(&mut builder.gates, &value, next)?;
    builder.finish_reshared(&outputs, Some(next))
}

/// `rescale(max(x_1, ..., x_k, 0), d) + r` in the ring `next`: an element's bits.
///
/// AND gates: those of [`super::max_pool_relu_rescale`] and of resharing, as for [`relu_rescale_reshare`].
///
/// # Errors
/// [`GcError::Parameters`] as for [`super::max_pool_relu_rescale`], and if `next` cannot hold the output.
pub fn max_pool_relu_rescale_reshare(
    ring: ShareRing,
    k: usize,
    d: u32,
    next: ShareRing,
) -> Result<MaskedCircuit, GcError> {
    let mut builder = MaskedBuilder::new(ring, d)?;
    let value = maximum(&mut builder, k)?;
    let value = relu(&mut builder.gates, &value);
    let outputs = reshare(&mut builder.gates, &value, next)?;
    builder.finish_reshared(&outputs, Some(next))
}

/// Adds the garbler's mask to an unsigned word of fewer bits than `next` has.
///
/// Z_p: the garbler's constant is r - p, so the carry of the sum tells whether `y + r` reached p; if not, p is added
/// back. A public constant times a wire is free.
fn reshare(gates: &mut CircuitBuilder, value: &[Wire], next: ShareRing) -> Result<Vec<Wire>, GcError> {
    next.signed_bound(0)?;
    let bits = next.bits();
    if value.len() >= bits as usize {
        return Err(GcError::Parameters("the next ring is too small for the output"));
    }
    let mut value = value.to_vec();
    value.resize(bits as usize, Wire::ZERO);
    let mask = gates.garbler_word(bits);
    match next {
        ShareRing::Prime(p) => Ok(add_mod(gates, &value, &mask, p)),
        ShareRing::PowerOfTwo(_) => Ok(gates.add(&value, &mask)),
    }
}

/// Adds an element of Z_p to the garbler's, whose constant is that element less p: `2b - 1` AND gates.
pub(super) fn add_mod(gates: &mut CircuitBuilder, value: &[Wire], less_p: &[Wire], p: u64) -> Vec<Wire> {
    let (sum, carry) = gates.add_carry(value, less_p, Wire::ZERO);
    let modulus = CircuitBuilder::constant_word(p, sum.len() as u32);
    let back = gates.mask_word(!carry, &modulus);
    gates.add(&sum, &back)
}

/// The garbler's constant for one mask.
pub(super) const fn mask_word(ring: ShareRing, mask: u64) -> u64 {
    match ring {
        ShareRing::Prime(p) => mask.wrapping_sub(p),
        ShareRing::PowerOfTwo(_) => mask,
    }
}
