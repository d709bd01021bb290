//! The steps of mode cheetah, over powers of two.

use lanner_graph::FixedNode;
use lanner_protocol::ProtocolError;
use lanner_protocol::linear::Convolution;
use lanner_protocol::linear::cheetah::{Accuracy, Linear, Scheme};
use lanner_protocol::nonlinear::ot_nonlinear::{RingActivation, RingSquare, Rounding};
use lanner_protocol::step::{Protocol, Spec};
use lanner_share::Ring;

use super::{Planner, layer, ring, unsupported};
use crate::fuse::Fused;
use crate::{Mode, PlanError};

impl Planner<'_> {
    /// A linear layer in the first parameter set with room for its noise.
    pub(super) fn coefficient_layer(
        &self,
        node: &FixedNode,
        shape: Convolution,
        rounding: Rounding,
    ) -> Result<Protocol, PlanError> {
        let bits = bits(node)?;
        let accuracy = match rounding {
            Rounding::Exact => Accuracy::Exact,
            Rounding::Faithful => Accuracy::OffByOne,
        };
        let mut refused = ProtocolError::Shape { what: "parameter sets" };
        for set in accuracy.sets() {
            match Scheme::new(&shape, bits, accuracy, self.sets.get(*set)) {
                Ok(_) => return Ok(Linear { shape, bits, set: *set, accuracy }.into()),
                Err(error) => refused = error,
            }
        }
        Err(layer(node, refused))
    }

    /// What transfers compute of a run of operators; none where a circuit must.
    pub(super) fn activation(&self, fused: &Fused, from: Ring, to: Ring) -> Option<RingActivation> {
        let (Mode::Cheetah(rounding), Ring::Pow2(from), Ring::Pow2(to)) = (self.mode, from, to) else {
            return None;
        };
        let mut function = fused.function;
        // A bound beyond what values can be never binds.
        let largest = (1 << from.checked_sub(function.shift + 2)?) - 1;
        function.high = function.high.map(|high| high.min(largest));
        let windows = fused.windows;
        let activation = RingActivation { function, windows, from, to, rounding };
        activation.build(&self.sets).is_ok().then_some(activation)
    }
}

/// The square of every element.
pub(super) fn square(node: &FixedNode) -> Result<Protocol, PlanError> {
    Ok(RingSquare { values: node.len(), bits: bits(node)? }.into())
}

/// The bits of the ring that a node computes in.
fn bits(node: &FixedNode) -> Result<u32, PlanError> {
    match ring(node.accumulator) {
        Ring::Pow2(bits) => Ok(bits),
        Ring::Prime(_) => Err(unsupported(node, "it needs a ring modulo a power of two".to_owned())),
    }
}
