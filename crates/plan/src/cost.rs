//! What a plan sends: the sum of its protocols' costs.

use lanner_step::{Cost, CotSupply, StepCost};

use crate::built::layer;
use crate::{Action, BuiltPlan, PlanError, Visit};

/// What a plan sends, from public parameters alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanCost {
    /// Once a session.
    pub setup: Cost,
    /// Of each step in turn, for one prediction, before the input is known; of a step in a loop, all its visits.
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
        self.next_cost(&mut self.supply())
    }

    /// As [`Self::cost`], for the prediction that comes when the sources of transfers have come so far, which it moves on.
    ///
    /// # Errors
    /// As [`Self::cost`].
    pub fn next_cost(&self, supply: &mut CotSupply) -> Result<PlanCost, PlanError> {
        let (setup, costs) = self.visit_costs(supply)?;
        let [mut offline, mut online] = [0, 1].map(|_| vec![Cost::NONE; self.steps().len()]);
        let add = |costs: &mut Vec<Cost>, visit: &Visit, cost: Cost| {
            if let Action::Step(step) = visit.action {
                costs[step] = costs[step].beside(cost);
            }
        };
        // A prediction that is made run by run has both phases in turns.
        let by_runs = self.memory()?.is_by_runs();
        let [mut before, mut before_online] = [Cost::NONE; 2];
        for run in self.runs()? {
            let costs = &costs[run.clone()];
            before = costs.iter().fold(before, |before, cost| before.then(cost.offline.request));
            for (visit, StepCost { offline: cost, .. }) in self.visits()[run.clone()].iter().zip(costs) {
                add(&mut offline, visit, cost.request.beside(follow(&mut before, cost.answer)));
            }
            let before = if by_runs { &mut before } else { &mut before_online };
            for (visit, cost) in self.visits()[run].iter().zip(costs) {
                add(&mut online, visit, follow(before, cost.online));
            }
        }
        Ok(PlanCost { setup, offline, online })
    }

    /// What the set-up and each visit send.
    pub(crate) fn visit_costs(&self, supply: &mut CotSupply) -> Result<(Cost, Vec<StepCost>), PlanError> {
        let setup = self.set_up()?.cost().map_err(|source| layer("set-up", source))?;
        let visit = |visit: &Visit| self.visit_cost(visit, supply);
        Ok((setup, self.visits().iter().map(visit).collect::<Result<_, _>>()?))
    }

    fn visit_cost(&self, visit: &Visit, supply: &mut CotSupply) -> Result<StepCost, PlanError> {
        let Action::Step(step) = visit.action else { return Ok(StepCost::default()) };
        let step = &self.steps()[step];
        step.built.cost(supply).map_err(|source| layer(&step.name, source))
    }
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
