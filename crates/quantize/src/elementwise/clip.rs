//! Bounds: both in the float graph, the upper one alone in fixed point, where `Relu` is the lower one.

use lanner_graph::elementwise::Clip;
use lanner_network::FixedOp;
use lanner_network::elementwise::FixedClip;

use super::{Lowered, Part, Wanted};

impl Lowered for Clip {
    fn lower(&self, wanted: &Wanted<'_>) -> Result<Vec<Part>, String> {
        let scale = wanted.scale;
        let above = self.max.map(|max| {
            let high = (f64::from(max) / scale).round_ties_even().max(0.0) as i64;
            Part { suffix: "/max", ..Part::exact(FixedOp::Clip(FixedClip { high }), scale) }
        });
        Ok([Part::exact(FixedOp::Relu, scale)].into_iter().chain(above).collect())
    }
}
