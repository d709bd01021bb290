//! The client's side of a plan.

use std::ops::Range;
use std::sync::Arc;

use lanner_graph::PublicNetwork;
use lanner_plan::{Held, Needs, Plan, ring};
use lanner_primitives::Prg;
use lanner_protocol::Party;
use lanner_protocol::nonlinear::ot_nonlinear::Transfers;
use lanner_protocol::nonlinear::softmax::Likely;
use lanner_protocol::nonlinear::yao::EvaluationSession;
use lanner_share::{Ring, Share};
use lanner_wire::Channel;

use super::cost::Meter;
use super::keys::Keys;
use super::steps::{self, AnyClientStep, Client, Kept, Value};
use super::values::{Values, Wiring};
use super::{ExecutionError, Phase, StepCost};

/// A plan as the client executes it.
pub struct ClientPlan {
    needs: Needs,
    input: (Ring, usize),
    steps: Vec<Planned>,
    runs: Vec<Range<usize>>,
    held: Held,
}

struct Planned {
    name: String,
    protocol: &'static str,
    wiring: Wiring,
    step: Box<dyn AnyClientStep>,
}

/// The client's one-time material of one prediction, and what making it took.
pub struct Prepared {
    materials: Vec<Kept>,
    costs: Vec<StepCost>,
}

/// What the client learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The index of the largest score, ties to the lowest index.
    Label(usize),
    /// The label and its probability to some decimal digits.
    Probability(Likely),
    /// The indices of the largest scores in order, ties to the lowest index.
    TopK(Vec<usize>),
    /// Every score, as integers at the network's output scale.
    Logits(Vec<i64>),
}

impl ClientPlan {
    /// Prepares a plan for a network.
    ///
    /// # Errors
    /// [`ExecutionError::Plan`] or [`ExecutionError::Step`] naming a layer that does not fit.
    pub fn new(network: &PublicNetwork, plan: &Plan) -> Result<Self, ExecutionError> {
        let built = plan.build()?;
        let (needs, runs, held) = (built.needs()?, built.runs()?, built.held());
        let mut planned = Vec::with_capacity(plan.steps.len());
        for (step, wiring) in built.into_steps().into_iter().zip(Wiring::of(plan)) {
            let (name, protocol) = (step.name, step.protocol);
            let step = steps::client(step.built, network).map_err(ExecutionError::step(&name))?;
            planned.push(Planned { name, protocol, wiring, step });
        }
        let input = (ring(network.input().accumulator), network.input().len());
        Ok(Self { needs, input, steps: planned, runs, held })
    }

    /// What each party keeps of one prepared prediction.
    #[must_use]
    pub fn held(&self) -> Held {
        self.held
    }
}

/// The client's state of one session.
pub struct ClientSession {
    plan: Arc<ClientPlan>,
    state: Client,
}

impl ClientSession {
    /// Set-up: makes and sends the keys and prepares oblivious transfer.
    ///
    /// # Errors
    /// [`ExecutionError::Channel`] if the peer's messages are not the ones due.
    pub fn setup(
        channel: &mut dyn Channel,
        plan: Arc<ClientPlan>,
    ) -> Result<(Self, StepCost), ExecutionError> {
        let meter = Meter::start(channel);
        let mut rng = Prg::from_entropy()?;
        let needs = &plan.needs;
        let keys = Keys::send(channel, &needs.keys, &mut rng)?;
        let evaluation = needs.garbling.then(|| EvaluationSession::setup(channel, &mut rng)).transpose()?;
        let transfers = needs.transfers.map(|set| Transfers::setup(channel, Party::Client, set, &mut rng));
        let transfers = transfers.transpose()?;
        // Nothing is due from the server, which may as well have the keys now.
        channel.flush()?;
        let cost = meter.stop(channel, "setup", "setup", Phase::Setup);
        Ok((Self { plan, state: Client { keys, evaluation, transfers, rng } }, cost))
    }

    /// Offline: makes the material of one prediction.
    ///
    /// # Errors
    /// [`ExecutionError::Step`] naming the layer.
    pub fn prepare(&mut self, channel: &mut dyn Channel) -> Result<Prepared, ExecutionError> {
        let Self { plan, state } = self;
        let (mut materials, mut costs) = (Vec::new(), Vec::new());
        for run in &plan.runs {
            let steps = &plan.steps[run.clone()];
            let mut requests = Vec::with_capacity(steps.len());
            for Planned { name, protocol, step, .. } in steps {
                let meter = Meter::start(channel);
                requests.push(step.request(channel, state).map_err(ExecutionError::step(name))?);
                costs.push(meter.stop(channel, name, protocol, Phase::Offline));
            }
            let made = steps.iter().zip(requests).zip(&mut costs[run.clone()]);
            for ((Planned { name, step, .. }, request), cost) in made {
                let meter = Meter::start(channel);
                materials.push(step.receive(channel, state, request).map_err(ExecutionError::step(name))?);
                cost.add(meter.elapsed(channel));
            }
        }
        Ok(Prepared { materials, costs })
    }

    /// Online: one prediction with its material, which is used up whatever happens.
    ///
    /// Returns the outcome and the cost of every step in both phases.
    ///
    /// # Errors
    /// [`ExecutionError::Mismatch`] if the input has another length; [`ExecutionError::Step`] naming the layer.
    pub fn predict(
        &mut self,
        channel: &mut dyn Channel,
        prepared: Prepared,
        input: &[i64],
    ) -> Result<(Outcome, Vec<StepCost>), ExecutionError> {
        let Self { plan, state } = self;
        if input.len() != plan.input.1 {
            return Err(ExecutionError::Mismatch { what: "the input's length" });
        }
        let mut values = Values::new(Share::embed(plan.input.0, input));
        let (mut outcome, mut costs) = (None, prepared.costs);
        for (Planned { name, protocol, wiring, step }, material) in plan.steps.iter().zip(prepared.materials)
        {
            let meter = Meter::start(channel);
            let inputs = values.read(wiring)?;
            match step.online(channel, state, material, &inputs).map_err(ExecutionError::step(name))? {
                Value::Shared(share) => values.write(wiring, share),
                Value::Known(known) => outcome = Some(known),
            }
            costs.push(meter.stop(channel, name, protocol, Phase::Online));
        }
        let outcome = outcome.ok_or(ExecutionError::Mismatch { what: "a plan without an output" })?;
        Ok((outcome, costs))
    }
}
