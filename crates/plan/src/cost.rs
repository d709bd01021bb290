//! What a plan sends: the sum of its protocols' costs.

use lanner_protocol::linear::keys::keys_cost;
use lanner_protocol::nonlinear::ot_nonlinear::{self, CotSupply};
use lanner_protocol::nonlinear::yao;
use lanner_protocol::{Cost, OfflineCost, ProtocolError};

use crate::built::{Needs, layer};
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
    /// What both parties will send in set-up and for the first prediction of a session, and in how many rounds.
    ///
    /// # Errors
    /// [`PlanError::Layer`] naming a step whose ring is none of its protocol's.
    pub fn cost(&self) -> Result<PlanCost, PlanError> {
        self.next_cost(&mut self.supplies())
    }

    /// As [`Self::cost`], for the prediction that comes when the sources of transfers have come so far, which it moves on.
    ///
    /// # Errors
    /// As [`Self::cost`].
    pub fn next_cost(&self, supplies: &mut CotSupply) -> Result<PlanCost, PlanError> {
        let phases = |step| phases(step, supplies);
        let costs = self.steps().iter().map(phases).collect::<Result<Vec<_>, _>>()?;
        let online = costs.iter().scan(Cost::NONE, |before, (_, online)| Some(follow(before, *online)));
        let mut offline = Vec::with_capacity(costs.len());
        let mut before = Cost::NONE;
        for run in self.runs()? {
            let steps = costs[run].iter().map(|(offline, _)| offline);
            before = steps.clone().fold(before, |before, step| before.then(step.request));
            offline.extend(steps.map(|step| step.request.beside(follow(&mut before, step.answer))));
        }
        Ok(PlanCost { setup: setup(&self.needs()?)?, offline, online: online.collect() })
    }
}

fn setup(needs: &Needs) -> Result<Cost, PlanError> {
    let keys = needs.keys.iter().try_fold(Cost::NONE, |cost, keys| {
        Ok::<_, ProtocolError>(cost.then(keys_cost(&keys.parameters, &keys.automorphisms)?))
    });
    let keys = keys.map_err(|source| layer("evaluation keys", source))?;
    let garbling = if needs.garbling { yao::setup_cost() } else { Cost::NONE };
    let transfers = needs.transfers.map_or(Cost::NONE, ot_nonlinear::setup_cost);
    Ok(keys.then(garbling).then(transfers))
}

/// The offline and the online cost of one step alone.
fn phases(step: &BuiltStep, supplies: &mut CotSupply) -> Result<(OfflineCost, Cost), PlanError> {
    let facts = step.built.facts();
    let offline = facts.offline_cost(supplies).map_err(|source| layer(&step.name, source))?;
    Ok((offline, facts.online_cost().map_err(|source| layer(&step.name, source))?))
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
