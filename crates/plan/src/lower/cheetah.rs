//! The steps of mode cheetah, over powers of two.

use lanner_coefficient::cheetah::{Accuracy, Linear, Scheme, Stacked};
use lanner_network::{FixedNode, Policy};
use lanner_primitives::Ring;
use lanner_protocol::Protocol;
use lanner_step::{Convolution, Spec};
use lanner_transfers::{RingActivation, RingSquare, Rounding};

use super::guards::DROPPED;
use super::{Planner, layer, ring, unsupported};
use crate::fuse::Fused;
use crate::mode::{Between, Inexact, Mode};
use crate::{PlanError, Samples};

/// Checks that a mode rounds in a way that the policy's results may show.
///
/// A faithful carry is a function of the client's own share and of hidden bits: a client that repeats one query and sees scores
/// solves for the weights behind it. Of a stochastic one it knows nothing, but two scores of one query differ by multiples of weights.
///
/// # Errors
/// [`PlanError::Policy`] for faithful or stochastic rounding with any policy but `label`.
pub(super) fn check_rounding(policy: Policy, mode: Mode) -> Result<(), PlanError> {
    let Some(Inexact { name, .. }) = mode.inexact().filter(|_| policy != Policy::Label) else {
        return Ok(());
    };
    let reason = format!(
        "it shows how values were rounded; with {name} rounding a client that repeats a query can compute weights from that"
    );
    let fix = match policy {
        Policy::LabelMap { .. } => "compile with exact rounding",
        _ => "compile with exact rounding, or with output label",
    };
    Err(PlanError::Policy { policy: policy.name(), reason, fix: fix.to_owned() })
}

impl Planner<'_> {
    /// A linear layer in the cheapest parameter set with room for its noise. Whatever the rounding, sums that the result is made of are exact.
    pub(super) fn coefficient_layer(&self, index: usize, shape: Convolution) -> Result<Linear, PlanError> {
        let node = &self.network.nodes()[index];
        let (bits, accuracy) = (bits(node)?, self.accuracy(index));
        if let Some(set) = self.guards.set(index + 1) {
            return Ok(Linear { shape, bits, set, accuracy, samples: Samples::ONE });
        }
        let set = if let Some(encrypted) = self.encrypted(node, &shape, bits, &[accuracy])? {
            encrypted.set
        } else {
            // Why there is none.
            let all = Stacked::new(&shape, self.choices.samples);
            let refused = all.and_then(|all| Scheme::cheapest(&all, bits, accuracy, &self.sets));
            refused.map_err(|error| layer(node, error))?.0
        };
        Ok(Linear { shape, bits, set, accuracy, samples: Samples::ONE })
    }

    /// How exact a node's layer is in ciphertexts, by the guards that are known.
    pub(super) fn accuracy(&self, index: usize) -> Accuracy {
        if self.guards.drops(index + 1) {
            return Accuracy::Guarded(DROPPED);
        }
        match (self.guards.of(index + 1), self.choices.mode.rounding()) {
            (0, Rounding::Faithful) if !self.in_result[index + 1] => Accuracy::OffByOne,
            (0, _) => Accuracy::Exact,
            (guard, _) => Accuracy::Guarded(guard),
        }
    }

    /// What transfers compute of the run of operators that node `first` begins, on values with bits of guard, which a rescale drops with its
    /// own; none where a circuit does.
    pub(super) fn activation(
        &self,
        first: usize,
        fused: &Fused,
        [from, to]: [Ring; 2],
        guard: u32,
    ) -> Option<RingActivation> {
        let (Ring::Pow2(from), Ring::Pow2(to)) = (from, to) else { return None };
        if self.rules(first).between == Between::Circuits {
            return None;
        }
        let mut function = fused.function;
        let from = from + guard;
        function.shift += guard;
        // A bound beyond what values can be never binds.
        let largest = (1 << from.checked_sub(function.shift + 1)?) - 1;
        function.high = function.high.map(|high| high.min(largest));
        let windows = fused.windows;
        let rounding = self.choices.mode.rounding();
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
        Ring::Prime(_) => {
            Err(unsupported(node, "this mode needs a ring modulo a power of two here".to_owned()))
        }
    }
}
