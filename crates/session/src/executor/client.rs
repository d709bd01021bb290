//! The client's side of a plan.

use std::ops::Range;
use std::sync::Arc;

use lanner_bfv::{GaloisElement, Parameters, SecretKey};
use lanner_graph::PublicNetwork;
use lanner_ot::CotReceiver;
use lanner_plan::{Held, Plan, Protocol};
use lanner_primitives::Prg;
use lanner_protocol::ProtocolError;
use lanner_protocol::convert::remask;
use lanner_protocol::linear::gazelle;
use lanner_protocol::nonlinear::square;
use lanner_protocol::nonlinear::yao::{self, EvaluationSession};
use lanner_share::{Ring, Share};
use lanner_wire::Channel;

use super::cost::Meter;
use super::local::Local;
use super::values::{Inputs, Values, Wiring};
use super::{ExecutionError, Phase, StepCost};

/// A plan as the client executes it.
pub struct ClientPlan {
    parameters: Parameters,
    keys: Vec<GaloisElement>,
    input: (Ring, usize),
    steps: Vec<Planned>,
    runs: Vec<Range<usize>>,
    held: Held,
}

struct Planned {
    name: String,
    protocol: &'static str,
    wiring: Wiring,
    step: Step,
}

enum Step {
    Linear(Box<gazelle::ClientLayer>),
    Square(Box<square::ClientSquare>),
    Local(Local),
    Remask,
    Yao(yao::ClientLayer),
    ArgMax(yao::ClientArgMax),
    Reveal,
}

enum Request {
    None,
    Linear(gazelle::ClientRequest),
    Yao(yao::ClientRequest),
}

enum Material {
    None,
    Linear(gazelle::ClientMaterial),
    Yao(yao::ClientMaterial),
    ArgMax(yao::ClientArgMaxMaterial),
}

/// The client's one-time material of one prediction, and what making it took.
pub struct Prepared {
    materials: Vec<Material>,
    costs: Vec<StepCost>,
}

/// What the client learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The index of the largest score, ties to the lowest index.
    Label(usize),
    /// Every score, as integers at the network's output scale.
    Logits(Vec<i64>),
}

impl ClientPlan {
    /// Prepares a plan for a network.
    ///
    /// # Errors
    /// [`ExecutionError::Step`] naming a layer that does not fit.
    pub fn new(network: &PublicNetwork, plan: &Plan) -> Result<Self, ExecutionError> {
        let parameters = gazelle::parameters()?;
        let mut steps = Vec::with_capacity(plan.steps.len());
        for (step, wiring) in plan.steps.iter().zip(Wiring::of(plan)) {
            let built = match &step.protocol {
                Protocol::GazelleLinear { shape, prime, kernel } => {
                    let packing = gazelle::packing::Packing::of(shape, parameters.degree(), *kernel);
                    let layer =
                        packing.and_then(|packing| gazelle::ClientLayer::new(&packing, &parameters, *prime));
                    layer.map(|layer| Step::Linear(Box::new(layer)))
                }
                Protocol::GazelleSquare { values, prime } => {
                    let target = square::Target::Shares(*values);
                    let square = square::ClientSquare::new(&target, &parameters, *prime);
                    square.map(|square| Step::Square(Box::new(square)))
                }
                Protocol::SumPool { .. }
                | Protocol::Add { .. }
                | Protocol::Scale { .. }
                | Protocol::Move { .. } => Local::new(network, &step.protocol).map(Step::Local),
                Protocol::Remask { .. } => Ok(Step::Remask),
                Protocol::Yao { function, windows, from, to } => {
                    yao::Layer::new(*function, windows, *from, *to)
                        .map(|layer| Step::Yao(yao::ClientLayer::new(layer)))
                }
                Protocol::YaoArgMax { classes, from } => {
                    yao::ArgMax::new(*classes, *from).map(|layer| Step::ArgMax(yao::ClientArgMax::new(layer)))
                }
                Protocol::Reveal { .. } => Ok(Step::Reveal),
            };
            let built = built.map_err(ExecutionError::step(&step.name))?;
            let (name, protocol) = (step.name.clone(), step.protocol.name());
            steps.push(Planned { name, protocol, wiring, step: built });
        }
        let input = (Ring::Prime(network.input().accumulator.prime()), network.input().len());
        let (keys, runs, held) = (plan.automorphisms(&parameters)?, plan.runs()?, plan.held()?);
        Ok(Self { parameters, keys, input, steps, runs, held })
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
    key: SecretKey,
    evaluation: EvaluationSession<CotReceiver>,
    rng: Prg,
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
        let key = gazelle::send_keys(channel, &plan.parameters, &plan.keys, &mut rng)?;
        let evaluation = EvaluationSession::setup(channel, &mut rng)?;
        let cost = meter.stop(channel, "setup", "setup", Phase::Setup);
        Ok((Self { plan, key, evaluation, rng }, cost))
    }

    /// Offline: makes the material of one prediction.
    ///
    /// # Errors
    /// [`ExecutionError::Step`] naming the layer.
    pub fn prepare(&mut self, channel: &mut dyn Channel) -> Result<Prepared, ExecutionError> {
        let plan = Arc::clone(&self.plan);
        let (mut materials, mut costs) = (Vec::new(), Vec::new());
        for run in &plan.runs {
            let steps = &plan.steps[run.clone()];
            let mut requests = Vec::with_capacity(steps.len());
            for Planned { name, protocol, step, .. } in steps {
                let meter = Meter::start(channel);
                requests.push(self.request(channel, step).map_err(ExecutionError::step(name))?);
                costs.push(meter.stop(channel, name, protocol, Phase::Offline));
            }
            let made = steps.iter().zip(requests).zip(&mut costs[run.clone()]);
            for ((Planned { name, step, .. }, request), cost) in made {
                let meter = Meter::start(channel);
                materials.push(self.receive(channel, step, request).map_err(ExecutionError::step(name))?);
                cost.add(meter.elapsed(channel));
            }
        }
        Ok(Prepared { materials, costs })
    }

    /// Sends what a step begins with.
    fn request(&mut self, channel: &mut dyn Channel, step: &Step) -> Result<Request, ProtocolError> {
        Ok(match step {
            Step::Linear(layer) => Request::Linear(layer.request(channel, &self.key, &mut self.rng)?),
            Step::Square(square) => Request::Linear(square.request(channel, &self.key, &mut self.rng)?),
            Step::Yao(layer) => Request::Yao(layer.request(channel, &mut self.evaluation)?),
            Step::ArgMax(layer) => Request::Yao(layer.request(channel, &mut self.evaluation)?),
            Step::Local(_) | Step::Remask | Step::Reveal => Request::None,
        })
    }

    /// What the server sends for a request.
    fn receive(
        &self,
        channel: &mut dyn Channel,
        step: &Step,
        request: Request,
    ) -> Result<Material, ProtocolError> {
        Ok(match (step, request) {
            (Step::Linear(layer), Request::Linear(request)) => {
                Material::Linear(layer.receive(channel, &self.key, request)?)
            }
            (Step::Square(square), Request::Linear(request)) => {
                Material::Linear(square.receive(channel, &self.key, request)?)
            }
            (Step::Yao(layer), Request::Yao(request)) => {
                Material::Yao(layer.receive(channel, &self.evaluation, request)?)
            }
            (Step::ArgMax(layer), Request::Yao(request)) => {
                Material::ArgMax(layer.receive(channel, request)?)
            }
            _ => Material::None,
        })
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
        let plan = Arc::clone(&self.plan);
        if input.len() != plan.input.1 {
            return Err(ExecutionError::Mismatch { what: "the input's length" });
        }
        let mut values = Values::new(Share::embed(plan.input.0, input));
        let (mut outcome, mut costs) = (None, prepared.costs);
        for (Planned { name, protocol, wiring, step }, material) in plan.steps.iter().zip(prepared.materials)
        {
            let meter = Meter::start(channel);
            let inputs = values.read(wiring)?;
            match self.predict_step(channel, step, material, &inputs).map_err(ExecutionError::step(name))? {
                Value::Shared(share) => values.write(wiring, share),
                Value::Known(known) => outcome = Some(known),
            }
            costs.push(meter.stop(channel, name, protocol, Phase::Online));
        }
        let outcome = outcome.ok_or(ExecutionError::Mismatch { what: "a plan without an output" })?;
        Ok((outcome, costs))
    }

    fn predict_step(
        &mut self,
        channel: &mut dyn Channel,
        step: &Step,
        material: Material,
        inputs: &Inputs,
    ) -> Result<Value, ProtocolError> {
        Ok(match (step, material) {
            (Step::Linear(layer), Material::Linear(material)) => {
                Value::Shared(layer.online(channel, material, inputs.one()?)?)
            }
            (Step::Square(square), Material::Linear(material)) => {
                Value::Shared(square.online(channel, material, inputs.one()?)?)
            }
            (Step::Local(local), _) => Value::Shared(local.apply(&inputs.all())?),
            (Step::Remask, _) => Value::Shared(remask::client(channel, inputs.one()?)?),
            (Step::Yao(layer), Material::Yao(material)) => {
                Value::Shared(layer.online(channel, &self.evaluation, material, inputs.one()?)?)
            }
            (Step::ArgMax(layer), Material::ArgMax(material)) => {
                let label = layer.online(channel, &self.evaluation, material, inputs.one()?)?;
                Value::Known(Outcome::Label(label))
            }
            (Step::Reveal, _) => Value::Known(Outcome::Logits(remask::learn(channel, inputs.one()?)?)),
            _ => return Err(ProtocolError::Shape { what: "material of another step" }),
        })
    }
}

/// What the client holds after a step.
enum Value {
    Shared(Share),
    Known(Outcome),
}
