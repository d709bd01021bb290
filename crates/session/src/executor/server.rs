//! The server's side of a plan.

use std::sync::Arc;

use lanner_bfv::{GaloisElement, Parameters};
use lanner_graph::Network;
use lanner_ot::CotSender;
use lanner_plan::{Held, Plan, Protocol};
use lanner_primitives::Prg;
use lanner_protocol::ProtocolError;
use lanner_protocol::convert::remask;
use lanner_protocol::linear::gazelle::{self, ClientKeys};
use lanner_protocol::nonlinear::square;
use lanner_protocol::nonlinear::yao::{self, GarblingSession};
use lanner_share::{Ring, Share};
use lanner_wire::Channel;

use super::clock::Clock;
use super::local::Local;
use super::values::{Inputs, Values, Wiring};
use super::{Computation, ExecutionError, Phase};

/// A model that is ready to serve: weights encoded once, shared read-only by all sessions.
pub struct ServedModel {
    parameters: Parameters,
    keys: Vec<GaloisElement>,
    input: (Ring, usize),
    steps: Vec<Planned>,
    held: Held,
}

struct Planned {
    name: String,
    protocol: &'static str,
    wiring: Wiring,
    step: Step,
}

enum Step {
    Linear(Box<gazelle::ServerLayer>),
    Square(Box<square::ServerSquare>),
    Local(Local),
    Remask { ring: Ring, values: usize },
    Yao(yao::ServerLayer),
    ArgMax(yao::ServerArgMax),
    Reveal,
}

enum Material {
    None,
    Linear(gazelle::ServerMaterial),
    Square(square::ServerMaterial),
    Remask(Share),
    Yao(yao::ServerMaterial),
    ArgMax(yao::ServerArgMaxMaterial),
}

/// The server's one-time material of one prediction.
pub struct PreparedServer(Vec<Material>);

impl ServedModel {
    /// Encodes a network's weights for its plan.
    ///
    /// # Errors
    /// [`ExecutionError::Mismatch`] if the plan is not the network's; [`ExecutionError::Step`] naming a layer whose ring or
    /// noise does not fit the parameters.
    pub fn new(network: &Network, plan: &Plan) -> Result<Self, ExecutionError> {
        let parameters = gazelle::parameters()?;
        let input = network.public().input();
        let mut weights = (0..network.public().nodes().len()).filter_map(|node| network.weights(node));
        let mut steps = Vec::with_capacity(plan.steps.len());
        for (step, wiring) in plan.steps.iter().zip(Wiring::of(plan)) {
            let built = match &step.protocol {
                Protocol::GazelleLinear { shape, prime, kernel } => {
                    let layer =
                        weights.next().ok_or(ExecutionError::Mismatch { what: "the network's weights" })?;
                    let built = (|| {
                        let packing = gazelle::packing::Packing::of(shape, parameters.degree(), *kernel)?;
                        let bias = layer.bias_of(shape.outputs()?);
                        gazelle::ServerLayer::new(packing, &parameters, *prime, layer.weight(), &bias)
                    })();
                    built.map(|layer| Step::Linear(Box::new(layer)))
                }
                Protocol::GazelleSquare { values, prime } => {
                    let square = square::ServerSquare::new(*values, &parameters, *prime);
                    square.map(|square| Step::Square(Box::new(square)))
                }
                Protocol::SumPool { .. }
                | Protocol::Add { .. }
                | Protocol::Scale { .. }
                | Protocol::Move { .. } => Local::new(network.public(), &step.protocol).map(Step::Local),
                Protocol::Remask { values, prime } => {
                    Ok(Step::Remask { ring: Ring::Prime(*prime), values: *values })
                }
                Protocol::Yao { function, windows, from, to } => {
                    yao::Layer::new(*function, windows, *from, *to)
                        .map(|layer| Step::Yao(yao::ServerLayer::new(layer)))
                }
                Protocol::YaoArgMax { classes, from } => {
                    yao::ArgMax::new(*classes, *from).map(|layer| Step::ArgMax(yao::ServerArgMax::new(layer)))
                }
                Protocol::Reveal { .. } => Ok(Step::Reveal),
            };
            let built = built.map_err(ExecutionError::step(&step.name))?;
            let (name, protocol) = (step.name.clone(), step.protocol.name());
            steps.push(Planned { name, protocol, wiring, step: built });
        }
        let input = (Ring::Prime(input.accumulator.prime()), input.len());
        Ok(Self { keys: plan.automorphisms(&parameters)?, parameters, input, steps, held: plan.held()? })
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
    keys: ClientKeys,
    garbling: GarblingSession<CotSender>,
    rng: Prg,
    computed: Vec<Computation>,
}

impl ServerSession {
    /// Set-up: receives the client's keys and prepares oblivious transfer.
    ///
    /// # Errors
    /// [`ExecutionError::Channel`] if the peer's messages are not the ones due.
    pub fn setup(channel: &mut dyn Channel, model: Arc<ServedModel>) -> Result<Self, ExecutionError> {
        let mut rng = Prg::from_entropy()?;
        let keys = gazelle::receive_keys(channel, &model.parameters, &model.keys)?;
        let garbling = GarblingSession::setup(channel, &mut rng)?;
        Ok(Self { model, keys, garbling, rng, computed: Vec::new() })
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
        let model = Arc::clone(&self.model);
        let mut known = Values::new(Share::zero(model.input.0, model.input.1));
        let mut materials = Vec::with_capacity(model.steps.len());
        self.computed.clear();
        for Planned { name, protocol, wiring, step } in &model.steps {
            let inputs = known.read_known(wiring);
            let mut clock = Clock::start(channel);
            let made = self.prepare_step(&mut clock, step, inputs.as_ref());
            self.computed.push(clock.stop(name, protocol, Phase::Offline));
            let (material, share) = made.map_err(ExecutionError::step(name))?;
            known.write_known(wiring, share);
            materials.push(material);
        }
        channel.flush()?;
        Ok(PreparedServer(materials))
    }

    /// Makes a step's material. `inputs` are the server's shares of what it reads, if they are known before the network's
    /// input; the second result is its share of what it makes, if that is known.
    fn prepare_step(
        &mut self,
        channel: &mut dyn Channel,
        step: &Step,
        inputs: Option<&Inputs>,
    ) -> Result<(Material, Option<Share>), ProtocolError> {
        let known = inputs.ok_or(ProtocolError::Shape { what: "a share known ahead of time" });
        Ok(match step {
            Step::Linear(layer) => {
                let material = layer.offline(channel, &self.keys, &mut self.rng)?;
                let share = material.share().clone();
                (Material::Linear(material), Some(share))
            }
            Step::Square(square) => {
                let material = square.offline(channel, &self.keys, known?.one()?, &mut self.rng)?;
                let share = material.share().clone();
                (Material::Square(material), Some(share))
            }
            Step::Local(local) => {
                (Material::None, inputs.map(|inputs| local.apply(&inputs.all())).transpose()?)
            }
            Step::Remask { ring, values } => {
                let fresh = Share::random(*ring, *values, &mut self.rng);
                (Material::Remask(fresh.clone()), Some(fresh))
            }
            Step::Yao(layer) => {
                let material = layer.offline(channel, &mut self.garbling, known?.one()?, &mut self.rng)?;
                (Material::Yao(material), None)
            }
            Step::ArgMax(layer) => {
                let material = layer.offline(channel, &mut self.garbling, known?.one()?, &mut self.rng)?;
                (Material::ArgMax(material), None)
            }
            Step::Reveal => (Material::None, None),
        })
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
        let model = Arc::clone(&self.model);
        let mut values = Values::new(Share::zero(model.input.0, model.input.1));
        self.computed.clear();
        for (Planned { name, protocol, wiring, step }, material) in model.steps.iter().zip(prepared.0) {
            let inputs = values.read(wiring)?;
            let mut clock = Clock::start(channel);
            let made = self.predict_step(&mut clock, step, material, &inputs);
            self.computed.push(clock.stop(name, protocol, Phase::Online));
            if let Some(share) = made.map_err(ExecutionError::step(name))? {
                values.write(wiring, share);
            }
        }
        channel.flush()?;
        Ok(())
    }

    /// Runs a step; the result is the server's share of what it makes, unless that is the client's alone.
    fn predict_step(
        &mut self,
        channel: &mut dyn Channel,
        step: &Step,
        material: Material,
        inputs: &Inputs,
    ) -> Result<Option<Share>, ProtocolError> {
        Ok(match (step, material) {
            (Step::Linear(layer), Material::Linear(material)) => {
                Some(layer.online(channel, &self.keys, material, inputs.one()?)?)
            }
            (Step::Square(square), Material::Square(material)) => {
                Some(square.online(channel, &self.keys, material)?)
            }
            (Step::Local(local), _) => Some(local.apply(&inputs.all())?),
            (Step::Remask { .. }, Material::Remask(fresh)) => {
                Some(remask::server(channel, inputs.one()?, fresh)?)
            }
            (Step::Yao(layer), Material::Yao(material)) => {
                Some(layer.online(channel, &self.garbling, material)?)
            }
            (Step::ArgMax(layer), Material::ArgMax(material)) => {
                layer.online(channel, &self.garbling, material)?;
                None
            }
            (Step::Reveal, _) => {
                remask::reveal(channel, inputs.one()?)?;
                None
            }
            _ => return Err(ProtocolError::Shape { what: "material of another step" }),
        })
    }
}
