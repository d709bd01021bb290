//! The server's side of a plan.

use std::sync::Arc;

use lanner_graph::Network;
use lanner_plan::{Held, Needs, Plan, ring};
use lanner_primitives::Prg;
use lanner_protocol::Party;
use lanner_protocol::nonlinear::ot_nonlinear::Transfers;
use lanner_protocol::nonlinear::yao::GarblingSession;
use lanner_share::{Ring, Share};
use lanner_wire::Channel;

use super::clock::Clock;
use super::keys::Keys;
use super::steps::{self, AnyServerStep, Kept, ModelParts, Server};
use super::values::{Values, Wiring};
use super::{Computation, ExecutionError, Phase};

/// A model that is ready to serve: weights encoded once, shared read-only by all sessions.
pub struct ServedModel {
    needs: Needs,
    input: (Ring, usize),
    steps: Vec<Planned>,
    held: Held,
}

struct Planned {
    name: String,
    protocol: &'static str,
    wiring: Wiring,
    step: Box<dyn AnyServerStep>,
}

/// The server's one-time material of one prediction.
pub struct PreparedServer(Vec<Kept>);

impl ServedModel {
    /// Encodes a network's weights for its plan.
    ///
    /// # Errors
    /// [`ExecutionError::Plan`] or [`ExecutionError::Step`] naming a layer that does not fit the network, or whose ring or
    /// noise does not fit the parameters.
    pub fn new(network: &Network, plan: &Plan) -> Result<Self, ExecutionError> {
        let built = plan.build()?;
        let (needs, held) = (built.needs()?, built.held());
        let mut model = ModelParts::of(network);
        let mut planned = Vec::with_capacity(plan.steps.len());
        for (step, wiring) in built.into_steps().into_iter().zip(Wiring::of(plan)) {
            let (name, protocol) = (step.name, step.protocol);
            let step = steps::server(step.built, &mut model).map_err(ExecutionError::step(&name))?;
            planned.push(Planned { name, protocol, wiring, step });
        }
        let input = network.public().input();
        let input = (ring(input.accumulator), input.len());
        Ok(Self { needs, input, steps: planned, held })
    }

    /// What each party keeps of one prepared prediction.
    #[must_use]
    pub fn held(&self) -> Held {
        self.held
    }
}

/// The server's state of one session.
pub struct ServerSession {
    model: Arc<ServedModel>,
    state: Server,
    computed: Vec<Computation>,
}

impl ServerSession {
    /// Set-up: receives the client's keys and prepares oblivious transfer.
    ///
    /// # Errors
    /// [`ExecutionError::Channel`] if the peer's messages are not the ones due.
    pub fn setup(channel: &mut dyn Channel, model: Arc<ServedModel>) -> Result<Self, ExecutionError> {
        let mut rng = Prg::from_entropy()?;
        let needs = &model.needs;
        let keys = Keys::receive(channel, &needs.keys)?;
        let garbling = needs.garbling.then(|| GarblingSession::setup(channel, &mut rng)).transpose()?;
        let transfers = needs.transfers.map(|set| Transfers::setup(channel, Party::Server, set, &mut rng));
        let transfers = transfers.transpose()?;
        Ok(Self { model, state: Server { keys, garbling, transfers, rng }, computed: Vec::new() })
    }

    /// What the server computed in the last phase that it ran, step by step.
    #[must_use]
    pub fn computed(&self) -> &[Computation] {
        &self.computed
    }

    /// Offline: makes the material of one prediction.
    ///
    /// # Errors
    /// [`ExecutionError::Step`] naming the layer.
    pub fn prepare(&mut self, channel: &mut dyn Channel) -> Result<PreparedServer, ExecutionError> {
        let Self { model, state, computed } = self;
        computed.clear();
        let mut known = Values::new(Share::zero(model.input.0, model.input.1));
        let mut materials = Vec::with_capacity(model.steps.len());
        for Planned { name, protocol, wiring, step } in &model.steps {
            let inputs = known.read_known(wiring);
            let mut clock = Clock::start(channel);
            let made = step.offline(&mut clock, state, inputs.as_ref());
            computed.push(clock.stop(name, protocol, Phase::Offline));
            let (material, share) = made.map_err(ExecutionError::step(name))?;
            known.write_known(wiring, share);
            materials.push(material);
        }
        channel.flush()?;
        Ok(PreparedServer(materials))
    }

    /// Online: one prediction with its material, which is used up whatever happens.
    ///
    /// # Errors
    /// [`ExecutionError::Step`] naming the layer.
    pub fn predict(
        &mut self,
        channel: &mut dyn Channel,
        prepared: PreparedServer,
    ) -> Result<(), ExecutionError> {
        let Self { model, state, computed } = self;
        computed.clear();
        let mut values = Values::new(Share::zero(model.input.0, model.input.1));
        for (Planned { name, protocol, wiring, step }, material) in model.steps.iter().zip(prepared.0) {
            let inputs = values.read(wiring)?;
            let mut clock = Clock::start(channel);
            let made = step.online(&mut clock, state, material, &inputs);
            computed.push(clock.stop(name, protocol, Phase::Online));
            if let Some(share) = made.map_err(ExecutionError::step(name))? {
                values.write(wiring, share);
            }
        }
        channel.flush()?;
        Ok(())
    }
}
