//! `max(x, 0)`.

use lanner_graph::elementwise::Relu;
use lanner_network::FixedOp;

use super::{Lowered, Part, Wanted};

impl Lowered for Relu {
    fn is_positive_part(&self) -> bool {
        true
    }

    fn lower(&self, wanted: &Wanted<'_>) -> Result<Vec<Part>, String> {
        Ok(vec![Part::exact(FixedOp::Relu, wanted.scale)])
    }
}
