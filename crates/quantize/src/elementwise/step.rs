//! The step function, whose integers are 0 and 1: 1 where the input's integer is 1 or more.

use lanner_graph::elementwise::Step;
use lanner_network::FixedOp;
use lanner_network::elementwise::FixedClip;

use super::{Lowered, Part, Wanted};

impl Lowered for Step {
    fn lower(&self, wanted: &Wanted<'_>) -> Result<Vec<Part>, String> {
        let bound = FixedOp::Clip(FixedClip { high: 1 });
        Ok(vec![
            Part { suffix: "/above", ..Part::exact(FixedOp::Relu, wanted.scale) },
            Part { suffix: "/one", ..Part::exact(bound, wanted.scale) },
            Part::exact(FixedOp::Rescale { shift: 0 }, 1.0),
        ])
    }
}
