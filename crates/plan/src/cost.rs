//! What a plan sends: the sum of its protocols' costs.

use lanner_protocol::linear::keys::keys_cost;
use lanner_protocol::nonlinear::yao;
use lanner_protocol::{Cost, OfflineCost, ProtocolError};

use crate::built::{layer, runs};
use crate::protocol::Facts;
use crate::{BuiltPlan, BuiltStep, PlanError};

/// What a plan sends, from public parameters alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanCost {
    /// Once a session.
    pub setup: Cost,
    /// Of each step in turn, for one prediction, before the input is known.
    pub offline: Vec<Cost>,
    /// Of each step in turn, for one prediction.
    pub online: Vec<Cost>,
}

impl PlanCost {
    /// All steps' offline phases.
    #[must_use]
    pub fn offline_total(&self) -> Cost {
        total(&self.offline)
    }

    /// All steps' online phases.
    #[must_use]
    pub fn online_total(&self) -> Cost {
        total(&self.online)
    }
}

impl BuiltPlan {
    /// What both parties will send, and in how many rounds.
    ///
    /// # Errors
    /// [`PlanError::Layer`] naming a step whose ring is none of its protocol's.
    pub fn cost(&self) -> Result<PlanCost, PlanError> {
        let keys = self.keys()?.into_iter().try_fold(Cost::NONE, |cost, keys| {
            Ok::<_, ProtocolError>(cost.then(keys_cost(&keys.parameters, &keys.automorphisms)?))
        });
        let setup = keys.map_err(|source| layer("evaluation keys", source))?.then(yao::setup_cost());
        let costs = self.steps().iter().map(phases).collect::<Result<Vec<_>, _>>()?;
        let online = costs.iter().scan(Cost::NONE, |before, (_, online)| Some(follow(before, *online)));
        let mut offline = Vec::with_capacity(costs.len());
        let mut before = Cost::NONE;
        for run in runs(costs.iter().map(|(offline, _)| offline.request.client_bytes())) {
            let steps = costs[run].iter().map(|(offline, _)| offline);
            before = steps.clone().fold(before, |before, step| before.then(step.request));
            offline.extend(steps.map(|step| step.request.beside(follow(&mut before, step.answer))));
        }
        Ok(PlanCost { setup, offline, online: online.collect() })
    }
}

/// The offline and the online cost of one step alone.
fn phases(step: &BuiltStep) -> Result<(OfflineCost, Cost), PlanError> {
    let both = |facts: &dyn Facts| Ok::<_, ProtocolError>((facts.offline_cost()?, facts.online_cost()?));
    both(step.built.facts()).map_err(|source| layer(&step.name, source))
}

/// The cost of `next` where it follows `before`, which it is added to.
fn follow(before: &mut Cost, next: Cost) -> Cost {
    let cost = next.after(*before);
    *before = before.then(next);
    cost
}

fn total(costs: &[Cost]) -> Cost {
    // The rounds between steps are counted in the steps.
    costs.iter().fold(Cost::NONE, |sum, cost| sum.beside(*cost))
}
