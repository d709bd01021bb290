//! Ramps: a pass takes each apart into a `Relu` and a tail.

use lanner_graph::elementwise::Ramp;

use crate::elementwise::{Lowered, Part, Wanted};

impl Lowered for Ramp {
    fn lower(&self, _wanted: &Wanted<'_>) -> Result<Vec<Part>, String> {
        Err("its two parts still one".to_owned())
    }
}
