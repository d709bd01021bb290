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
use lanner_protocol::nonlinear::yao::{self, GarblingSession};
use lanner_share::{Ring, Share};
use lanner_wire::Channel;

use super::ExecutionError;

/// A model that is ready to serve: weights encoded once, shared read-only by all sessions.
pub struct ServedModel {
    parameters: Parameters,
    keys: Vec<GaloisElement>,
    input: (Ring, usize),
    steps: Vec<(String, Step)>,
    held: Held,
}

enum Step {
    Linear(Box<gazelle::ServerLayer>),
    SumGroups(Vec<Vec<usize>>),
    Remask { ring: Ring, values: usize },
    Yao(yao::ServerLayer),
    ArgMax(yao::ServerArgMax),
    Reveal,
}

enum Material {
    None,
    Linear(gazelle::ServerMaterial),
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
        for step in &plan.steps {
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
                Protocol::SumPool { windows, .. } => windows.groups().map(Step::SumGroups),
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
            steps.push((step.name.clone(), built));
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
        Ok(Self { model, keys, garbling, rng })
    }

    /// Offline: makes the material of one prediction.
    ///
    /// # Errors
    /// [`ExecutionError::Step`] naming the layer.
    pub fn prepare(&mut self, channel: &mut dyn Channel) -> Result<PreparedServer, ExecutionError> {
        let model = Arc::clone(&self.model);
        let mut known = Some(Share::zero(model.input.0, model.input.1));
        let mut materials = Vec::with_capacity(model.steps.len());
        for (name, step) in &model.steps {
            let material = self.prepare_step(channel, step, &mut known);
            materials.push(material.map_err(ExecutionError::step(name))?);
        }
        channel.flush()?;
        Ok(PreparedServer(materials))
    }

    /// `known` is the server's share of the latest value, where that is known before the input.
    fn prepare_step(
        &mut self,
        channel: &mut dyn Channel,
        step: &Step,
        known: &mut Option<Share>,
    ) -> Result<Material, ProtocolError> {
        Ok(match step {
            Step::Linear(layer) => {
                let material = layer.offline(channel, &self.keys, &mut self.rng)?;
                *known = Some(material.share().clone());
                Material::Linear(material)
            }
            Step::SumGroups(groups) => {
                *known = known.as_ref().map(|share| share.sum_groups(groups)).transpose()?;
                Material::None
            }
            Step::Remask { ring, values } => {
                let fresh = Share::random(*ring, *values, &mut self.rng);
                *known = Some(fresh.clone());
                Material::Remask(fresh)
            }
            Step::Yao(layer) => {
                let share =
                    known.take().ok_or(ProtocolError::Shape { what: "a share known ahead of time" })?;
                Material::Yao(layer.offline(channel, &mut self.garbling, &share, &mut self.rng)?)
            }
            Step::ArgMax(layer) => {
                let share =
                    known.take().ok_or(ProtocolError::Shape { what: "a share known ahead of time" })?;
                Material::ArgMax(layer.offline(channel, &mut self.garbling, &share, &mut self.rng)?)
            }
            Step::Reveal => Material::None,
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
        let mut share = Share::zero(model.input.0, model.input.1);
        for ((name, step), material) in model.steps.iter().zip(prepared.0) {
            share = self.predict_step(channel, step, material, share).map_err(ExecutionError::step(name))?;
        }
        channel.flush()?;
        Ok(())
    }

    fn predict_step(
        &mut self,
        channel: &mut dyn Channel,
        step: &Step,
        material: Material,
        share: Share,
    ) -> Result<Share, ProtocolError> {
        match (step, material) {
            (Step::Linear(layer), Material::Linear(material)) => {
                layer.online(channel, &self.keys, material, &share)
            }
            (Step::SumGroups(groups), _) => Ok(share.sum_groups(groups)?),
            (Step::Remask { .. }, Material::Remask(fresh)) => remask::server(channel, &share, fresh),
            (Step::Yao(layer), Material::Yao(material)) => layer.online(channel, &self.garbling, material),
            (Step::ArgMax(layer), Material::ArgMax(material)) => {
                layer.online(channel, &self.garbling, material)?;
                Ok(share)
            }
            (Step::Reveal, _) => {
                remask::reveal(channel, &share)?;
                Ok(share)
            }
            _ => Err(ProtocolError::Shape { what: "material of another step" }),
        }
    }
}
