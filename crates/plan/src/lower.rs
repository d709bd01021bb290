//! From a network to the protocols of a mode.

mod by_transfers;
mod cheetah;
mod chosen;
mod encrypted;
mod forms;
mod function;
mod guards;
mod hardened;
mod lookup;
mod matrices;
mod result;
mod saturation;
mod sparse;
mod spectral;
mod square;

use std::collections::{BTreeMap, HashSet};

use lanner_bfv::ParameterSet;
use lanner_coefficient::delphi;
use lanner_local as local;
use lanner_local::reshare::Reshare;
use lanner_network::{Accumulator, FixedNode, FixedOp, Policy, PublicNetwork, Window};
use lanner_packed::gazelle::packing::Packing;
use lanner_packed::{falcon, gazelle};
use lanner_primitives::Ring;
use lanner_protocol::Protocol;
use lanner_step::{Convolution, Function, Known, ProtocolError, Sets, ValueType, Windows};
use lanner_transfers::{DropGuard, RingChosen};
use lanner_yao as yao;

use self::by_transfers::ByTransfers;
pub use self::function::polynomials;
use self::guards::{DROPPED, Guards};
pub use self::hardened::check_sums;
use self::result::{first_bytes, only_choices_take_transfers};
use self::saturation::UpperBound;
use crate::built::layer as layer_of;
use crate::fuse::Fused;
use crate::layouts::{Layer, Layouts};
use crate::limits::{self, Limits, Totals};
use crate::mode::{self, Between, Design, Kind, NodeDesign, Rules};
use crate::roll::roll;
use crate::{BuiltPlan, Choices, Mode, Plan, PlanError, Samples, Step};

/// Plans a network in a mode for an output policy, within the usual limits.
///
/// # Errors
/// As [`plan_within`].
pub fn plan(network: &PublicNetwork, policy: Policy, mode: Mode) -> Result<Plan, PlanError> {
    plan_within(network, policy, &mode.into(), &Limits::default())
}

/// Plans a network for an output policy, with what is chosen. Limits refuse plans, and change none.
///
/// # Errors
/// [`PlanError`] naming the node or the policy that the mode does not support, or the node that goes beyond a limit.
pub fn plan_within(
    network: &PublicNetwork,
    policy: Policy,
    choices: &Choices,
    limits: &Limits,
) -> Result<Plan, PlanError> {
    build_within(network, policy, choices, limits).map(|(plan, _)| plan)
}

/// As [`plan_within`], with what both parties build.
///
/// # Errors
/// As [`plan_within`].
pub(crate) fn build_within(
    network: &PublicNetwork,
    policy: Policy,
    choices: &Choices,
    limits: &Limits,
) -> Result<(Plan, BuiltPlan), PlanError> {
    let Choices { mode, samples, .. } = *choices;
    let &Design { name, most_samples, rules, .. } = mode.design();
    if samples.count() > most_samples {
        let reason = format!("a request of mode {name} holds at most {most_samples}");
        return Err(PlanError::Samples { samples: samples.count(), reason });
    }
    limits::check(network, policy, choices, limits)?;
    let bounds = saturation::bounds(network, policy, choices)?;
    cheetah::check_rounding(policy, mode)?;
    check_designs(network, choices)?;
    let Some(rules) = rules else {
        return spectral::plan(network, policy, samples, limits);
    };
    refuse_products(network)?;
    if rules.layer == mode::Layer::Checked {
        return hardened::plan(network, policy, choices, &bounds, limits);
    }
    let [narrow, wide] = gazelle::SETS;
    let asked = Asked { network, policy, choices, rules, bounds: &bounds, limits };
    match plan_with(&asked, narrow) {
        Err(error) if error.is_of_noise() => plan_with(&asked, wide),
        planned => planned,
    }
}

/// Checks that there are designs in mode `auto` alone, of nodes that exist and may follow them.
fn check_designs(network: &PublicNetwork, choices: &Choices) -> Result<(), PlanError> {
    let Choices { mode, designs, .. } = choices;
    let names: HashSet<&str> = network.nodes().iter().map(|node| node.name.as_str()).collect();
    let is_node = |name: &str| name == OUTPUT || names.contains(name);
    match designs
        .iter()
        .find(|(name, design)| *mode != Mode::Auto || **design == NodeDesign::Cheetah || !is_node(name))
    {
        Some((name, _)) => Err(PlanError::Design { node: name.clone() }),
        None => Ok(()),
    }
}

/// The name of what tells the result.
pub(crate) const OUTPUT: &str = "output";

/// What is planned.
struct Asked<'n> {
    network: &'n PublicNetwork,
    policy: Policy,
    choices: &'n Choices,
    rules: Rules,
    /// The upper bounds of which the client learns whether any was reached.
    bounds: &'n [UpperBound],
    limits: &'n Limits,
}

/// Plans with this set for the layers that rotate.
fn plan_with(asked: &Asked<'_>, rotating: ParameterSet) -> Result<(Plan, BuiltPlan), PlanError> {
    let planned = |takes_transfers| plan_taking(asked, rotating, takes_transfers);
    let (plan, built) = planned(true)?;
    if !only_choices_take_transfers(&plan, &built)? {
        return Ok((plan, built));
    }
    // Transfers that nothing else takes must be worth their set-up from the first prediction on.
    let (other, without) = planned(false)?;
    Ok(if first_bytes(&without)? < first_bytes(&built)? { (other, without) } else { (plan, built) })
}

/// Plans with transfers that ciphertexts would do without, bits of guard below the result and layers of few entries, or without them.
fn plan_taking(
    asked: &Asked<'_>,
    rotating: ParameterSet,
    takes_transfers: bool,
) -> Result<(Plan, BuiltPlan), PlanError> {
    let &Asked { network, policy, choices, limits, .. } = asked;
    let mut planner = Planner::new(asked, rotating, takes_transfers)?;
    for index in 0..network.nodes().len() {
        if !planner.inside[index] {
            planner.node(index)?;
        }
    }
    planner.output(policy)?;
    let input = network.input();
    let items = roll(network, planner.steps);
    let Choices { mode, designs, samples, saturation } = choices.clone();
    let input = (ring(input.accumulator), samples.times(input.len()));
    let plan = Plan { mode, designs, policy, samples, saturation, input, items };
    let built = plan.build()?;
    built.account()?.check()?;
    limits::check_memory(&built.memory()?, limits)?;
    Ok((plan, built))
}

struct Planner<'n> {
    network: &'n PublicNetwork,
    choices: &'n Choices,
    /// What nodes become that follow no design of their own.
    rules: Rules,
    bounds: &'n [UpperBound],
    sets: Sets,
    /// The set of all layers that rotate, which share their keys.
    rotating: ParameterSet,
    steps: Vec<Step>,
    /// For each value of the network, the plan's latest sharing of it; a value inside a circuit has none.
    values: Vec<Option<usize>>,
    /// For each value of the network, the node that alone reads it.
    only_users: Vec<Option<usize>>,
    /// For each node, whether a circuit that an earlier node began computes it.
    inside: Vec<bool>,
    /// The type of each value of the plan.
    types: Vec<ValueType>,
    /// The layouts of the layers that are computed by rotations.
    layouts: Layouts,
    /// For each node that takes squares as they are computed, the value that is squared.
    squared: BTreeMap<usize, usize>,
    /// For each value of the network, whether the result is made of it without a rescale in between.
    in_result: Vec<bool>,
    /// For each node, the layer that transfers compute for less than ciphertexts.
    sparse: Vec<Option<ByTransfers>>,
    /// For each node, whether it is a product of matrices for ciphertexts, if what follows drops bits of guard.
    matrices: Vec<bool>,
    /// For each node, the step function that it begins with the layer behind, where one step computes both.
    chosen: Vec<Option<Chosen>>,
    /// The bits that sharings have below those of their values.
    guards: Guards,
    /// What the steps so far take.
    totals: Totals,
}

/// Operators in a row that one circuit computes: none, or some.
struct Run {
    nodes: Vec<usize>,
    fused: Fused,
}

/// A run of operators that is the step function, and the layer that alone reads what it makes.
#[derive(Clone, Debug)]
struct Chosen {
    /// The nodes behind the run's first, the layer last.
    behind: Vec<usize>,
    spec: RingChosen,
}

impl Chosen {
    /// The layer.
    fn layer(&self) -> Option<usize> {
        self.behind.last().copied()
    }
}

impl<'n> Planner<'n> {
    fn new(asked: &Asked<'n>, rotating: ParameterSet, takes_transfers: bool) -> Result<Self, PlanError> {
        let &Asked { network, choices, rules, bounds, limits, .. } = asked;
        let sets =
            Sets::new().map_err(|source| PlanError::Layer { node: "parameters".to_owned(), source })?;
        let nodes = network.nodes().len();
        let mut values = vec![None; nodes + 1];
        values[0] = Some(0);
        let input = network.input();
        // The server's share of the input is zero.
        let len = choices.samples.times(input.len());
        let input = ValueType::shared(ring(input.accumulator), len, Known::SERVER);
        let mut planner = Self {
            layouts: layouts(asked, rotating, &sets)?,
            network,
            choices,
            rules,
            bounds,
            sets,
            rotating,
            steps: Vec::new(),
            values,
            in_result: network.in_result(),
            only_users: only_users(network),
            inside: vec![false; nodes],
            types: vec![input],
            squared: BTreeMap::new(),
            sparse: vec![None; nodes],
            matrices: vec![false; nodes],
            chosen: vec![None; nodes],
            guards: Guards::default(),
            totals: Totals::new(choices.mode, *limits),
        };
        planner.matrices = planner.find_matrices()?;
        if takes_transfers
            && network.nodes().iter().any(|node| matches!(node.op, FixedOp::Linear { picks: true, .. }))
        {
            // As they are in ciphertexts.
            planner.guards = planner.find_guards(takes_transfers)?;
        }
        planner.sparse = planner.find_sparse(takes_transfers)?;
        planner.chosen = planner.find_chosen()?;
        planner.guards = planner.find_guards(takes_transfers)?;
        Ok(planner)
    }

    /// What a node becomes, or behind the last what tells the result.
    fn rules(&self, node: usize) -> Rules {
        let name = self.network.nodes().get(node).map_or(OUTPUT, |node| &node.name);
        self.choices.designs.get(name).map_or(self.rules, |design| design.rules())
    }

    /// Adds a step; returns the value that it makes.
    fn push(
        &mut self,
        name: &str,
        inputs: Vec<usize>,
        protocol: impl Into<Protocol>,
    ) -> Result<usize, PlanError> {
        let (mut protocol, types) = (protocol.into(), inputs.iter().map(|input| self.types[*input]));
        let samples = self.choices.samples;
        if !samples.is_one() {
            let together = protocol.of_samples(samples);
            protocol = together.ok_or_else(|| one_by_one(samples, name))?;
        }
        let spec = protocol.spec();
        self.totals.add(name, spec.work())?;
        let made = spec.infer(&types.collect::<Vec<_>>()).map_err(|source| layer_of(name, source))?;
        self.types.push(made);
        self.steps.push(Step { name: name.to_owned(), inputs, protocol });
        Ok(self.steps.len())
    }

    /// The plan's value of a value of the network, which an earlier node made.
    fn value(&self, node: &FixedNode, value: usize) -> Result<usize, PlanError> {
        self.values[value]
            .ok_or_else(|| unsupported(node, "another node reads a value inside its circuit".to_owned()))
    }

    fn node(&mut self, index: usize) -> Result<(), PlanError> {
        let network = self.network;
        let node = &network.nodes()[index];
        if let Some(input) = self.squared.remove(&index) {
            return self.squares_and_layer(index, input);
        }
        let ring = widened(ring(node.accumulator), self.guards.of(index + 1));
        let inputs = self.inputs(index)?;
        let shape = network.shape(node.inputs[0]);
        let values = node.len();
        let protocol = match &node.op {
            FixedOp::SumPool(window) => local::SumPool { windows: windows(shape, window), ring }.into(),
            FixedOp::Add { factors } => local::Add { factors: *factors, values, ring }.into(),
            FixedOp::Bias { .. } => {
                let guard = self.guards.of(index + 1);
                local::Bias { guard, values, ring, samples: Samples::ONE }.into()
            }
            FixedOp::Scale { factor } => local::Scale { factor: *factor, values, ring }.into(),
            FixedOp::Narrow => self.narrow(index)?,
            FixedOp::Reshape => {
                self.values[index + 1] = Some(inputs[0]);
                return Ok(());
            }
            FixedOp::Transpose { .. }
            | FixedOp::Slice { .. }
            | FixedOp::Pad { .. }
            | FixedOp::Concat { .. } => local::Move { values, ring, samples: Samples::ONE }.into(),
            FixedOp::Conv2d(_) | FixedOp::Linear { .. } => self.linear(index, convolution(node, shape)?)?,
            FixedOp::Square if !self.rules.layer.has_slots() => cheetah::square(node)?,
            FixedOp::Square => return self.square(index, inputs[0]),
            FixedOp::Mul | FixedOp::MatrixProduct { .. } => return self.add_product(index, inputs),
            FixedOp::Function(_) | FixedOp::Rescale { .. } if self.add_function(index, inputs[0])? => {
                return Ok(());
            }
            FixedOp::Relu | FixedOp::Clip(_) | FixedOp::Rescale { .. }
                if self.add_chosen(index, inputs[0])? =>
            {
                return Ok(());
            }
            // Whatever else there is: a circuit computes it, or nothing does.
            _ => return self.circuit(index, inputs[0]),
        };
        let mut made = self.push(&node.name, inputs, protocol)?;
        if self.guards.drops(index + 1) {
            let drop = DropGuard { values, bits: node.accumulator.bits(), guard: DROPPED };
            made = self.push(&node.name, vec![made], drop)?;
        }
        self.values[index + 1] = Some(made);
        Ok(())
    }

    /// The plan's values that a node reads, in the ring of what it makes if it is computed on each party's own share.
    fn inputs(&mut self, index: usize) -> Result<Vec<usize>, PlanError> {
        let node = &self.network.nodes()[index];
        let guard = if Kind::is_local(&node.op) { self.guards.of(index + 1) } else { 0 };
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for value in &node.inputs {
            let (input, bits) = (self.value(node, *value)?, node.accumulator.bits());
            inputs.push(if guard > self.guards.of(*value) {
                let values = self.network.shape(*value).iter().product();
                self.push(&node.name, vec![input], local::Lift { bits, guard, values })?
            } else {
                input
            });
        }
        Ok(inputs)
    }

    /// The operators from node `first` on that one circuit computes: each the only reader of the one before.
    fn run(&self, first: usize) -> Run {
        let network = self.network;
        // What is compared with its bound is a value of the plan.
        let ends = |node: usize| self.bounds.iter().any(|bound| bound.value == node + 1);
        let chain = std::iter::successors(Some(first), |node| {
            self.only_users[node + 1].filter(|user| !self.is_table(*user) && !ends(*node))
        });
        let mut nodes = Vec::new();
        // No further than one circuit goes: a chain may be as long as the network.
        let ops = chain.inspect(|node| nodes.push(*node)).map(|node| &network.nodes()[node].op);
        let (fused, count) = Fused::run(ops, network.shape(network.nodes()[first].inputs[0]));
        nodes.truncate(count);
        Run { nodes, fused }
    }

    /// One circuit for node `first` and those after it that can join it: each the only reader of the one before.
    fn circuit(&mut self, first: usize, input: usize) -> Result<(), PlanError> {
        let network = self.network;
        let Run { nodes, fused } = self.run(first);
        let value = network.nodes()[first].inputs[0];
        let Some(last) = nodes.last().copied() else {
            let node = &network.nodes()[first];
            return Err(unsupported(node, "this mode has no circuit for it".to_owned()));
        };
        let (name, from) = (&network.nodes()[last].name, ring(network.accumulator(value)));
        let to = ring(network.nodes()[last].accumulator);
        let guard = self.guards.of(value);
        let rounding = self.lookup_rounding(&nodes);
        let rings = [widened(from, guard), to];
        let looked_up = if self.rules(first).between == Between::Lookups {
            let whole = network.fills(value, fused.function.shift);
            self.lookup(name, input, &fused, rings, whole, (guard, rounding))?
        } else {
            None
        };
        self.values[last + 1] = Some(if let Some(made) = looked_up {
            made
        } else if let Some(activation) = self.activation(first, &fused, [from, to], guard) {
            self.push(name, vec![input], activation)?
        } else {
            let input = self.reshare_for_all(name, value, input)?;
            let function = Function { shift: fused.function.shift + guard, ..fused.function };
            let from = widened(from, guard);
            let activation = yao::Activation { function, windows: fused.windows, from, to };
            self.push(name, vec![input], activation)?
        });
        for node in &nodes[1..] {
            self.inside[*node] = true;
        }
        Ok(())
    }

    /// A sharing of `value` whose server share is known ahead of time.
    fn reshare(&mut self, name: &str, value: usize) -> Result<usize, PlanError> {
        match self.types[value] {
            ValueType::Shared { ring, len, known } if !known.server => {
                let values = len / self.choices.samples.count();
                self.push(name, vec![value], Reshare { values, ring })
            }
            _ => Ok(value),
        }
    }

    /// As [`Planner::reshare`], of what `input` is in the network: later readers use the sharing that the server knows, too.
    fn reshare_for_all(&mut self, name: &str, value: usize, input: usize) -> Result<usize, PlanError> {
        let input = self.reshare(name, input)?;
        self.values[value] = Some(input);
        Ok(input)
    }

    fn linear(&mut self, index: usize, shape: Convolution) -> Result<Protocol, PlanError> {
        let node = &self.network.nodes()[index];
        let rule = self.rules(index).layer;
        if let Some(layer) = &self.sparse[index] {
            return Ok(layer.protocol(rule == mode::Layer::Ahead));
        }
        match rule {
            mode::Layer::Coefficients => return Ok(self.coefficient_layer(index, shape)?.into()),
            mode::Layer::Ahead => return Ok(delphi::Linear(self.coefficient_layer(index, shape)?).into()),
            mode::Layer::Rotations | mode::Layer::Frequencies | mode::Layer::Checked => {}
        }
        let prime = prime(node)?;
        if let Some(choice) = in_frequencies(rule, &shape, prime, &self.sets) {
            let falcon::Choice { set, variant, .. } = choice;
            return Ok(falcon::Linear { shape, prime, set, variant }.into());
        }
        let kernel = self.layout(node, &shape)?.kernel();
        Ok(gazelle::Linear { shape, prime, set: self.rotating, kernel, samples: Samples::ONE }.into())
    }

    /// The same values in a smaller ring, with the bits of guard that they have.
    fn narrow(&self, index: usize) -> Result<Protocol, PlanError> {
        let node = &self.network.nodes()[index];
        let (input, guard) = (node.inputs[0], self.guards.of(index + 1));
        match [self.network.accumulator(input), node.accumulator].map(|ring_of| widened(ring(ring_of), guard))
        {
            [Ring::Pow2(from), Ring::Pow2(to)] => Ok(local::Narrow { values: node.len(), from, to }.into()),
            _ => Err(unsupported(
                node,
                "it needs rings modulo powers of two, which this mode does not use here".to_owned(),
            )),
        }
    }

    /// The layout of a layer that is computed by rotations.
    fn layout(&self, node: &FixedNode, shape: &Convolution) -> Result<&Packing, PlanError> {
        self.layouts
            .of(shape)
            .ok_or_else(|| unsupported(node, "its size has no ciphertext layout".to_owned()))
    }
}

/// For each value of a network, the node that alone reads it, once.
fn only_users(network: &PublicNetwork) -> Vec<Option<usize>> {
    let mut users = vec![Vec::new(); network.nodes().len() + 1];
    for (index, node) in network.nodes().iter().enumerate() {
        let mut inputs = node.inputs.clone();
        inputs.sort_unstable();
        inputs.dedup();
        for input in inputs {
            users[input].push(index);
        }
    }
    users.iter().map(|users| if let [user] = users[..] { Some(user) } else { None }).collect()
}

/// How a layer is computed in the frequency domain, if the mode has it so and there is a way.
fn in_frequencies(rule: mode::Layer, shape: &Convolution, prime: u64, sets: &Sets) -> Option<falcon::Choice> {
    (rule == mode::Layer::Frequencies).then(|| falcon::cheapest(shape, prime, sets).ok()).flatten()
}

/// The layouts of all linear layers that are computed by rotations, which share their keys.
fn layouts(asked: &Asked<'_>, rotating: ParameterSet, sets: &Sets) -> Result<Layouts, PlanError> {
    let &Asked { network, choices, rules, .. } = asked;
    let (mut nodes, mut layers) = (Vec::new(), Vec::new());
    let takers = square::takers(network);
    for (index, node) in network.nodes().iter().enumerate().filter(|_| rules.layer.has_slots()) {
        if matches!(node.op, FixedOp::Conv2d(_) | FixedOp::Linear { .. }) {
            let shape = convolution(node, network.shape(node.inputs[0]))?;
            let prime = prime(node)?;
            if in_frequencies(rules.layer, &shape, prime, sets).is_none() {
                layers.push(Layer { shape, squared: takers.contains(&index).then_some(prime) });
                nodes.push(node);
            }
        }
    }
    let fits = |packing: &Packing, prime| square::fits(packing, prime, rotating, sets);
    Layouts::choose(&layers, gazelle::SLOTS as usize, choices.samples, MAX_KEYS, fits)
        .map_err(|(index, source)| layer(nodes[index], source))
}

/// Evaluation keys of a session if layouts allow: 30 MB to send in its set-up, and 76 MB for the server to keep.
const MAX_KEYS: usize = 48;

/// Refuses rings modulo products of primes, in which nothing is shared.
fn refuse_products(network: &PublicNetwork) -> Result<(), PlanError> {
    let reason = "only mode spectral computes modulo products of primes";
    match network.nodes().iter().find(|node| node.accumulator.factors().is_some()) {
        Some(node) => Err(unsupported(node, reason.to_owned())),
        None if network.input().accumulator.factors().is_some() => Err(unsupported_input(network, reason)),
        None => Ok(()),
    }
}

/// The ring of shares that an accumulator's values are shared in.
#[must_use]
pub fn ring(accumulator: Accumulator) -> Ring {
    if accumulator.is_power_of_two() {
        Ring::Pow2(accumulator.bits())
    } else {
        Ring::Prime(accumulator.modulus() as u64)
    }
}

/// A ring with bits of guard.
const fn widened(ring: Ring, guard: u32) -> Ring {
    match ring {
        Ring::Pow2(bits) => Ring::Pow2(bits + guard),
        Ring::Prime(_) => ring,
    }
}

/// The prime that a packed layer computes modulo.
fn prime(node: &FixedNode) -> Result<u64, PlanError> {
    match ring(node.accumulator) {
        Ring::Prime(prime) => Ok(prime),
        Ring::Pow2(_) => Err(unsupported(node, "packed layers need a ring modulo a prime".to_owned())),
    }
}

/// Says that a node takes samples one by one.
fn one_by_one(samples: Samples, node: &str) -> PlanError {
    PlanError::Samples {
        samples: samples.count(),
        reason: format!("node `{node}` computes one sample at a time"),
    }
}

fn unsupported(node: &FixedNode, reason: String) -> PlanError {
    PlanError::Unsupported { node: node.name.clone(), operator: node.op.name(), reason }
}

fn unsupported_input(network: &PublicNetwork, reason: &str) -> PlanError {
    let node = network.input().name.clone();
    PlanError::Unsupported { node, operator: "Input", reason: reason.to_owned() }
}

fn layer(node: &FixedNode, source: ProtocolError) -> PlanError {
    layer_of(&node.name, source)
}

/// The shape of a linear node.
///
/// # Errors
/// [`PlanError::Unsupported`] if its input has no such shape.
pub(crate) fn convolution(node: &FixedNode, input: &[usize]) -> Result<Convolution, PlanError> {
    layer_shape(&node.op, input).ok_or_else(|| {
        unsupported(node, format!("its input has shape {input:?}, which does not fit its weights"))
    })
}

/// The shape of a linear operator over an input; `None` if it is not linear or its input has no such shape.
pub(crate) fn layer_shape(op: &FixedOp, input: &[usize]) -> Option<Convolution> {
    match (op, input) {
        (FixedOp::Linear { outputs, .. }, &[inputs]) => Some(Convolution::fully_connected(inputs, *outputs)),
        (FixedOp::Conv2d(geometry), &[in_channels, height, width]) => Some(Convolution {
            in_channels,
            out_channels: geometry.out_channels,
            image: [height, width],
            kernel: geometry.kernel,
            strides: geometry.strides,
            pads: geometry.pads,
            dilations: geometry.dilations,
            groups: geometry.groups,
        }),
        _ => None,
    }
}

/// The windows of a pool over `[channels, height, width]`; a checked network has no other shape there.
pub(crate) fn windows(shape: &[usize], window: &Window) -> Windows {
    let &[channels, height, width] = shape else {
        return Windows::each(shape.iter().product());
    };
    Windows {
        channels,
        image: [height, width],
        kernel: window.kernel,
        strides: window.strides,
        pads: window.pads,
    }
}
