//! `x * x`.

use lanner_graph::elementwise::Square;
use lanner_network::FixedOp;

use super::{Lowered, Part, Wanted};

impl Lowered for Square {
    fn lower(&self, wanted: &Wanted<'_>) -> Result<Vec<Part>, String> {
        Ok(vec![Part::exact(FixedOp::Square, wanted.scale * wanted.scale)])
    }
}
