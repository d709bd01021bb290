//! How far faithful or stochastic rounding may take each value from the reference's.

use super::{FixedOp, LinearWeights, Network, PublicNetwork};
use crate::product;

impl Network {
    /// For each value (the input, then each node's output), the largest absolute difference between the reference and a run whose
    /// rescales round down or up as they please and whose linear layers are off by one: `docs/numerics.md`, faithful rounding.
    ///
    /// Saturates at 2^60, far beyond any ring.
    #[must_use]
    pub fn faithful_errors(&self) -> Vec<i64> {
        self.errors(true, |_| true)
    }

    /// The same of a run whose layers are exact, and so are the rescales that the result is made of without another one in between.
    #[must_use]
    pub fn stochastic_errors(&self) -> Vec<i64> {
        let in_result = self.public.in_result();
        self.errors(false, |index| !in_result[index + 1])
    }

    /// Whether layers are off by one, and which nodes round down or up as they please.
    fn errors(&self, layers_are_off: bool, is_free: impl Fn(usize) -> bool) -> Vec<i64> {
        let mut errors = vec![0];
        for (index, node) in self.public.nodes().iter().enumerate() {
            let of = |input: usize| errors[node.inputs[input]];
            let largest = node.inputs.iter().map(|&value| errors[value]).max().unwrap_or(0);
            let magnitude = |input: usize| {
                let seen = &self.values[node.inputs[input]];
                // Rings modulo powers of two, of which there are errors, have fewer bits.
                seen.high.max(-seen.low).min(FAR.into()) as i64
            };
            errors.push(match &node.op {
                FixedOp::Conv2d(_) | FixedOp::Linear { .. } => {
                    let gain = self.weights(index).map_or(0, LinearWeights::gain);
                    let own = if layers_are_off { node.accumulator.sum_error() } else { 0 };
                    plus(times(gain, largest), own)
                }
                FixedOp::SumPool(window) => times(window.area() as i64, largest),
                FixedOp::Scale { factor } => times(factor.abs(), largest),
                FixedOp::Add { factors: [a, b] } => plus(times(a.abs(), of(0)), times(b.abs(), of(1))),
                FixedOp::Rescale { shift } if node.accumulator.is_power_of_two() => {
                    if is_free(index) {
                        rescaled(largest, *shift)
                    } else {
                        divided(largest, *shift)
                    }
                }
                FixedOp::Mul => product::error([0, 1].map(magnitude), [0, 1].map(of)).min(FAR),
                FixedOp::MatrixProduct { inner } => {
                    let each = product::error([0, 1].map(magnitude), [0, 1].map(of)).min(FAR);
                    times(*inner as i64, each)
                }
                op => op.elementwise().map_or(largest, |op| times(op.gain(magnitude(0), largest), largest)),
            });
        }
        errors
    }
}

impl PublicNetwork {
    /// For each value (the input, then each node's output), whether the result is made of it without a rescale in between, behind which one unit of a
    /// sum is a small part of one.
    #[must_use]
    pub fn in_result(&self) -> Vec<bool> {
        let mut found = vec![false; self.nodes().len()];
        found.push(true);
        for (index, node) in self.nodes().iter().enumerate().rev() {
            if found[index + 1] && !matches!(node.op, FixedOp::Rescale { shift } if shift > 0) {
                node.inputs.iter().for_each(|input| found[*input] = true);
            }
        }
        found
    }
}

impl LinearWeights {
    /// The largest sum of absolute weights of an output channel.
    fn gain(&self) -> i64 {
        let sum = |row: &[i64]| row.iter().fold(0, |sum, w| plus(sum, w.abs()));
        self.rows().map(sum).max().unwrap_or(0)
    }
}

fn plus(a: i64, b: i64) -> i64 {
    a.saturating_add(b).min(FAR)
}

fn times(a: i64, b: i64) -> i64 {
    a.saturating_mul(b).min(FAR)
}

/// `ceil(E / 2^d + 1/2)`, or E for d = 0.
fn rescaled(error: i64, shift: u32) -> i64 {
    match shift {
        0 => error,
        // What is not known to be smaller stays so.
        _ if error == FAR => FAR,
        _ => plus(error, 3 * (1 << (shift - 1)) - 1) >> shift,
    }
}

/// `ceil(E / 2^d)`: what an exact rescale leaves.
fn divided(error: i64, shift: u32) -> i64 {
    if error == FAR { FAR } else { plus(error, (1 << shift) - 1) >> shift }
}

/// Beyond any ring, with room for sums.
const FAR: i64 = 1 << 60;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rescale;

    /// Both ends of the bound are reached, and never passed.
    #[test]
    fn errors_behind_a_rescale_are_the_largest_there_are() {
        for shift in 1..5 {
            for error in 0..40 {
                let (mut largest, mut exact) = (0, 0);
                for x in -40..40 {
                    for off in [-error, error] {
                        exact = exact.max((rescale(x + off, shift) - rescale(x, shift)).abs());
                        let down = (x + off) >> shift;
                        let differences = [down, down + 1].map(|y| (y - rescale(x, shift)).abs());
                        largest = largest.max(differences[0]).max(differences[1]);
                    }
                }
                assert_eq!(rescaled(error, shift), largest, "{error} by {shift} bits");
                assert_eq!(divided(error, shift), exact, "{error} by {shift} bits");
            }
        }
        assert_eq!([rescaled(times(FAR, 2), 10), divided(FAR, 10), divided(7, 0)], [FAR, FAR, 7]);
        // What a layer is off by makes no difference.
        assert!((1..48).all(|shift| rescaled(1, shift) == 1 && rescaled(0, shift) == 1));
    }
}
