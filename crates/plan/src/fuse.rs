//! Neighbouring nonlinear operators as the one function of one circuit.

use lanner_network::FixedOp;
use lanner_network::elementwise::{FixedClip, FixedLeakyRelu};
use lanner_step::{Function, Slope, Windows};

use crate::lower::windows;

/// What the operators taken so far compute together.
///
/// All are monotone, so a maximum over windows may come before the others, and a bound may be applied after the rescaling
/// if it is rescaled itself. A slope below zero rounds: it comes first, and only the rescaling may follow it.
pub(crate) struct Fused {
    pub(crate) function: Function,
    pub(crate) windows: Windows,
    pooled: bool,
    rescaled: bool,
}

impl Fused {
    /// The longest run at the head of `ops`, whose input has the given shape, that one circuit computes; and its length.
    pub(crate) fn run<'o>(ops: impl Iterator<Item = &'o FixedOp>, shape: &[usize]) -> (Self, usize) {
        let mut fused = Self {
            function: Function::IDENTITY,
            windows: Windows::each(shape.iter().product()),
            pooled: false,
            rescaled: false,
        };
        let length = ops.enumerate().take_while(|(index, op)| fused.take(op, shape, *index == 0)).count();
        (fused, length)
    }

    /// Takes one more operator, unless the circuit has none for it.
    fn take(&mut self, op: &FixedOp, shape: &[usize], first: bool) -> bool {
        let function = &mut self.function;
        let sloped = function.slope.is_some();
        match op {
            FixedOp::LeakyRelu(FixedLeakyRelu { numerator, shift }) if first => {
                let Ok(numerator) = u64::try_from(*numerator) else { return false };
                function.slope = Some(Slope { numerator, shift: *shift });
            }
            _ if sloped && !matches!(op, FixedOp::Rescale { .. }) => return false,
            // A second pool would read windows of windows.
            FixedOp::MaxPool(window) if !self.pooled => {
                self.windows = windows(shape, window);
                self.pooled = true;
            }
            FixedOp::Relu => function.relu = true,
            FixedOp::Clip(FixedClip { high }) => {
                function.high = Some(function.high.map_or(*high, |old| old.min(*high)));
            }
            // Rounding twice is not rounding once.
            FixedOp::Rescale { shift } if !self.rescaled => {
                function.shift = *shift;
                function.high = function.high.map(|high| lanner_network::rescale(high, *shift));
                self.rescaled = true;
            }
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use lanner_network::Window;

    use super::*;

    fn run(ops: &[FixedOp]) -> (Function, usize, usize) {
        let (fused, length) = Fused::run(ops.iter(), &[2, 4, 4]);
        (fused.function, fused.windows.area(), length)
    }

    const CLIPPED: Function = Function { relu: true, high: Some(8), shift: 7, ..Function::IDENTITY };
    const LEAKY: FixedOp = FixedOp::LeakyRelu(FixedLeakyRelu { numerator: 51, shift: 9 });
    const POOL: FixedOp = FixedOp::MaxPool(Window { kernel: [2, 2], strides: [2, 2], pads: [0; 4] });

    #[test]
    fn monotone_operators_are_one_circuit_in_any_order() {
        let (function, area, length) = run(&[
            POOL,
            FixedOp::Relu,
            FixedOp::Clip(FixedClip { high: 960 }),
            FixedOp::Rescale { shift: 7 },
        ]);
        assert_eq!((function, area, length), (CLIPPED, 4, 4));
        let (function, area, length) =
            run(&[FixedOp::Rescale { shift: 7 }, FixedOp::Clip(FixedClip { high: 8 }), POOL, FixedOp::Relu]);
        assert_eq!((function, area, length), (CLIPPED, 4, 4));
    }

    #[test]
    fn a_second_pool_and_a_second_rescaling_take_a_circuit_of_their_own() {
        assert_eq!(run(&[POOL, FixedOp::Relu, POOL]).2, 2);
        assert_eq!(run(&[FixedOp::Rescale { shift: 1 }, FixedOp::Rescale { shift: 1 }]).2, 1);
        assert_eq!(run(&[FixedOp::Reshape]).2, 0);
    }

    #[test]
    fn a_slope_shares_its_circuit_with_the_rescaling_after_it_alone() {
        let (function, area, length) = run(&[LEAKY, FixedOp::Rescale { shift: 7 }, FixedOp::Relu]);
        let slope = Some(Slope { numerator: 51, shift: 9 });
        assert_eq!((function, area, length), (Function { slope, shift: 7, ..Function::IDENTITY }, 1, 2));
        for other in [LEAKY, POOL, FixedOp::Relu, FixedOp::Clip(FixedClip { high: 8 })] {
            assert_eq!(run(&[LEAKY, other.clone()]).2, 1);
            assert_eq!(run(&[other, LEAKY]).2, 1);
        }
        assert_eq!(run(&[FixedOp::Rescale { shift: 7 }, LEAKY]).2, 1);
    }
}
