//! How the client learns the result.

use lanner_local::reshare::{Reading, Reveal};
use lanner_network::{Policy, PublicNetwork};
use lanner_primitives::Ring;
use lanner_protocol::Protocol;
use lanner_step::{Built, CotSupply, ProtocolError, Spec, StepCost, transfer_sets};
use lanner_transfers::{DropGuard, RingSoftmax};
use lanner_yao as yao;
use lanner_yao::softmax::Probability;

use super::{OUTPUT, Planner, layer, ring, widened};
use crate::mode::Between;
use crate::{BuiltPlan, Plan, PlanError};

/// Bytes that a round counts as where a circuit of one round is held against transfers: what a link of 100 MB/s sends in a millisecond.
const ROUND: u64 = 100_000;

impl Planner<'_> {
    /// The steps that tell the result.
    pub(super) fn output(&mut self, policy: Policy) -> Result<(), PlanError> {
        let last = self.network.nodes().len();
        let (values, guard) = (self.network.output_len(), self.guards.of(last));
        let ring = ring(self.network.accumulator(last));
        let from = widened(ring, guard);
        let scores = self.value(&self.network.nodes()[last - 1], last)?;
        let protocol: Protocol = match policy {
            Policy::Logits | Policy::Value => {
                let scores = self.without_guard(scores, last)?;
                let saturated = self.saturation()?;
                let reading = saturated.map_or(Reading::Scores, |_| Reading::ScoresWithSaturation);
                let inputs = std::iter::once(scores).chain(saturated).collect();
                self.push(OUTPUT, inputs, Reveal { values, from: ring, reading })?;
                return Ok(());
            }
            Policy::Labels => yao::Scores::new(values, yao::AboveZero {}, from, guard).into(),
            Policy::Label => yao::Scores::new(values, yao::Largest {}, from, guard).into(),
            Policy::LabelMap { places } => {
                let places = places as usize;
                yao::Scores::new(values / places, yao::Largest {}, from, guard).at(places).into()
            }
            Policy::TopK { k } => yao::Scores::new(values, yao::Best { k: k as usize }, from, guard).into(),
            Policy::Probability { digits } => {
                let scale = scale_of_scores(self.network, policy)?;
                let circuit = yao::Scores::new(values, Probability { digits, scale }, from, guard);
                if let Some(transfers) = self.softmax_by_transfers(last, &circuit)? {
                    let scores = self.without_guard(scores, last)?;
                    let from =
                        transfers.to().map_err(|error| layer(&self.network.nodes()[last - 1], error))?;
                    let likely = self.push(OUTPUT, vec![scores], transfers)?;
                    let reading = Reading::Probability { classes: values, digits };
                    self.push(OUTPUT, vec![likely], Reveal { values: 2, from, reading })?;
                    return Ok(());
                }
                circuit.into()
            }
        };
        // What a circuit is garbled for is a share known ahead of time.
        let scores = self.reshare(OUTPUT, scores)?;
        self.push(OUTPUT, vec![scores], protocol)?;
        Ok(())
    }

    /// The label and its probability by transfers, over a power of two, where a circuit sends much more: as many bytes as make up for the rounds.
    fn softmax_by_transfers(
        &self,
        last: usize,
        circuit: &yao::Scores<Probability>,
    ) -> Result<Option<RingSoftmax>, PlanError> {
        // A label and its probability are told of one sample.
        if self.rules(last).between == Between::Circuits || !self.choices.samples.is_one() {
            return Ok(None);
        }
        let &yao::Scores { classes, what: Probability { digits, scale }, from, guard, .. } = circuit;
        let Ring::Pow2(bits) = from else { return Ok(None) };
        let transfers = RingSoftmax { classes, digits, scale, bits: bits - guard };
        // A ring without room is the circuit's.
        let Ok(built) = transfers.build(&self.sets) else { return Ok(None) };
        let node = &self.network.nodes()[self.network.nodes().len() - 1];
        let garbled =
            circuit.build(&self.sets).and_then(|built| sent(&*built)).map_err(|error| layer(node, error))?;
        let by_transfers = sent(&*built).map_err(|error| layer(node, error))?;
        Ok((by_transfers < garbled).then_some(transfers))
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

/// What one unit of a network's scores stands for.
pub(super) fn scale_of_scores(network: &PublicNetwork, policy: Policy) -> Result<f64, PlanError> {
    network.output_scale().ok_or_else(|| PlanError::Policy {
        policy: policy.name(),
        reason: "the model file has no scale for its scores".to_owned(),
        fix: "compile the model again".to_owned(),
    })
}

/// Whether a plan has transfers for the result's guard and for layers of few entries alone, which ciphertexts would do, too.
pub(super) fn only_choices_take_transfers(plan: &Plan, built: &BuiltPlan) -> Result<bool, PlanError> {
    let mut chosen = false;
    for (step, built) in plan.steps().zip(built.steps()) {
        let takes = built.needs()?.transfers != [0; 2];
        match step.protocol {
            Protocol::DropGuard(_)
            | Protocol::RingSparse(_)
            | Protocol::SparseAhead(_)
            | Protocol::RingSelect(_)
            | Protocol::SelectAhead(_) => chosen = true,
            _ if takes => return Ok(false),
            _ => {}
        }
    }
    Ok(chosen)
}

/// The bytes that a step sends in both phases, and those that its rounds count as.
pub(super) fn sent(built: &dyn Built) -> Result<u64, ProtocolError> {
    let StepCost { offline, online } = built.cost(&mut CotSupply::new(transfer_sets([0; 2])))?;
    let both = offline.request.then(offline.answer).then(online);
    Ok(both.bytes() + ROUND * online.rounds())
}

/// What set-up and one prediction send.
pub(super) fn first_bytes(built: &BuiltPlan) -> Result<u64, PlanError> {
    let cost = built.cost()?;
    Ok(cost.setup.bytes() + cost.offline_total().bytes() + cost.online_total().bytes())
}
