//! A plan with its circuits and layouts, built once for everything that is asked of it.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use lanner_network::Network;
use lanner_protocol::Protocol;
use lanner_step::{
    Built, CotSupply, Memory, Needs, OfflineCost, ProtocolError, SetUp, Sets, ValueType, WeightForm,
    transfer_sets,
};

use crate::unroll::{Action, Unrolled, Visit, unroll};
use crate::{Account, Item, Plan, PlanError};

/// A plan with what both parties build from it.
pub struct BuiltPlan {
    sets: Sets,
    input: ValueType,
    steps: Vec<BuiltStep>,
    visits: Vec<Visit>,
    /// Transfers that the client and the server send in one prediction.
    transfers: [usize; 2],
    /// Bytes of one party's shares of values, at most.
    values: u64,
}

/// A step with what both parties build for it.
pub struct BuiltStep {
    /// The step's name: of what repeats, that of all iterations together.
    pub name: String,
    /// The name of its node: of what repeats, of that in the first iteration.
    pub node: String,
    /// The protocol's name in reports.
    pub protocol: &'static str,
    /// Why it is computed so, for people.
    pub reason: &'static str,
    /// The types of what it reads and makes, at its first visit.
    pub types: (Vec<ValueType>, ValueType),
    /// What it is computed with.
    pub built: Box<dyn Built>,
}

impl Plan {
    /// Checks that the steps fit together, and builds their circuits and layouts.
    ///
    /// # Errors
    /// [`PlanError::Layer`] naming a step that does not fit its protocol or its inputs.
    pub fn build(&self) -> Result<BuiltPlan, PlanError> {
        let unrolled = unroll(self)?;
        let sets = Sets::new().map_err(|source| layer("parameters", source))?;
        let mut steps = Vec::new();
        let mut visits = unrolled.visits.iter();
        let labels = self.items.iter().flat_map(Item::labels);
        for (number, (step, name)) in self.steps().zip(labels).enumerate() {
            // Steps are visited in order the first time.
            let first = visits.find(|visit| visit.action == Action::Step(number));
            let first = first
                .ok_or_else(|| layer(&step.name, ProtocolError::WrongModel("a step is never visited")))?;
            let inputs = first.inputs.iter().map(|value| unrolled.types[*value]).collect();
            steps.push(BuiltStep {
                name,
                node: step.name.clone(),
                protocol: step.protocol.name(),
                reason: step.protocol.reason(),
                types: (inputs, unrolled.types[first.output]),
                built: step.protocol.spec().build(&sets).map_err(|source| layer(&step.name, source))?,
            });
        }
        prepare(&mut steps);
        let transfers = transfers(&steps, &unrolled.visits)?;
        let Unrolled { visits, types, .. } = unrolled;
        let values = values(&visits, &types);
        Ok(BuiltPlan { sets, input: types[0], steps, visits, transfers, values })
    }
}

impl BuiltPlan {
    /// The steps in order, those of a loop once.
    #[must_use]
    pub fn steps(&self) -> &[BuiltStep] {
        &self.steps
    }

    /// The steps, to be made those of one party, and the visits that both parties pay them.
    #[must_use]
    pub fn into_parts(self) -> (Vec<BuiltStep>, Vec<Visit>) {
        (self.steps, self.visits)
    }

    /// The type of the network's input.
    #[must_use]
    pub const fn input(&self) -> ValueType {
        self.input
    }

    /// What a session sets up.
    ///
    /// # Errors
    /// [`PlanError::Layer`] if a rotation is none of its set's parameters.
    pub fn set_up(&self) -> Result<SetUp, PlanError> {
        let needs = self.steps.iter().map(BuiltStep::needs).collect::<Result<Vec<_>, _>>()?;
        SetUp::of(&needs, self.transfers, &self.sets).map_err(|source| layer("set-up", source))
    }

    /// How far a session's sources of silent transfers have come after its set-up.
    #[must_use]
    pub fn supply(&self) -> CotSupply {
        CotSupply::new(transfer_sets(self.transfers))
    }

    /// What the parties hold, to within small change.
    ///
    /// # Errors
    /// [`PlanError::Layer`] naming a step that does not fit the parameters.
    pub fn memory(&self) -> Result<Memory, PlanError> {
        let session = self.set_up()?.key_bytes().map_err(|source| layer("evaluation keys", source))?;
        let mut each = Vec::with_capacity(self.steps.len());
        let mut once = Memory { session, ..Memory::default() };
        for step in &self.steps {
            let memory = step.built.memory().map_err(|source| layer(&step.name, source))?;
            once = once.beside(Memory { client_material: 0, server_material: 0, ..memory });
            each.push(memory);
        }
        let material = |visits: &[Visit]| {
            let steps = visits.iter().filter_map(Visit::step).map(|step| each[step]);
            let add = |[client, server]: [u64; 2], memory: Memory| {
                [client + memory.client_material, server + memory.server_material]
            };
            steps.fold([0; 2], add)
        };
        let runs = self.runs()?.into_iter().map(|run| material(&self.visits[run]));
        let [client_run, server_run] =
            runs.fold([0; 2], |most, run| [most[0].max(run[0]), most[1].max(run[1])]);
        let [client_material, server_material] = material(&self.visits);
        let mut all = Memory { client_material, server_material, client_run, server_run, ..once };
        // Beside a layer in work there are the values that others read later; run by run, what is known ahead of time of each, too.
        let values = if all.is_by_runs() { 2 * self.values } else { self.values };
        all.working += values;
        all.client_working += values;
        Ok(all)
    }

    /// Of the bytes of a model, those that its server need not keep, since layers with the same weights share them. `plan` is what this was
    /// built from.
    ///
    /// # Errors
    /// As [`Self::memory`].
    pub fn shared_bytes(&self, plan: &Plan, network: &Network) -> Result<u64, PlanError> {
        let nodes = network.public().nodes().iter().enumerate();
        let nodes: HashMap<&str, usize> = nodes.map(|(index, node)| (node.name.as_str(), index)).collect();
        let (mut known, mut bytes) = (Vec::new(), 0);
        for (step, BuiltStep { name, node, built, .. }) in plan.steps().zip(&self.steps) {
            let weights = nodes.get(node.as_str()).and_then(|node| network.weights(*node));
            let (Protocol::CheetahLinear(_) | Protocol::DelphiLinear(_), Some(weights)) =
                (&step.protocol, weights)
            else {
                continue;
            };
            if known.contains(&(&step.protocol, weights)) {
                bytes += built.memory().map_err(|source| layer(name, source))?.model;
            } else {
                known.push((&step.protocol, weights));
            }
        }
        Ok(bytes)
    }

    /// What the ciphertexts of a session may tell of the weights.
    ///
    /// # Errors
    /// As [`Self::memory`].
    pub fn account(&self) -> Result<Account, PlanError> {
        let answers = |step: usize| {
            let BuiltStep { name, built, .. } = &self.steps[step];
            built.answers().map_err(|source| layer(name, source))
        };
        Ok(Account::of(
            self.visits.iter().filter_map(Visit::step).map(answers).collect::<Result<Vec<_>, _>>()?,
        ))
    }

    /// The visits in runs that are prepared together: in each, the client asks for all before it receives.
    ///
    /// What is asked for in one run is bounded, since the server may not read it while it sends, and so is how long the client asks, since it
    /// does not read what the server sends meanwhile. What it holds of requests until they are answered is part of its material.
    ///
    /// # Errors
    /// [`PlanError::Layer`] naming a step whose ring is none of its protocol's.
    pub fn runs(&self) -> Result<Vec<Range<usize>>, PlanError> {
        let mut supply = self.supply();
        let asked = |visit: &Visit| {
            let Some(step) = visit.step().map(|step| &self.steps[step]) else { return Ok([0; 2]) };
            let Needs { transfers: [transfers, _], comparison_keys, conversation, .. } = step.needs()?;
            let asked = step.offline_cost(&mut supply)?.request.client_bytes();
            // What must be prepared by itself fills a run.
            Ok([if comparison_keys || conversation { RUN[0] + 1 } else { asked }, transfers as u64])
        };
        Ok(runs(self.visits.iter().map(asked).collect::<Result<Vec<_>, _>>()?))
    }

    /// What both parties do, in order.
    #[must_use]
    pub fn visits(&self) -> &[Visit] {
        &self.visits
    }
}

impl BuiltStep {
    /// What the step needs of the session.
    ///
    /// # Errors
    /// [`PlanError::Layer`] naming the step.
    pub fn needs(&self) -> Result<Needs, PlanError> {
        self.built.needs().map_err(|source| layer(&self.name, source))
    }

    fn offline_cost(&self, supply: &mut CotSupply) -> Result<OfflineCost, PlanError> {
        Ok(self.built.cost(supply).map_err(|source| layer(&self.name, source))?.offline)
    }
}

/// Transfers that the client and the server send in all visits.
fn transfers(steps: &[BuiltStep], visits: &[Visit]) -> Result<[usize; 2], PlanError> {
    let each = steps.iter().map(|step| Ok(step.needs()?.transfers)).collect::<Result<Vec<_>, PlanError>>()?;
    let add =
        |sums: [usize; 2], step: usize| [0, 1].map(|party| sums[party].saturating_add(each[step][party]));
    Ok(visits.iter().filter_map(Visit::step).fold([0; 2], add))
}

/// Has weights kept in their prepared form as long as those fit [`MAX_PREPARED_BYTES`], the smallest layers first: their filters are those
/// that serve many parts of a large image.
fn prepare(steps: &mut [BuiltStep]) {
    let mut layers: Vec<_> = steps.iter_mut().filter_map(|step| step.built.weights()).collect();
    layers.sort_by_key(|(bytes, _)| *bytes);
    let mut left = MAX_PREPARED_BYTES;
    for (bytes, form) in layers {
        if let Some(rest) = left.checked_sub(bytes) {
            (left, *form) = (rest, WeightForm::Evaluation);
        }
    }
}

/// Bytes of prepared weights of a model: 1 GiB. What goes beyond is transformed at every prediction, which takes more time.
const MAX_PREPARED_BYTES: u64 = 1 << 30;

/// Bytes that the client asks with in one run of steps, well below what a channel takes in while it writes; and transfers that it draws to
/// ask, in a second or two, far below the minute that the server waits for it to read.
const RUN: [u64; 2] = [64 << 20, 1 << 25];

fn runs(asked: impl IntoIterator<Item = [u64; 2]>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut sums = [0; 2];
    for (index, asked) in asked.into_iter().enumerate() {
        let more = [0, 1].map(|kind| sums[kind] + asked[kind]);
        if let Some(run) = runs.last_mut().filter(|_| more[0] <= RUN[0] && more[1] <= RUN[1]) {
            run.end = index + 1;
            sums = more;
        } else {
            runs.push(index..index + 1);
            sums = asked;
        }
    }
    runs
}

/// Bytes of one party's shares of the values that are held at a time, at most: each until it is read for the last time.
fn values(visits: &[Visit], types: &[ValueType]) -> u64 {
    let mut last = vec![0; types.len()];
    for (number, visit) in visits.iter().enumerate() {
        visit.inputs.iter().for_each(|value| last[*value] = number);
    }
    let bytes = |value: usize| match types[value] {
        ValueType::Shared { len, .. } => (len * size_of::<u64>()) as u64,
        // Steps count their own ciphertexts.
        ValueType::Encrypted(_) | ValueType::Revealed => 0,
    };
    let (mut held, mut most) = (bytes(0), 0);
    for (number, visit) in visits.iter().enumerate() {
        held += bytes(visit.output);
        most = most.max(held);
        let read: BTreeSet<usize> = visit.inputs.iter().copied().collect();
        held -= read.into_iter().filter(|value| last[*value] == number).map(bytes).sum::<u64>();
    }
    most
}

pub(crate) fn layer(name: &str, source: ProtocolError) -> PlanError {
    PlanError::Layer { node: name.to_owned(), source }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lanner_primitives::Ring;
    use lanner_step::{Known, Party};
    use lanner_transfers::Layer;

    use super::*;

    #[test]
    fn transfers_of_a_step_count_at_every_visit() {
        let layer = Layer::square(10, 20).unwrap();
        let each = [Party::Client, Party::Server].map(|sender| layer.transfers(sender));
        let made = ValueType::shared(Ring::Pow2(20), 10, Known::NOBODY);
        let built = Box::new(layer);
        let steps = [BuiltStep {
            name: "square".to_owned(),
            node: "square".to_owned(),
            protocol: "",
            reason: "",
            types: (vec![made], made),
            built,
        }];
        let visit = |action| Visit { action, inputs: Vec::new(), output: 0, iteration: 0 };
        let visits = [Action::Step(0), Action::Join, Action::Step(0), Action::Step(0)].map(visit);
        assert_eq!(transfers(&steps, &visits).unwrap(), each.map(|count| 3 * count));
    }

    #[test]
    fn runs_ask_for_a_bounded_number_of_bytes_and_leave_no_step_out() {
        let mega = |sizes: &[u64]| runs(sizes.iter().map(|size| [size << 20, 0]));
        assert_eq!(mega(&[1, 0, 60, 3, 1, 0]), [0..4, 4..6]);
        assert_eq!(mega(&[100, 0, 100]), [0..1, 1..2, 2..3]);
        assert!(mega(&[]).is_empty());
        let drawn = |counts: &[u64]| runs(counts.iter().map(|count| [1, count << 20]));
        assert_eq!(drawn(&[5, 25, 2, 1, 40, 0]), [0..3, 3..4, 4..5, 5..6]);
    }

    #[test]
    fn values_are_held_until_their_last_reader_has_them() {
        let shared = |len| ValueType::shared(Ring::Pow2(20), len, Known::NOBODY);
        let visit = |inputs: &[usize], output| Visit {
            action: Action::Join,
            inputs: inputs.to_vec(),
            output,
            iteration: 0,
        };
        let types = [10, 20, 30, 5, 1].map(shared);
        let chain = [visit(&[0], 1), visit(&[1], 2), visit(&[2], 3), visit(&[3], 4)];
        assert_eq!(values(&chain, &types), 8 * 50);
        // The input is read again in the end, twice by one visit.
        let around = [visit(&[0], 1), visit(&[1], 2), visit(&[2], 3), visit(&[3, 0, 0], 4)];
        assert_eq!(values(&around, &types), 8 * 60);
    }
}
