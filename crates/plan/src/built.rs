//! A plan with its circuits and layouts, built once for everything that is asked of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use lanner_bfv::{EvaluationKeys, GaloisElement, Parameters};
use lanner_ot::silent;
use lanner_protocol::ProtocolError;
use lanner_protocol::linear::gazelle::galois_element;
use lanner_protocol::linear::{Set, Sets};
use lanner_protocol::nonlinear::ot_nonlinear::{CotSupply, PARAMETERS};

use crate::memory::prepare;
use crate::protocol::Facts;
use crate::{Built, Held, Memory, Plan, PlanError};

/// A plan with what both parties build from it.
pub struct BuiltPlan {
    sets: Sets,
    steps: Vec<BuiltStep>,
}

/// What a session sets up before its first prediction.
pub struct Needs {
    /// Keys, one for each parameter set in use.
    pub keys: Vec<NeededKeys>,
    /// Whether circuits are garbled.
    pub garbling: bool,
    /// The parameters of silent transfers in both directions, if there are any.
    pub transfers: Option<silent::Parameters>,
}

/// What a session's keys of one parameter set are made for.
pub struct NeededKeys {
    /// The set.
    pub set: Set,
    /// Its parameters.
    pub parameters: Parameters,
    /// The automorphisms that need an evaluation key.
    pub automorphisms: Vec<GaloisElement>,
}

/// A step with what both parties build for it.
pub struct BuiltStep {
    /// The step's name.
    pub name: String,
    /// The protocol's name in reports.
    pub protocol: &'static str,
    /// What it is computed with.
    pub built: Built,
}

impl Plan {
    /// Builds every step's circuits and layouts.
    ///
    /// # Errors
    /// [`PlanError::Layer`] naming a step that does not fit its protocol.
    pub fn build(&self) -> Result<BuiltPlan, PlanError> {
        let sets = Sets::new().map_err(|source| layer("parameters", source))?;
        let mut steps = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let protocol = step.protocol.describe();
            let built = protocol.build(&sets).map_err(|source| layer(&step.name, source))?;
            steps.push(BuiltStep { name: step.name.clone(), protocol: protocol.name(), built });
        }
        prepare(&mut steps);
        Ok(BuiltPlan { sets, steps })
    }
}

impl BuiltPlan {
    /// The steps in order.
    #[must_use]
    pub fn steps(&self) -> &[BuiltStep] {
        &self.steps
    }

    /// The steps in order, to be made those of one party.
    #[must_use]
    pub fn into_steps(self) -> Vec<BuiltStep> {
        self.steps
    }

    /// The keys that a session needs, one for each parameter set in use.
    ///
    /// # Errors
    /// [`PlanError::Layer`] if a rotation is none of its set's parameters.
    pub fn keys(&self) -> Result<Vec<NeededKeys>, PlanError> {
        let mut needed: BTreeMap<Set, BTreeSet<_>> = BTreeMap::new();
        for facts in self.steps.iter().map(|step| step.built.facts()) {
            if let Some(set) = facts.keys() {
                needed.entry(set).or_default().extend(facts.rotations());
            }
        }
        let keys = |(set, rotations): (Set, BTreeSet<_>)| {
            let parameters = self.sets.get(set).clone();
            let element = |rotation| galois_element(rotation, parameters.degree());
            let automorphisms = rotations.into_iter().map(element).collect::<Result<_, _>>();
            let automorphisms = automorphisms.map_err(|source| layer("evaluation keys", source))?;
            Ok(NeededKeys { set, parameters, automorphisms })
        };
        needed.into_iter().map(keys).collect()
    }

    /// What a session sets up.
    ///
    /// # Errors
    /// As [`Self::keys`].
    pub fn needs(&self) -> Result<Needs, PlanError> {
        let mut facts = self.steps.iter().map(|step| step.built.facts());
        let garbling = facts.any(Facts::garbles);
        Ok(Needs { keys: self.keys()?, garbling, transfers: self.transfers() })
    }

    /// The parameters of silent transfers, if a step takes some.
    fn transfers(&self) -> Option<silent::Parameters> {
        let takes = |step: &BuiltStep| step.built.facts().transfers() != [0, 0];
        self.steps.iter().any(takes).then_some(PARAMETERS)
    }

    /// How far a session's sources of silent transfers have come after its set-up.
    #[must_use]
    pub fn supplies(&self) -> CotSupply {
        CotSupply::new(PARAMETERS)
    }

    /// What each party keeps of one prepared prediction.
    #[must_use]
    pub fn held(&self) -> Held {
        self.steps.iter().map(|step| step.built.facts().held()).sum()
    }

    /// What a server of this plan keeps.
    ///
    /// # Errors
    /// [`PlanError::Layer`] naming a step that does not fit the parameters.
    pub fn memory(&self) -> Result<Memory, PlanError> {
        let session = self.keys()?.iter().try_fold(0, |bytes, keys| {
            let more = EvaluationKeys::kept_bytes(&keys.parameters, keys.automorphisms.len());
            Ok::<_, PlanError>(bytes + more.map_err(|source| layer("evaluation keys", source.into()))? as u64)
        })?;
        let start = Memory { session, prediction: self.held().server, ..Memory::default() };
        self.steps.iter().try_fold(start, |memory, step| {
            Ok(memory.beside(step.built.facts().memory().map_err(|source| layer(&step.name, source))?))
        })
    }

    /// The steps in runs that are prepared together: in each, the client asks for all its transfers before it receives.
    ///
    /// What is asked for in one run is bounded, since the server may not read it while it sends.
    ///
    /// # Errors
    /// As [`Self::cost`].
    pub fn runs(&self) -> Result<Vec<Range<usize>>, PlanError> {
        let mut supplies = self.supplies();
        let asked = |step: &BuiltStep| {
            let cost =
                step.built.facts().offline_cost(&mut supplies).map_err(|source| layer(&step.name, source))?;
            Ok(cost.request.client_bytes())
        };
        Ok(runs(self.steps.iter().map(asked).collect::<Result<Vec<_>, _>>()?))
    }
}

/// Bytes that the client asks with in one run of steps: well below what a channel takes in while it writes.
const RUN_BYTES: u64 = 64 << 20;

fn runs(bytes: impl IntoIterator<Item = u64>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut sum = 0;
    for (index, bytes) in bytes.into_iter().enumerate() {
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

pub(crate) fn layer(name: &str, source: ProtocolError) -> PlanError {
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
