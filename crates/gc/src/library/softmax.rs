//! The two circuits of the softmax protocol, after FALCON (Li et al., <https://arxiv.org/abs/1811.08257>), section 5.5.

use super::argmax::tournament;
use super::masked::{MaskedBuilder, MaskedCircuit};
use super::ring::ShareRing;
use crate::GcError;
use crate::circuit::{Circuit, CircuitBuilder, Wire};

/// The index of the largest of `k` scores, and for each score its exponent, masked: with `D = 2^width - 1`,
///
/// `e_k = D - min(floor(max / 2^dropped) - floor(x_k / 2^dropped), D)`, so that the largest has `e = D`,
///
/// `a_k = e_k - r_k mod 2^width` for the garbler's mask `r_k`, and `wrap_k = [a_k + r_k >= 2^width]`.
///
/// Outputs: the index in `ceil(log2 k)` bits, `k` times `width` bits of `a_k`, then the `k` bits `wrap_k`. The masks of an instance are
/// k elements of `Z_2^width`. They are the garbler's shares themselves, not their negatives.
///
/// With `n = b - dropped` the bits of a floor, no difference needs clamping if `width = n`. AND gates: those of [`super::argmax_with_max`]
/// less `dropped`, `k (n - 1)` for the differences, `k (n - 1)` to clamp unless `width = n`, and `k width` for the masks.
///
/// # Errors
/// [`GcError::Parameters`] as for [`super::argmax`], and unless `1 <= width <= b - dropped`.
pub fn softmax_exponents(
    ring: ShareRing,
    k: usize,
    dropped: u32,
    width: u32,
) -> Result<MaskedCircuit, GcError> {
    let mut builder = MaskedBuilder::new(ring, 0)?;
    if !(1..=ring.bits().saturating_sub(dropped)).contains(&width) {
        return Err(GcError::Parameters("the exponents are wider than the differences"));
    }
    let mut scores = Vec::with_capacity(k);
    let winner = tournament(&mut builder, k, &mut |score| scores.push(score[dropped as usize..].to_vec()))?;
    let (gates, largest) = (&mut builder.gates, &winner.value[dropped as usize..]);
    let (mut outputs, mut wraps) = (winner.index, Vec::with_capacity(k));
    for score in &scores {
        let exponent = exponent(gates, largest, score, width as usize);
        let mask = gates.garbler_word(width);
        let (masked, fits) = gates.subtract(&exponent, &mask);
        outputs.extend(masked);
        wraps.push(!fits);
    }
    outputs.extend(wraps);
    builder.finish_masked(&outputs, ShareRing::PowerOfTwo(width), k)
}

/// `2^width - 1` less the difference, or zero: the inverted bits of the clamped difference.
fn exponent(gates: &mut CircuitBuilder, largest: &[Wire], score: &[Wire], width: usize) -> Vec<Wire> {
    let difference = gates.subtract(largest, score).0;
    let (low, high) = difference.split_at(width);
    let far = high.iter().fold(Wire::ZERO, |far, bit| gates.or(far, *bit));
    low.iter().map(|bit| !gates.or(far, *bit)).collect()
}

/// `round(10^digits / S)`, halves upwards, for `S = s / 2^fraction` with `s` shared modulo `2^bits`: as many output bits as `10^digits` has.
///
/// Both shares are input bits of the evaluator, its own first: the garbler gives the labels of its own once it knows them. The
/// output is meaningless unless `10^digits / S + 1/2` is below the next power of two, which all `S >= 1` fulfil.
///
/// Non-restoring division of `10^digits + S/2` by S, as only few digits come out: with J the place of the quotient's top bit,
/// `V_J = 10^digits - S (2^J - 1/2)`, bit j of the quotient is `V_j >= 0` and `V_(j-1) = V_j -+ S 2^(j-1)`. AND gates: fewer than `(J + 3) (bits + 1)`.
///
/// # Errors
/// [`GcError::Parameters`] unless `1 <= digits <= 18`, `1 <= fraction < bits <= 64`.
pub fn reciprocal(bits: u32, fraction: u32, digits: u32) -> Result<Circuit, GcError> {
    if !(1..=18).contains(&digits) || !(1..bits).contains(&fraction) || bits > 64 {
        return Err(GcError::Parameters("the division's digits or widths"));
    }
    let mut gates = CircuitBuilder::new();
    let [own, other] = [(); 2].map(|()| gates.evaluator_word(bits));
    let divisor = gates.add(&own, &other);

    // In units of 2^-(fraction + 1), where half of S is an integer.
    let (one, top) = (10_u64.pow(digits), 10_u64.pow(digits).ilog2());
    let mut dividend = vec![Wire::ZERO; fraction as usize + 1];
    dividend.extend(CircuitBuilder::constant_word(one, bits - fraction + top + 2));
    let mut padded = divisor.clone();
    padded.resize(dividend.len(), Wire::ZERO);
    let sum = gates.add(&padded, &dividend);
    let mut quotient = Vec::with_capacity(top as usize + 1);
    let mut remainder = step(&mut gates, &sum, &divisor, top as usize + 1, Wire::ONE);
    for place in (0..=top as usize).rev() {
        let bit = remainder.last().map_or(Wire::ZERO, |sign| !*sign);
        quotient.insert(0, bit);
        if place > 0 {
            remainder = step(&mut gates, &remainder, &divisor, place, bit);
        }
    }
    gates.build(&quotient)
}

/// `remainder -+ divisor 2^place`, minus if `subtract`, which is below `divisor 2^place` in absolute value and so loses the top bits.
fn step(
    gates: &mut CircuitBuilder,
    remainder: &[Wire],
    divisor: &[Wire],
    place: usize,
    subtract: Wire,
) -> Vec<Wire> {
    let mut addend: Vec<_> = divisor.iter().map(|bit| gates.xor(*bit, subtract)).collect();
    addend.push(subtract);
    let end = place + addend.len();
    let mut result = remainder[..place].to_vec();
    result.extend(gates.add_carry(&remainder[place..end], &addend, subtract).0);
    result
}
