//! Neighbouring nonlinear operators as the one function of one circuit.

use lanner_graph::{FixedNode, FixedOp};
use lanner_protocol::nonlinear::windows::Windows;
use lanner_protocol::nonlinear::yao::Function;

use crate::lower::windows;

/// What the operators taken so far compute together.
///
/// All are monotone, so a maximum over windows may come before the others, and a bound may be applied after the rescaling
/// if it is rescaled itself.
pub(crate) struct Fused {
    pub(crate) function: Function,
    pub(crate) windows: Windows,
    pooled: bool,
    rescaled: bool,
}

impl Fused {
    /// The longest run at the head of `nodes`, whose input has the given shape, that one circuit computes; and its length.
    pub(crate) fn run(nodes: &[FixedNode], shape: &[usize]) -> (Self, usize) {
        let mut fused = Self {
            function: Function { relu: false, high: None, shift: 0 },
            windows: Windows::each(shape.iter().product()),
            pooled: false,
            rescaled: false,
        };
        let length = nodes.iter().take_while(|node| fused.take(&node.op, shape)).count();
        (fused, length)
    }

    /// Takes one more operator, unless the circuit has none for it.
    fn take(&mut self, op: &FixedOp, shape: &[usize]) -> bool {
        let function = &mut self.function;
        match *op {
            // A second pool would read windows of windows.
            FixedOp::MaxPool(window) if !self.pooled => {
                self.windows = windows(shape, &window);
                self.pooled = true;
            }
            FixedOp::Relu => function.relu = true,
            FixedOp::Clip { high } => function.high = Some(function.high.map_or(high, |old| old.min(high))),
            // Rounding twice is not rounding once.
            FixedOp::Rescale { shift } if !self.rescaled => {
                function.shift = shift;
                function.high = function.high.map(|high| lanner_graph::rescale(high, shift));
                self.rescaled = true;
            }
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use lanner_graph::{Accumulator, Window};

    use super::*;

    fn run(ops: &[FixedOp]) -> (Function, usize, usize) {
        let accumulator = Accumulator::ALL[1];
        let node = |op: &FixedOp| FixedNode {
            name: "node".to_owned(),
            op: *op,
            inputs: vec![0],
            shape: vec![2, 4, 4],
            accumulator,
        };
        let nodes: Vec<_> = ops.iter().map(node).collect();
        let (fused, length) = Fused::run(&nodes, &[2, 4, 4]);
        (fused.function, fused.windows.area(), length)
    }

    const POOL: FixedOp = FixedOp::MaxPool(Window { kernel: [2, 2], strides: [2, 2], pads: [0; 4] });

    #[test]
    fn monotone_operators_are_one_circuit_in_any_order() {
        let (function, area, length) =
            run(&[POOL, FixedOp::Relu, FixedOp::Clip { high: 960 }, FixedOp::Rescale { shift: 7 }]);
        assert_eq!((function, area, length), (Function { relu: true, high: Some(8), shift: 7 }, 4, 4));
        let (function, area, length) =
            run(&[FixedOp::Rescale { shift: 7 }, FixedOp::Clip { high: 8 }, POOL, FixedOp::Relu]);
        assert_eq!((function, area, length), (Function { relu: true, high: Some(8), shift: 7 }, 4, 4));
    }

    #[test]
    fn a_second_pool_and_a_second_rescaling_take_a_circuit_of_their_own() {
        assert_eq!(run(&[POOL, FixedOp::Relu, POOL]).2, 2);
        assert_eq!(run(&[FixedOp::Rescale { shift: 1 }, FixedOp::Rescale { shift: 1 }]).2, 1);
        assert_eq!(run(&[FixedOp::Reshape]).2, 0);
    }
}
