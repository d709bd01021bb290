//! What a plan sends: the sum of its protocols' costs.

use std::collections::BTreeSet;

use lanner_bfv::{GaloisElement, Parameters};
use lanner_protocol::convert::remask;
use lanner_protocol::linear::gazelle::packing::Packing;
use lanner_protocol::linear::gazelle::{self, galois_element};
use lanner_protocol::nonlinear::yao::{self, OfflineCost};
use lanner_protocol::{Cost, ProtocolError};
use lanner_share::Ring;

use crate::{Plan, PlanError, Protocol};

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
            if let Protocol::GazelleLinear { shape, baby, .. } = &step.protocol {
                let packing = Packing::new(shape, parameters.degree(), *baby);
                needed.extend(packing.map_err(|source| layer(&step.name, source))?.keys());
            }
        }
        let elements = needed.into_iter().map(|rotation| galois_element(rotation, parameters.degree()));
        elements.collect::<Result<_, _>>().map_err(|source| layer("evaluation keys", source))
    }

    /// What both parties will send, and in how many rounds.
    ///
    /// # Errors
    /// [`PlanError::Layer`] naming a step that does not fit its protocol.
    pub fn cost(&self) -> Result<PlanCost, PlanError> {
        let parameters = gazelle::parameters().map_err(|source| layer("parameters", source))?;
        let keys = gazelle::keys_cost(&parameters, &self.automorphisms(&parameters)?);
        let setup = keys.map_err(|source| layer("evaluation keys", source))?.then(yao::setup_cost());
        let (mut offline, mut online) = (Vec::new(), Vec::new());
        let mut before = Cost::NONE;
        for step in &self.steps {
            let (prepared, alone) =
                phases(&step.protocol, &parameters).map_err(|source| layer(&step.name, source))?;
            offline.push(prepared);
            online.push(alone.after(before));
            before = before.then(alone);
        }
        // All layers ask before the first is answered.
        let asked = offline.iter().fold(Cost::NONE, |cost, step| cost.then(step.request));
        let answer = |before: &mut Cost, step: &OfflineCost| {
            let answer = step.answer.after(*before);
            *before = before.then(step.answer);
            Some(step.request.beside(answer))
        };
        let offline = offline.iter().scan(asked, answer).collect();
        Ok(PlanCost { setup, offline, online })
    }
}

/// The offline and the online cost of one step alone.
fn phases(protocol: &Protocol, parameters: &Parameters) -> Result<(OfflineCost, Cost), ProtocolError> {
    let nothing = OfflineCost { request: Cost::NONE, answer: Cost::NONE };
    Ok(match protocol {
        Protocol::GazelleLinear { shape, prime, baby } => {
            let packing = Packing::new(shape, parameters.degree(), *baby)?;
            (nothing, gazelle::online_cost(&packing, parameters, *prime)?)
        }
        Protocol::SumPool { .. } => (nothing, Cost::NONE),
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
