//! The reference with faithful rounding in the place of the exact one, for statistics: `docs/numerics.md`, the choice of rounding.

use std::collections::BTreeMap;

use crate::accumulator::rounding_constant;
use crate::elementwise::FixedElementwise;
use crate::network::{FixedNode, FixedOp, PublicNetwork};
use crate::{FixedExecutor, FixedRun, InputError};

impl FixedExecutor<'_> {
    /// Quantises a real input and runs it as a protocol with faithful rounding may: carries are as frequent as there, and every sum of a
    /// linear layer is off by -1, 0 or 1 alike, which is far more often than there.
    ///
    /// `draw` gives uniform words.
    ///
    /// # Errors
    /// [`InputError`] if the input is misshapen, not finite or out of range.
    pub fn run_faithful(&self, input: &[f32], draw: impl FnMut() -> u64) -> Result<FixedRun, InputError> {
        let network = self.network.public();
        let (nodes, runs) = (network.nodes(), runs(network));
        // Both hooks draw.
        let draw = std::cell::RefCell::new(draw);
        let mut output = Vec::new();
        let carried = |index: usize, x: &[i64]| {
            let shift = *runs.get(&index)?;
            Some(x.iter().map(|x| x + carry(shift, draw.borrow_mut()())).collect())
        };
        let overflows = self.walk(&network.input().quantize(input)?, carried, |value, integers| {
            if value.checked_sub(1).is_some_and(|index| is_off(&nodes[index])) {
                for x in integers.iter_mut() {
                    *x += (draw.borrow_mut()() % 3) as i64 - 1;
                }
            }
            if value == nodes.len() {
                output = integers.to_vec();
            }
        })?;
        Ok(FixedRun { output, overflows })
    }
}

/// What an exact rescale needs added to its input to be a faithful one: with u uniform in `[1, 2^d]`, `floor((x + u) / 2^d)` is rounded up as
/// often as the low bits of uniform shares of x carry over none.
fn carry(shift: u32, word: u64) -> i64 {
    (word & ((1 << shift) - 1)) as i64 + 1 - rounding_constant(shift)
}

/// Whether a linear layer's sums may be off.
fn is_off(node: &FixedNode) -> bool {
    matches!(node.op, FixedOp::Conv2d(_) | FixedOp::Linear { .. }) && node.accumulator.sum_error() > 0
}

/// The first node of each run of operators that a protocol computes behind one faithful rescale, and its bits.
///
/// Rescaling comes first there. Maxima and bounds keep the order, so to add the same to their inputs is to rescale those.
fn runs(network: &PublicNetwork) -> BTreeMap<usize, u32> {
    let nodes = network.nodes();
    let mut uses = vec![0; nodes.len() + 1];
    nodes.iter().flat_map(|node| &node.inputs).for_each(|&value| uses[value] += 1);
    let mut runs = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        let FixedOp::Rescale { shift } = node.op else { continue };
        if shift == 0 || !node.accumulator.is_power_of_two() {
            continue;
        }
        let mut first = index;
        let before =
            |first: usize| nodes[first].inputs[0].checked_sub(1).filter(|before| uses[before + 1] == 1);
        while let Some(earlier) = before(first).filter(|&earlier| commutes(&nodes[earlier].op)) {
            first = earlier;
        }
        let operator = before(first).and_then(|earlier| nodes[earlier].op.elementwise());
        // A circuit that does not commute computes the rescale behind it, too, exactly.
        if operator.is_none_or(FixedElementwise::multiplies) {
            runs.insert(first, shift);
        }
    }
    runs
}

fn commutes(op: &FixedOp) -> bool {
    matches!(op, FixedOp::MaxPool(_)) || op.elementwise().is_some_and(FixedElementwise::commutes_with_rescale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rescale;

    /// Against shares: each party drops the low bits of its own, and one is added.
    #[test]
    fn carries_are_those_of_uniform_shares() {
        for shift in 1..6_u32 {
            let step = 1_i64 << shift;
            for x in -2 * step..2 * step {
                let shared = (0..step).map(|share| (share >> shift) + ((x - share) >> shift) + 1);
                let drawn = (0..step).map(|word| rescale(x + carry(shift, word as u64), shift));
                let sum = |ups: Vec<i64>| {
                    assert!(ups.iter().all(|y| (0..=1).contains(&(y - (x >> shift)))));
                    ups.iter().sum::<i64>()
                };
                assert_eq!(sum(shared.collect()), sum(drawn.collect()), "{x} by {shift} bits");
            }
        }
    }
}
