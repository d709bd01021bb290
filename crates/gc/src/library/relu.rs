//! ReLU with rescaling, alone and clipped from above.

use lanner_primitives::Ring;

use super::masked::{MaskedBuilder, MaskedCircuit};
use crate::GcError;
use crate::circuit::{CircuitBuilder, Wire};

/// `y = rescale(max(x, 0), d)`: `b - 1 - d` output bits, unsigned.
///
/// Rounding keeps the order, so this is also the maximum of `rescale(x, d)` and zero.
///
/// AND gates: those of [`super::rescale`] and `b - 1 - d`: 44 for p = 1032193 and d = 7.
///
/// # Errors
/// [`GcError::Parameters`] as for [`signed_bound`](super::signed_bound).
pub fn relu_rescale(ring: Ring, d: u32) -> Result<MaskedCircuit, GcError> {
    let mut builder = MaskedBuilder::new(ring, d)?;
    let value = builder.value();
    let outputs = relu(&mut builder.gates, &value);
    builder.finish(&outputs)
}

/// `y = min(rescale(max(x, 0), d), cap)` for a public cap: as many output bits as the cap has, unsigned. ReLU6 is the
/// cap that stands for six.
///
/// AND gates, with `m = b - 1 - d`, w the bits of the cap and k the number of ones that it ends with: those of
/// [`super::rescale`] and `m - k + w`. A cap that no value exceeds gives [`relu_rescale`]. The cap 1 with `d = 0` is the step function
/// `[x >= 1]`, the sign of `x - 1`: those of [`super::rescale`] alone.
///
/// # Errors
/// [`GcError::Parameters`] as for [`signed_bound`](super::signed_bound), and if the cap is zero.
pub fn relu_clip(ring: Ring, d: u32, cap: u64) -> Result<MaskedCircuit, GcError> {
    if (d, cap) == (0, 1) {
        return step(ring);
    }
    let mut builder = MaskedBuilder::new(ring, d)?;
    let value = builder.value();
    let outputs = clip(&mut builder.gates, &value, cap)?;
    builder.finish(&outputs)
}

/// `[x >= 1]`, one output bit. Taking one off carries the lowest value that is allowed to the ring's lowest, or modulo a prime to one that reads as
/// negative, too.
fn step(ring: Ring) -> Result<MaskedCircuit, GcError> {
    let mut builder = MaskedBuilder::moved(ring, 1)?;
    let value = builder.value();
    let sign = value.last().copied().unwrap_or(Wire::ZERO);
    builder.finish(&[!sign])
}

/// The magnitude bits of a word in two's complement, zero if it is negative.
pub(super) fn relu(gates: &mut CircuitBuilder, value: &[Wire]) -> Vec<Wire> {
    match value.split_last() {
        Some((sign, magnitude)) => gates.mask_word(!*sign, magnitude),
        None => Vec::new(),
    }
}

/// The magnitude bits of a word in two's complement or of the cap, whichever is less; zero if the word is negative.
pub(super) fn clip(gates: &mut CircuitBuilder, value: &[Wire], cap: u64) -> Result<Vec<Wire>, GcError> {
    let width = (u64::BITS - cap.leading_zeros()) as usize;
    let Some((&sign, magnitude)) = value.split_last().filter(|_| cap > 0) else {
        return Err(GcError::Parameters("the cap is zero"));
    };
    let bound = CircuitBuilder::constant_word(cap, magnitude.len() as u32);
    if width > magnitude.len() || bound.iter().all(|bit| *bit == Wire::ONE) {
        return Ok(relu(gates, value));
    }
    let exceeds = gates.greater_than(magnitude, &bound);
    let clipped = gates.and(exceeds, !sign);
    // A negative value is not clipped, so the two exclude each other.
    let replaced = gates.xor(sign, clipped);
    let bits = magnitude.iter().zip(&bound).take(width);
    let outputs = bits.map(|(&bit, &cap_bit)| {
        let when_replaced = if cap_bit == Wire::ONE { clipped } else { Wire::ZERO };
        gates.mux(replaced, when_replaced, bit)
    });
    Ok(outputs.collect())
}
