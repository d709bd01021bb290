//! What a plan sends: the sum of its protocols' costs.

use std::collections::BTreeSet;
use std::ops::Range;

use lanner_bfv::{GaloisElement, Parameters};
use lanner_protocol::convert::remask;
use lanner_protocol::linear::gazelle::packing::Packing;
use lanner_protocol::linear::gazelle::{self, galois_element};
use lanner_protocol::nonlinear::{square, yao};
use lanner_protocol::{Cost, OfflineCost, ProtocolError};
use lanner_share::Ring;

use crate::{Plan, PlanError, Protocol, Step};

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

impl Plan {
    /// The automorphisms that the packed layers need evaluation keys for.
    ///
    /// # Errors
    /// [`PlanError::Layer`] naming a layer that does not fit the parameters.
    pub fn automorphisms(&self, parameters: &Parameters) -> Result<Vec<GaloisElement>, PlanError> {
        let mut needed = BTreeSet::new();
        for step in &self.steps {
            if let Protocol::GazelleLinear { shape, kernel, .. } = &step.protocol {
                let packing = Packing::of(shape, parameters.degree(), *kernel);
                needed.extend(packing.map_err(|source| layer(&step.name, source))?.keys());
            }
        }
        let elements = needed.into_iter().map(|rotation| galois_element(rotation, parameters.degree()));
        elements.collect::<Result<_, _>>().map_err(|source| layer("evaluation keys", source))
    }

    /// The steps in runs that are prepared together: in each, the client asks for all its transfers before it receives.
    ///
    /// What is asked for in one run is bounded, since the server may not read it while it sends.
    ///
    /// # Errors
    /// As [`Self::cost`].
    pub fn runs(&self) -> Result<Vec<Range<usize>>, PlanError> {
        let costs = self.phases()?;
        Ok(runs(costs.iter().map(|(offline, _)| offline.request.client_bytes())))
    }

    /// What both parties will send, and in how many rounds.
    ///
    /// # Errors
    /// [`PlanError::Layer`] naming a step that does not fit its protocol.
    pub fn cost(&self) -> Result<PlanCost, PlanError> {
        let parameters = gazelle::parameters().map_err(|source| layer("parameters", source))?;
        let keys = gazelle::keys_cost(&parameters, &self.automorphisms(&parameters)?);
        let setup = keys.map_err(|source| layer("evaluation keys", source))?.then(yao::setup_cost());
        let costs = self.phases()?;
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

    /// The offline and the online cost of each step alone.
    fn phases(&self) -> Result<Vec<(OfflineCost, Cost)>, PlanError> {
        let parameters = gazelle::parameters().map_err(|source| layer("parameters", source))?;
        let step =
            |step: &Step| phases(&step.protocol, &parameters).map_err(|source| layer(&step.name, source));
        self.steps.iter().map(step).collect()
    }
}

/// Bytes that the client asks with in one run of steps: well below what a channel takes in while it writes.
const RUN_BYTES: u64 = 64 << 20;

fn runs(bytes: impl Iterator<Item = u64>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut sum = 0;
    for (index, bytes) in bytes.enumerate() {
        if let Some(run) = runs.last_mut().filter(|_| sum + bytes <= RUN_BYTES) {
            run.end = index + 1;
            sum += bytes;
        } else {
            runs.push(index..index + 1);
            sum = bytes;
        }
    }
    runs
}

/// The cost of `next` where it follows `before`, which it is added to.
fn follow(before: &mut Cost, next: Cost) -> Cost {
    let cost = next.after(*before);
    *before = before.then(next);
    cost
}

/// The offline and the online cost of one step alone.
fn phases(protocol: &Protocol, parameters: &Parameters) -> Result<(OfflineCost, Cost), ProtocolError> {
    let nothing = OfflineCost::default();
    Ok(match protocol {
        Protocol::GazelleLinear { shape, prime, kernel } => {
            let packing = Packing::of(shape, parameters.degree(), *kernel)?;
            let offline = gazelle::offline_cost(&packing, parameters, *prime)?;
            (offline, gazelle::online_cost(&packing, parameters, *prime)?)
        }
        Protocol::GazelleSquare { values, prime } => {
            let target = square::Target::Shares(*values);
            (target.offline_cost(parameters, *prime)?, target.online_cost(parameters, *prime)?)
        }
        Protocol::SumPool { .. } | Protocol::Add { .. } | Protocol::Scale { .. } | Protocol::Move { .. } => {
            (nothing, Cost::NONE)
        }
        Protocol::Remask { values, prime } => (nothing, remask::cost(Ring::Prime(*prime), *values)),
        Protocol::Yao { function, windows, from, to } => {
            let layer = yao::Layer::new(*function, windows, *from, *to)?;
            (layer.offline_cost()?, layer.online_cost())
        }
        Protocol::YaoArgMax { classes, from } => {
            let layer = yao::ArgMax::new(*classes, *from)?;
            (layer.offline_cost(), layer.online_cost())
        }
        Protocol::Reveal { values, from } => (nothing, remask::cost(Ring::Prime(*from), *values)),
    })
}

fn total(costs: &[Cost]) -> Cost {
    // The rounds between steps are counted in the steps.
    costs.iter().fold(Cost::NONE, |sum, cost| sum.beside(*cost))
}

fn layer(name: &str, source: ProtocolError) -> PlanError {
    PlanError::Layer { node: name.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_ask_for_a_bounded_number_of_bytes_and_leave_no_step_out() {
        let mega = |sizes: &[u64]| runs(sizes.iter().map(|size| size << 20));
        assert_eq!(mega(&[1, 0, 60, 3, 1, 0]), [0..4, 4..6]);
        assert_eq!(mega(&[100, 0, 100]), [0..1, 1..2, 2..3]);
        assert!(mega(&[]).is_empty());
    }
}
