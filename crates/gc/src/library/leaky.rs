//! Leaky ReLU with rescaling: a public slope below zero.

use lanner_primitives::Ring;

use super::masked::{MaskedBuilder, MaskedCircuit};
use crate::GcError;
use crate::circuit::{CircuitBuilder, Wire};

/// `y = rescale(x, d)` where x >= 0, else `rescale(floor(numerator x / 2^shift), d)`, which is one rounding,
/// `floor((numerator x + 2^shift h) / 2^(shift + d))` with `h = 2^(d-1)`, or 0 if `d = 0`: `b - d` output bits in two's
/// complement.
///
/// The garbler's constant adds h, so the circuit sees `x' = x + h`. Above zero `y = floor(x' / 2^d)`, without a gate.
/// Below, `y = floor((numerator x' + (2^shift - numerator) h) / 2^(shift + d))`. For -h <= x < 0 both are zero, so the
/// sign of x' selects.
///
/// AND gates, with S those of [`super::rescale`] for `d = 0`, w the number of ones of the numerator and g the distance
/// between its highest and its lowest: `S` for the numerator `2^shift`; `S + b - 1 - d` if all values below zero come out
/// alike, as they do for the numerator 0 and, with u the next power of two from the numerator, if
/// `(2^shift - numerator) h >= 2^(b-1) u` (all zero) or `d = 0` and `2^shift >= 2^(b-1) u` (all -1); else the sum of
///
/// - S,
/// - `(w - 1) (b - 1)` for the product,
/// - for the rounding, if `d > 0`: `b - 1 - d`, and `g + 1` more if `w > 1`,
/// - `b - 1 - d` to select, and one for the sign if `d > 0`.
///
/// That is 127 for p = 1032193, d = 7 and the slope 51/512.
///
/// # Errors
/// [`GcError::Parameters`] as for [`signed_bound`](super::signed_bound), and if the slope is above one or `shift` above 32.
pub fn leaky_relu_rescale(ring: Ring, numerator: u64, shift: u32, d: u32) -> Result<MaskedCircuit, GcError> {
    if shift > MAX_SHIFT || numerator > 1 << shift {
        return Err(GcError::Parameters("the slope is not a fraction of at most 32 bits in 0..=1"));
    }
    let mut builder = MaskedBuilder::new(ring, d)?;
    let value = builder.unshifted_value();
    let outputs = leaky(&mut builder.gates, &value, numerator, shift as usize, d as usize);
    builder.finish(&outputs)
}

/// The function of `value`, to which half of `2^d` is added already.
fn leaky(gates: &mut CircuitBuilder, value: &[Wire], numerator: u64, shift: usize, d: usize) -> Vec<Wire> {
    let Some((&sign, magnitude)) = value.split_last() else { return Vec::new() };
    let width = shift + value.len();
    let product = negative_product(gates, magnitude, numerator, width);
    let sum = gates.add(&product, &rounding(numerator, shift, d, width));
    gates.mux_word(sign, &sum[shift + d..], &value[d..])
}

/// `numerator` times the negative integer whose bits below the sign are given, by one addition for each further one of
/// the numerator. That the sign is known saves all gates above the magnitude.
fn negative_product(
    gates: &mut CircuitBuilder,
    magnitude: &[Wire],
    numerator: u64,
    width: usize,
) -> Vec<Wire> {
    let mut product = vec![Wire::ZERO; width];
    for digit in (0..u64::BITS as usize).filter(|digit| numerator >> digit & 1 == 1) {
        let mut term = vec![Wire::ZERO; digit];
        term.extend_from_slice(magnitude);
        term.resize(width, Wire::ONE);
        product = gates.add(&product, &term);
    }
    product
}

/// `(2^shift - numerator) 2^(d-1)`, or zero if `d = 0`.
fn rounding(numerator: u64, shift: usize, d: usize, width: usize) -> Vec<Wire> {
    let Some(zeros) = d.checked_sub(1) else { return vec![Wire::ZERO; width] };
    let mut word = vec![Wire::ZERO; zeros];
    word.extend(CircuitBuilder::constant_word((1 << shift) - numerator, (width - zeros) as u32));
    word
}

const MAX_SHIFT: u32 = 32;
