//! The softmax's circuit: FALCON's steps (Li et al., <https://arxiv.org/abs/1811.08257>, section 5.5), all inside.

use super::argmax::tournament;
use super::exponential::Exponential;
use super::masked::{MaskedBuilder, MaskedCircuit, Sharing};
use crate::GcError;
use crate::circuit::{CircuitBuilder, Wire};

/// The index of the largest of `k` scores, ties to the lowest, in `ceil(log2 k)` bits, and `round(10^digits / S)`, halves upwards, in as many
/// bits as `10^digits` has, for `S = 2^-fraction sum of T(floor(max / 2^dropped) - floor(x_i / 2^dropped))`; [`softmax_parts`] in the clear.
///
/// With n = b - dropped the bits of a floor and w those of an exponent, AND gates: those of [`super::argmax_with_max`], less `dropped`, k times
/// `n - 1` for the differences, `n - 1` to clamp them unless w = n, and those of [`Exponential`]; `fraction + 1` for a sum or a few more;
/// fewer than `(J + 3) (fraction + log2 k + 2)` for the division, `2^J <= 10^digits`.
///
/// # Errors
/// [`GcError::Parameters`] as for [`super::argmax`], unless `w <= b - dropped`, and unless there are 1 to 18 digits and the sum has fewer than 64
/// bits.
pub fn softmax(
    shared: impl Into<Sharing>,
    k: usize,
    dropped: u32,
    exponential: &Exponential,
    digits: u32,
) -> Result<MaskedCircuit, GcError> {
    let shared = shared.into();
    let mut builder = MaskedBuilder::guarded(shared)?;
    if exponential.width() > shared.value_bits().saturating_sub(dropped) {
        return Err(GcError::Parameters("the exponents are wider than the differences"));
    }
    let sum_bits = exponential.fraction() + usize::BITS - k.leading_zeros();
    if !(1..=18).contains(&digits) || sum_bits > 63 {
        return Err(GcError::Parameters("the division's digits or widths"));
    }
    let mut scores = Vec::with_capacity(k);
    let winner = tournament(&mut builder, k, &mut |score| scores.push(score[dropped as usize..].to_vec()))?;
    let (gates, largest) = (&mut builder.gates, &winner.value[dropped as usize..]);
    let term = |score: &Vec<Wire>| {
        let difference = clamped_difference(gates, largest, score, exponential.width() as usize);
        exponential.circuit(gates, &difference)
    };
    let terms = scores.iter().map(term).collect();
    let mut sum = sum(gates, terms);
    sum.truncate(sum_bits as usize);
    let mut outputs = winner.index;
    outputs.extend(reciprocal(gates, &sum, exponential.fraction(), digits));
    builder.finish(&outputs)
}

/// What [`softmax`] gives for scores: the index, and the parts of `10^digits`.
#[must_use]
pub fn softmax_parts(scores: &[i64], dropped: u32, exponential: &Exponential, digits: u32) -> (usize, u64) {
    let index = (0..scores.len()).rev().max_by_key(|i| scores[*i]).unwrap_or(0);
    let largest = scores.get(index).map_or(0, |x| x >> dropped);
    let sum: u128 = scores.iter().map(|x| u128::from(exponential.term(largest.abs_diff(x >> dropped)))).sum();
    let dividend = (u128::from(10_u64.pow(digits)) << (exponential.fraction() + 1)) + sum;
    (index, (dividend / (2 * sum).max(1)) as u64)
}

/// How far a score is below the largest, or `2^width - 1` if that is less.
fn clamped_difference(
    gates: &mut CircuitBuilder,
    largest: &[Wire],
    score: &[Wire],
    width: usize,
) -> Vec<Wire> {
    let difference = gates.subtract(largest, score).0;
    let (low, high) = difference.split_at(width);
    let far = high.iter().fold(Wire::ZERO, |far, bit| gates.or(far, *bit));
    low.iter().map(|bit| gates.or(far, *bit)).collect()
}

/// The sum of words, by twos.
fn sum(gates: &mut CircuitBuilder, mut words: Vec<Vec<Wire>>) -> Vec<Wire> {
    while words.len() > 1 {
        let pairs = words.chunks_mut(2).map(|pair| {
            let [a, b] = pair else { return std::mem::take(&mut pair[0]) };
            let width = a.len().max(b.len());
            a.resize(width, Wire::ZERO);
            b.resize(width, Wire::ZERO);
            let (mut sum, carry) = gates.add_carry(a, b, Wire::ZERO);
            sum.push(carry);
            sum
        });
        words = pairs.collect();
    }
    words.pop().unwrap_or_default()
}

/// `round(10^digits / S)`, halves upwards, for `S = divisor / 2^fraction`: as many bits as `10^digits` has. Meaningless unless
/// `10^digits / S + 1/2` is below the next power of two, which all `S >= 1` fulfil.
///
/// Non-restoring division of `10^digits + S/2` by S, as only few digits come out: with J the place of the quotient's top bit,
/// `V_J = 10^digits - S (2^J - 1/2)`, bit j of the quotient is `V_j >= 0` and `V_(j-1) = V_j -+ S 2^(j-1)`.
fn reciprocal(gates: &mut CircuitBuilder, divisor: &[Wire], fraction: u32, digits: u32) -> Vec<Wire> {
    // In units of 2^-(fraction + 1), where half of S is an integer.
    let (one, top) = (10_u64.pow(digits), 10_u64.pow(digits).ilog2());
    let mut dividend = vec![Wire::ZERO; fraction as usize + 1];
    dividend.extend(CircuitBuilder::constant_word(one, divisor.len() as u32 - fraction + top + 2));
    let mut padded = divisor.to_vec();
    padded.resize(dividend.len(), Wire::ZERO);
    let sum = gates.add(&padded, &dividend);
    let mut quotient = Vec::with_capacity(top as usize + 1);
    let mut remainder = step(gates, &sum, divisor, top as usize + 1, Wire::ONE);
    for place in (0..=top as usize).rev() {
        let bit = remainder.last().map_or(Wire::ZERO, |sign| !*sign);
        quotient.insert(0, bit);
        if place > 0 {
            remainder = step(gates, &remainder, divisor, place, bit);
        }
    }
    quotient
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn reciprocals_are_rounded_to_the_nearest_digit() {
        for (bits, fraction) in [(20, 16), (23, 19), (30, 20), (51, 41), (63, 53), (12, 3)] {
            for digits in 1..=6 {
                let mut gates = CircuitBuilder::new();
                let divisor = gates.evaluator_word(bits);
                let quotient = reciprocal(&mut gates, &divisor, fraction, digits);
                let circuit = gates.build(&quotient).unwrap();
                let top = 10_u64.pow(digits).ilog2() as usize;
                assert!(circuit.and_count() < (top + 3) * (bits as usize + 1), "{bits} {digits}");
                let (one, most) = (1_u64 << fraction, u64::MAX >> (64 - bits));
                let mut sums = vec![one, one + 1, 2 * one, 3 * one, most, most - 1];
                // A little below one as well, as far as the quotient has its bits, and any above.
                sums.push(one - one / 1024);
                sums.extend((1..60).map(|i| one + (most - one) / 61 * i + i));
                for sum in sums {
                    let inputs: Vec<bool> = (0..bits).map(|i| sum >> i & 1 == 1).collect();
                    let output = circuit.evaluate_clear(&inputs, &[]).unwrap();
                    let got = output.iter().rev().fold(0, |word: u128, bit| word << 1 | u128::from(*bit));
                    let dividend = (u128::from(10_u64.pow(digits)) << (fraction + 1)) + u128::from(sum);
                    assert_eq!(got, dividend / (2 * u128::from(sum)), "{bits} {fraction} {digits} {sum}");
                }
            }
        }
    }
}
