//! The one bit that a client may learn of its activations: whether any reached an upper bound of the compiler's own.
//!
//! A value that reached its bound is the largest that there is, and comparing shares with that takes a gate a bit. So the values behind all bounds are
//! compared in groups, by one circuit; the groups' bits are added up in shares; and of the sum the client learns whether it is above zero.

use lanner_local as local;
use lanner_local::shortfall::{Bounded, Shortfall};
use lanner_network::{Policy, PublicNetwork};
use lanner_primitives::Ring;
use lanner_step::{Samples, Windows};
use lanner_yao as yao;

use super::{Planner, ring};
use crate::{Choices, PlanError};

/// The name of the steps that find out.
pub(crate) const SATURATION: &str = "saturation";

/// Values that one circuit compares: its bit is shared anew by a transfer.
const GROUP: usize = 64;

/// The ring in which groups are counted.
const COUNTS: Ring = Ring::Pow2(32);

/// An upper bound of which the client learns whether it was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UpperBound {
    /// The value of the network that is largest where the bound is reached.
    pub(super) value: usize,
    /// The largest integer.
    largest: u64,
}

/// The upper bounds that the client is told of.
///
/// # Errors
/// [`PlanError::Saturation`] if the mode or the policy has no such bit, or a name is not that of an upper bound.
pub(super) fn bounds(
    network: &PublicNetwork,
    policy: Policy,
    choices: &Choices,
) -> Result<Vec<UpperBound>, PlanError> {
    let Choices { mode, saturation, .. } = choices;
    if saturation.is_empty() {
        return Ok(Vec::new());
    }
    let refused = |reason: String, fix| Err(PlanError::Saturation { reason, fix });
    if !mode.design().is_interactive() {
        let reason = format!("mode {} computes on ciphertexts and compares no values", mode.name());
        return refused(reason, "choose another mode");
    }
    if !matches!(policy, Policy::Logits | Policy::Value) {
        let reason = format!("the output is {}; the bit goes with logits or value only", policy.name());
        return refused(reason, "choose logits or value");
    }
    let is_told = |node: &usize| saturation.contains(&network.nodes()[*node].name);
    let nodes = (0..network.nodes().len()).filter(is_told);
    let bound = |node: usize| {
        let (value, largest) = network.bounded(node)?;
        Some(UpperBound { value, largest: u64::try_from(largest).ok()? })
    };
    match nodes.map(bound).collect::<Option<Vec<_>>>() {
        Some(bounds) if bounds.len() == saturation.len() => Ok(bounds),
        _ => refused("a node that is no upper bound is named as one".to_owned(), "compile the model again"),
    }
}

impl Planner<'_> {
    /// The steps after which the client knows whether any value reached its bound, where it is told.
    pub(super) fn saturation(&mut self) -> Result<Option<usize>, PlanError> {
        let (mut inputs, mut parts, network) = (Vec::new(), Vec::new(), self.network);
        for UpperBound { value, largest } in self.bounds {
            let node = &network.nodes()[value - 1];
            let shared = self.value(node, *value)?;
            // What a circuit is garbled for is a share known ahead of time.
            inputs.push(self.reshare(SATURATION, shared)?);
            parts.push(Bounded { values: node.len(), ring: ring(node.accumulator), largest: *largest });
        }
        let elements: usize = parts.iter().map(|part| part.values).sum();
        if elements == 0 {
            return Ok(None);
        }
        let group = elements.min(GROUP);
        let groups = elements.div_ceil(group);
        let shortfall = Shortfall { parts, values: groups * group, samples: Samples::ONE };
        let from = shortfall.to();
        let short = self.push(SATURATION, inputs, shortfall)?;
        let windows = rows(groups, group);
        let any = self.push(SATURATION, vec![short], yao::AnyZero { windows, from, to: COUNTS })?;
        let sum = local::SumPool { windows: rows(1, groups), ring: COUNTS };
        let sum = self.push(SATURATION, vec![any], sum)?;
        let sum = self.reshare(SATURATION, sum)?;
        let sign = yao::Scores::new(1, yao::AboveZero {}, COUNTS, 0);
        self.push(SATURATION, vec![sum], sign).map(Some)
    }
}

/// Rows, each a window.
const fn rows(count: usize, length: usize) -> Windows {
    Windows { channels: 1, image: [count, length], kernel: [1, length], strides: [1, length], pads: [0; 4] }
}
