//! How the client learns the result.

use lanner_graph::Policy;
use lanner_protocol::convert::reshare::Reveal;
use lanner_protocol::nonlinear::ot_nonlinear::DropGuard;
use lanner_protocol::nonlinear::{softmax, yao};
use lanner_protocol::step::Protocol;

use super::{Planner, ring, widened};
use crate::{BuiltPlan, Plan, PlanError};

impl Planner<'_> {
    /// The step that tells the result.
    pub(super) fn output(&mut self, policy: Policy) -> Result<(), PlanError> {
        let last = self.network.nodes().len();
        let (values, guard) = (self.network.output_len(), self.guards.of(last));
        let ring = ring(self.network.accumulator(last));
        let from = widened(ring, guard);
        let scores = self.value(&self.network.nodes()[last - 1], last)?;
        let protocol: Protocol = match policy {
            Policy::Logits | Policy::Value => Reveal { values, from: ring }.into(),
            Policy::Labels => yao::Positive { classes: values, from, guard }.into(),
            Policy::Label => yao::ArgMax { classes: values, from, guard }.into(),
            Policy::TopK { k } => yao::TopK { classes: values, k: k as usize, from, guard }.into(),
            Policy::Probability { digits } => {
                let missing = || PlanError::Policy {
                    policy: policy.name(),
                    reason: "the network does not tell what its scores are worth".to_owned(),
                    fix: "compile it again".to_owned(),
                };
                let scale = self.network.output_scale().ok_or_else(missing)?;
                softmax::LabelAndProbability { classes: values, digits, scale, from, guard }.into()
            }
        };
        // All but the scores themselves come out of a circuit, which is garbled for a share known ahead of time.
        let scores = match policy {
            Policy::Logits | Policy::Value => self.without_guard(scores, last)?,
            _ => self.reshare("output", scores)?,
        };
        self.push("output", vec![scores], protocol)?;
        Ok(())
    }

    /// A sharing without the bits of guard of the result, which is made so that it may be opened: what is below it tells of noise.
    fn without_guard(&mut self, scores: usize, last: usize) -> Result<usize, PlanError> {
        let (node, guard) = (&self.network.nodes()[last - 1], self.guards.of(last));
        if guard == 0 {
            return Ok(scores);
        }
        let (values, bits) = (node.len(), node.accumulator.bits());
        self.push(&node.name, vec![scores], DropGuard { values, bits, guard })
    }
}

/// Whether a plan has transfers for the result's guard alone.
pub(super) fn only_drops_take_transfers(plan: &Plan, built: &BuiltPlan) -> Result<bool, PlanError> {
    let mut drops = false;
    for (step, built) in plan.steps().zip(built.steps()) {
        let takes = built.needs()?.transfers != [0; 2];
        match step.protocol {
            Protocol::DropGuard(_) => drops = true,
            _ if takes => return Ok(false),
            _ => {}
        }
    }
    Ok(drops)
}

/// What set-up and one prediction send.
pub(super) fn first_bytes(built: &BuiltPlan) -> Result<u64, PlanError> {
    let cost = built.cost()?;
    Ok(cost.setup.bytes() + cost.offline_total().bytes() + cost.online_total().bytes())
}
