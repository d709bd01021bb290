//! A network of sums and products on ciphertexts: layouts first, then limbs.

use std::sync::Arc;

use lanner_bfv::function_privacy::{Budget, Distance};
use lanner_bfv::{NoiseBound, ParameterSet, Parameters, PlaintextModulus};
use lanner_network::{Field, FixedNode, FixedOp, Policy, PublicNetwork};
use lanner_protocol::Protocol;
use lanner_spectral::{Encrypt, INPUT, Linear, Program, Reveal, Search, Square, largest};
use lanner_step::{Convolution, Encrypted, Known, Samples, ValueType};

use super::{convolution, unsupported, unsupported_input};
use crate::built::layer as layer_of;
use crate::limits::{Limits, Totals, check_memory};
use crate::{Account, BuiltPlan, Designs, Item, Mode, Plan, PlanError, Saturation, Step};

/// The sets that are tried, the cheapest first.
const SETS: [ParameterSet; 3] = [ParameterSet::B, ParameterSet::L, ParameterSet::LPrime];

/// Bits of room below a message that switching to fewer limbs may cost: about what each saves of noise elsewhere.
const SPENT: f64 = 0.5;

/// Plans a network.
///
/// # Errors
/// As [`super::plan_within`].
pub(super) fn plan(
    network: &PublicNetwork,
    policy: Policy,
    samples: Samples,
    limits: &Limits,
) -> Result<(Plan, BuiltPlan), PlanError> {
    if !Mode::Spectral.design().has_policy(policy) {
        return Err(PlanError::Policy {
            policy: policy.name(),
            reason: "mode spectral reveals every score to the client, because ciphertexts cannot be compared"
                .to_owned(),
            fix: format!(
                "compile with {}, or with an interactive mode such as auto",
                Field::OUTPUT.set_to("logits")
            ),
        });
    }
    let layers = layers(network)?;
    let (input, most) = (network.input(), (INPUT.largest() / 2) as i64);
    if input.low < -most || input.high > most {
        return Err(unsupported_input(network, "its values are beyond what a client encrypts"));
    }
    let primes = network.accumulator(0).factors();
    let primes = primes
        .ok_or_else(|| unsupported_input(network, "values on ciphertexts live modulo a product of primes"))?;
    let (mut refused, mut search) = (None, Search::default());
    for set in SETS {
        let chain = match Chain::new(network, &layers, samples, primes, set, &mut search) {
            Ok(chain) => chain,
            Err(error) => {
                refused = Some(error);
                continue;
            }
        };
        for limbs in 2..=chain.parameters.limbs() {
            match chain.steps(limbs) {
                Ok(steps) => return finish(network, policy, samples, limits, steps),
                Err(error) => refused = Some(error),
            }
        }
    }
    Err(refused.unwrap_or_else(|| depth(network)))
}

/// A layer or an activation, and the network's node.
enum Layer {
    Linear(usize, Convolution),
    Square(usize),
}

/// The network as a chain.
fn layers(network: &PublicNetwork) -> Result<Vec<Layer>, PlanError> {
    let mut layers = Vec::new();
    for (index, node) in network.nodes().iter().enumerate() {
        if node.inputs != [index] {
            return Err(unsupported(
                node,
                "mode spectral takes chains of layers, without branches".to_owned(),
            ));
        }
        let shape = network.shape(index);
        match &node.op {
            FixedOp::Conv2d(_) | FixedOp::Linear { .. } => {
                layers.push(Layer::Linear(index, convolution(node, shape)?));
            }
            FixedOp::Square => layers.push(Layer::Square(index)),
            FixedOp::Reshape => {}
            op => {
                let what = format!("mode spectral cannot compute {}", op.name());
                return Err(unsupported(node, what));
            }
        }
    }
    Ok(layers)
}

/// A network's layers with their programs.
struct Chain<'n> {
    network: &'n PublicNetwork,
    layers: &'n [Layer],
    samples: Samples,
    programs: Vec<Arc<Program>>,
    primes: &'static [u64],
    set: ParameterSet,
    parameters: Parameters,
}

impl<'n> Chain<'n> {
    fn new(
        network: &'n PublicNetwork,
        layers: &'n [Layer],
        samples: Samples,
        primes: &'static [u64],
        set: ParameterSet,
        search: &mut Search,
    ) -> Result<Self, PlanError> {
        let linear = |layer: &Layer| match layer {
            Layer::Linear(_, shape) => Some(shape.clone()),
            Layer::Square(_) => None,
        };
        let shapes: Vec<Convolution> = layers.iter().filter_map(linear).collect();
        let programs = Program::chain(&shapes, samples.slots(set.degree()), search);
        let programs = programs.map_err(|source| {
            let (slots, degree) = (samples.slots(set.degree()), set.degree());
            let elements = shapes.iter().map(|shape| shape.inputs().max(shape.outputs().unwrap_or(0))).max();
            match elements.filter(|elements| slots < *elements && *elements <= degree) {
                None => layer_of("network", source),
                Some(elements) => PlanError::Samples {
                    samples: samples.count(),
                    reason: format!("each sample has room for {slots} elements, and a layer has {elements}"),
                },
            }
        })?;
        let programs = programs.into_iter().map(Arc::new).collect();
        let parameters = set.parameters().map_err(|source| layer_of("parameters", source.into()))?;
        Ok(Self { network, layers, samples, programs, primes, set, parameters })
    }

    /// The steps for an input of so many limbs, with as few as noise allows behind each.
    fn steps(&self, limbs: usize) -> Result<Vec<Step>, PlanError> {
        let Self { network, samples, primes, set, .. } = self;
        let samples = *samples;
        let (Some(first), Some(last)) = (self.programs.first(), self.programs.last()) else {
            return Err(depth(network));
        };
        let primes = primes.to_vec();
        let layout = first.from().clone();
        let encrypt = Encrypt { layout, samples, primes: primes.clone(), set: *set, limbs };
        let input = ValueType::shared(INPUT, samples.count() * network.input().len(), Known::SERVER);
        let mut steps = Steps { steps: Vec::new(), value: input };
        steps.push("input", encrypt)?;
        let mut programs = self.programs.iter();
        for layer in self.layers {
            let before = steps.encrypted()?;
            let protocol: Protocol = match layer {
                Layer::Linear(index, _) => {
                    let program = programs.next().ok_or_else(|| depth(network))?;
                    let made = program.noise(before.noise, &self.parameters, &primes, before.limbs);
                    let noise = |behind| made.switched_modulus(&self.parameters, before.limbs, behind);
                    let limbs = [before.limbs, self.fewest(*index, before, noise)?];
                    Linear::new(program, samples, &primes, *set, limbs).into()
                }
                Layer::Square(index) => {
                    let noise = |behind| {
                        Square::noise(before.noise, &self.parameters, &primes, [before.limbs, behind])
                    };
                    let limbs = [before.limbs, self.fewest(*index, before, noise)?];
                    Square { ciphertexts: before.ciphertexts, primes: primes.clone(), set: *set, limbs }
                        .into()
                }
            };
            let (Layer::Linear(index, _) | Layer::Square(index)) = layer;
            steps.push(&network.nodes()[*index].name, protocol)?;
        }
        let scores = steps.encrypted()?;
        let noise_bits = scores.noise.bits();
        let layout = last.to().clone();
        self.check_sealing(&scores)?;
        let (set, limbs) = (*set, scores.limbs);
        steps.push("output", Reveal { layout, samples, primes, set, limbs, noise_bits })?;
        Ok(steps.steps)
    }

    /// The fewest limbs that leave messages nearly as much room as all would, where noise is this for each number of them.
    ///
    /// # Errors
    /// [`PlanError::Unsupported`] naming node `index` if there is no room for messages at all.
    fn fewest(
        &self,
        index: usize,
        before: Encrypted,
        noise: impl Fn(usize) -> NoiseBound,
    ) -> Result<usize, PlanError> {
        let room = |limbs: usize| self.room(&Encrypted { limbs, noise: noise(limbs), ..before });
        let most = room(before.limbs);
        if most.is_nan() || most <= 0.0 {
            return Err(depth_at(self.network, index));
        }
        Ok((1..before.limbs).find(|limbs| room(*limbs) >= most - SPENT).unwrap_or(before.limbs))
    }

    /// Bits between the noise and half a step from one message to the next.
    fn room(&self, value: &Encrypted) -> f64 {
        let needed = value.noise.needed_bits(&self.parameters, largest(self.primes));
        self.parameters.log2_modulus(value.limbs) - needed
    }

    /// Checks that what is left has room for the message and for what hides the noise, over as many predictions as a session's account has.
    fn check_sealing(&self, scores: &Encrypted) -> Result<(), PlanError> {
        let noise = NoiseBound::of_bits(scores.noise.bits());
        let mut all = Distance::default();
        for prime in self.primes {
            let budget = PlaintextModulus::new(&self.parameters, *prime)
                .and_then(|modulus| Budget::at(&modulus, noise, scores.limbs));
            let budget = budget.map_err(|source| layer_of("output", source.into()))?;
            all = all.and(budget.distance().times(scores.ciphertexts as u64));
        }
        let bits = all.times(Account::PREDICTIONS).bits();
        if bits >= Account::BITS {
            return Ok(());
        }
        let ciphertexts = (scores.ciphertexts * self.primes.len()) as u64;
        Err(PlanError::Distance { ciphertexts, bits })
    }
}

/// Steps so far, each of which reads what the one before made.
struct Steps {
    steps: Vec<Step>,
    value: ValueType,
}

impl Steps {
    fn push(&mut self, name: &str, protocol: impl Into<Protocol>) -> Result<(), PlanError> {
        let protocol = protocol.into();
        self.value = protocol.spec().infer(&[self.value]).map_err(|source| layer_of(name, source))?;
        self.steps.push(Step { name: name.to_owned(), inputs: vec![self.steps.len()], protocol });
        Ok(())
    }

    fn encrypted(&self) -> Result<Encrypted, PlanError> {
        ValueType::only_encrypted(&[self.value]).map_err(|source| layer_of("input", source))
    }
}

fn finish(
    network: &PublicNetwork,
    policy: Policy,
    samples: Samples,
    limits: &Limits,
    steps: Vec<Step>,
) -> Result<(Plan, BuiltPlan), PlanError> {
    let mut totals = Totals::new(Mode::Spectral, *limits);
    for step in &steps {
        totals.add(&step.name, step.protocol.spec().work())?;
    }
    let items = steps.into_iter().map(Item::Step).collect();
    let input = (INPUT, samples.count() * network.input().len());
    let designs = Designs::new();
    let saturation = Saturation::new();
    let plan = Plan { mode: Mode::Spectral, designs, policy, samples, saturation, input, items };
    let built = plan.build()?;
    built.account()?.check()?;
    check_memory(&built.memory()?, limits)?;
    Ok((plan, built))
}

/// No parameters have room for all layers.
fn depth(network: &PublicNetwork) -> PlanError {
    let node = &network.nodes()[network.nodes().len() - 1];
    unsupported(node, "the network is too deep for the ciphertexts".to_owned())
}

/// No parameters have room for the layer of node `index`: what is before it fits.
fn depth_at(network: &PublicNetwork, index: usize) -> PlanError {
    let squares = |nodes: &[FixedNode]| nodes.iter().filter(|node| node.op == FixedOp::Square).count();
    let (fit, all) = (squares(&network.nodes()[..index]), squares(network.nodes()));
    let reason = format!(
        "the network is too deep for the ciphertexts: the layers before this one fit, with {fit} of {all} squares"
    );
    unsupported(&network.nodes()[index], reason)
}
