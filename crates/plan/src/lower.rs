//! From a network to the protocols of a mode.

mod cheetah;
mod square;

use std::collections::BTreeMap;

use lanner_graph::{Accumulator, FixedNode, FixedOp, Policy, PublicNetwork, Window};
use lanner_protocol::ProtocolError;
use lanner_protocol::linear::gazelle::packing::Packing;
use lanner_protocol::linear::{Convolution, Sets, falcon};
use lanner_protocol::nonlinear::windows::Windows;
use lanner_share::Ring;

use crate::fuse::Fused;
use crate::layouts::{Layer, Layouts};
use crate::protocol::{self, local, packed, share, softmax, yao};
use crate::{Mode, Plan, PlanError, Protocol, Step, limits};

/// Slots of the ciphertexts of parameter set B.
pub(crate) const SLOTS: usize = 8192;

/// Plans a network in a mode for an output policy.
///
/// # Errors
/// [`PlanError`] naming the node or the policy that the mode does not support.
pub fn plan(network: &PublicNetwork, policy: Policy, mode: Mode) -> Result<Plan, PlanError> {
    limits::check(network, policy)?;
    let mut planner = Planner::new(network, mode)?;
    for index in 0..network.nodes().len() {
        if !planner.inside[index] {
            planner.node(index)?;
        }
    }
    planner.output(policy)?;
    let plan = Plan { mode, policy, steps: planner.steps };
    let built = plan.build()?;
    limits::check_held(&built.held())?;
    limits::check_memory(&built.memory()?)?;
    Ok(plan)
}

struct Planner<'n> {
    network: &'n PublicNetwork,
    mode: Mode,
    sets: Sets,
    steps: Vec<Step>,
    /// For each value of the network, the plan's latest sharing of it; a value inside a circuit has none.
    values: Vec<Option<usize>>,
    /// For each node, whether a circuit that an earlier node began computes it.
    inside: Vec<bool>,
    /// For each value of the plan, whether the server knows its share before the input is known, as garbling needs.
    known: Vec<bool>,
    /// The layouts of the layers that are computed by rotations.
    layouts: Layouts,
    /// For each node that takes squares as they are computed, the value that is squared.
    squared: BTreeMap<usize, usize>,
    /// The products and the ciphertexts of earlier layers that no bound on the network's sizes counts.
    products: u64,
    ciphertexts: u64,
}

impl<'n> Planner<'n> {
    fn new(network: &'n PublicNetwork, mode: Mode) -> Result<Self, PlanError> {
        let sets =
            Sets::new().map_err(|source| PlanError::Layer { node: "parameters".to_owned(), source })?;
        let nodes = network.nodes().len();
        let mut values = vec![None; nodes + 1];
        values[0] = Some(0);
        let inside = vec![false; nodes];
        // The server's share of the input is zero.
        let (layouts, squared) = (layouts(network, mode, &sets)?, BTreeMap::new());
        let (steps, products, ciphertexts) = (Vec::new(), 0, 0);
        let known = vec![true];
        Ok(Self {
            network,
            mode,
            sets,
            steps,
            values,
            inside,
            known,
            layouts,
            squared,
            products,
            ciphertexts,
        })
    }

    /// Adds a step; returns the value that it makes.
    fn push(&mut self, name: &str, inputs: Vec<usize>, protocol: Protocol) -> usize {
        let known = protocol.describe().makes_known(inputs.iter().all(|input| self.known[*input]));
        self.steps.push(Step { name: name.to_owned(), inputs, protocol });
        self.known.push(known);
        self.steps.len()
    }

    /// The plan's value of a value of the network, which an earlier node made.
    fn value(&self, node: &FixedNode, value: usize) -> Result<usize, PlanError> {
        self.values[value]
            .ok_or_else(|| unsupported(node, "a value inside a circuit is read elsewhere".to_owned()))
    }

    fn node(&mut self, index: usize) -> Result<(), PlanError> {
        let network = self.network;
        let node = &network.nodes()[index];
        if let Some(input) = self.squared.remove(&index) {
            return self.squares_and_layer(index, input);
        }
        let ring = ring(node.accumulator);
        let inputs =
            node.inputs.iter().map(|value| self.value(node, *value)).collect::<Result<Vec<_>, _>>()?;
        let shape = network.shape(node.inputs[0]);
        let protocol = match &node.op {
            FixedOp::SumPool(window) => {
                Protocol::SumPool(local::SumPool { windows: windows(shape, window), ring })
            }
            FixedOp::Add { factors } => Protocol::Add(local::Add { factors: *factors, ring }),
            FixedOp::Scale { factor } => Protocol::Scale(local::Scale { factor: *factor, ring }),
            FixedOp::Reshape => {
                self.values[index + 1] = Some(inputs[0]);
                return Ok(());
            }
            FixedOp::Transpose { .. }
            | FixedOp::Slice { .. }
            | FixedOp::Pad { .. }
            | FixedOp::Concat { .. } => Protocol::Move(local::Move { node: index, ring }),
            FixedOp::Conv2d(_) | FixedOp::Linear { .. } => self.linear(node, convolution(node, shape)?)?,
            FixedOp::Square if matches!(self.mode, Mode::Cheetah(_)) => cheetah::square(node)?,
            FixedOp::Square => return self.square(index, inputs[0]),
            FixedOp::MaxPool(_)
            | FixedOp::Relu
            | FixedOp::LeakyRelu { .. }
            | FixedOp::Clip { .. }
            | FixedOp::Rescale { .. } => {
                return self.circuit(index, inputs[0]);
            }
        };
        self.values[index + 1] = Some(self.push(&node.name, inputs, protocol));
        Ok(())
    }

    /// One circuit for node `first` and those after it that can join it: each the only reader of the one before.
    fn circuit(&mut self, first: usize, input: usize) -> Result<(), PlanError> {
        let network = self.network;
        let chain = std::iter::successors(Some(first), |node| {
            let mut users = network.users(node + 1);
            users.next().filter(|_| users.next().is_none())
        });
        let nodes: Vec<usize> = chain.collect();
        let value = network.nodes()[first].inputs[0];
        let (fused, run) =
            Fused::run(nodes.iter().map(|node| &network.nodes()[*node].op), network.shape(value));
        let Some(last) = run.checked_sub(1).map(|last| nodes[last]) else {
            let node = &network.nodes()[first];
            return Err(unsupported(node, "no circuit computes it".to_owned()));
        };
        let (name, from) = (&network.nodes()[last].name, ring(network.accumulator(value)));
        let to = ring(network.nodes()[last].accumulator);
        self.values[last + 1] = Some(if let Some(activation) = self.activation(&fused, from, to) {
            self.push(name, vec![input], Protocol::RingActivation(activation))
        } else {
            let input = self.remask(name, input, fused.windows.inputs(), from);
            // Later readers of the value use the sharing that the server knows.
            self.values[value] = Some(input);
            let activation = yao::Activation { function: fused.function, windows: fused.windows, from, to };
            self.push(name, vec![input], Protocol::Yao(activation))
        });
        for node in &nodes[1..run] {
            self.inside[*node] = true;
        }
        Ok(())
    }

    fn output(&mut self, policy: Policy) -> Result<(), PlanError> {
        let last = self.network.nodes().len();
        let (values, from) = (self.network.output_len(), ring(self.network.accumulator(last)));
        let scores = self.value(&self.network.nodes()[last - 1], last)?;
        let protocol = match policy {
            Policy::Logits => Protocol::Reveal(share::Reveal { values, from }),
            Policy::Label => Protocol::YaoArgMax(yao::Classes { classes: values, from }),
            Policy::TopK { k } => Protocol::YaoTopK(yao::Best { classes: values, k: k as usize, from }),
            Policy::Probability { digits } => {
                let missing = || PlanError::Policy {
                    policy: policy.name(),
                    reason: "the network does not tell what its scores are worth; compile it again"
                        .to_owned(),
                };
                let scale = self.network.output_scale().ok_or_else(missing)?;
                Protocol::Softmax(softmax::Likely { classes: values, digits, scale, from })
            }
        };
        // All but the logits come out of a circuit, which is garbled for a share known ahead of time.
        let scores = match policy {
            Policy::Logits => scores,
            _ => self.remask("output", scores, values, from),
        };
        self.push("output", vec![scores], protocol);
        Ok(())
    }

    /// A sharing of `value` whose server share is known ahead of time.
    fn remask(&mut self, name: &str, value: usize, values: usize, ring: Ring) -> usize {
        if self.known[value] {
            value
        } else {
            self.push(name, vec![value], Protocol::Remask(share::Remask { values, ring }))
        }
    }

    fn linear(&mut self, node: &FixedNode, shape: Convolution) -> Result<Protocol, PlanError> {
        if let Mode::Cheetah(rounding) = self.mode {
            return self.coefficient_layer(node, shape, rounding);
        }
        let prime = prime(node)?;
        if let Some(choice) = in_frequencies(self.mode, &shape, prime, &self.sets) {
            let falcon::Choice { set, variant, operations } = choice;
            self.products = self.products.saturating_add(operations.multiplications as u64);
            limits::check_products(node, self.products)?;
            return Ok(Protocol::FalconLinear(protocol::falcon::Linear { shape, prime, set, variant }));
        }
        let kernel = self.layout(node, &shape)?.kernel();
        Ok(Protocol::GazelleLinear(packed::Linear { shape, prime, kernel }))
    }

    /// The layout of a layer that is computed by rotations.
    fn layout(&self, node: &FixedNode, shape: &Convolution) -> Result<&Packing, PlanError> {
        self.layouts.of(shape).ok_or_else(|| unsupported(node, "it has no layout".to_owned()))
    }
}

/// How a layer is computed in the frequency domain, if the mode wants it so and there is a way.
fn in_frequencies(mode: Mode, shape: &Convolution, prime: u64, sets: &Sets) -> Option<falcon::Choice> {
    (mode == Mode::Falcon).then(|| falcon::cheapest(shape, prime, sets).ok()).flatten()
}

/// The layouts of all linear layers that are computed by rotations, which share their keys.
fn layouts(network: &PublicNetwork, mode: Mode, sets: &Sets) -> Result<Layouts, PlanError> {
    let (mut nodes, mut layers) = (Vec::new(), Vec::new());
    let takers = square::takers(network);
    let rotates = !matches!(mode, Mode::Cheetah(_));
    for (index, node) in network.nodes().iter().enumerate().filter(|_| rotates) {
        if matches!(node.op, FixedOp::Conv2d(_) | FixedOp::Linear { .. }) {
            let shape = convolution(node, network.shape(node.inputs[0]))?;
            let prime = prime(node)?;
            if in_frequencies(mode, &shape, prime, sets).is_none() {
                layers.push(Layer { shape, squared: takers.contains(&index).then_some(prime) });
                nodes.push(node);
            }
        }
    }
    let fits = |packing: &Packing, prime| square::fits(packing, prime, sets);
    Layouts::choose(&layers, SLOTS, MAX_KEYS, fits).map_err(|(index, source)| layer(nodes[index], source))
}

/// Evaluation keys of a session if layouts allow: 30 MB to send in its set-up, and 76 MB for the server to keep.
const MAX_KEYS: usize = 48;

/// The ring of shares that an accumulator's values are shared in.
#[must_use]
pub fn ring(accumulator: Accumulator) -> Ring {
    if accumulator.is_power_of_two() {
        Ring::Pow2(accumulator.bits())
    } else {
        Ring::Prime(accumulator.modulus())
    }
}

/// The prime that a packed layer computes modulo.
fn prime(node: &FixedNode) -> Result<u64, PlanError> {
    match ring(node.accumulator) {
        Ring::Prime(prime) => Ok(prime),
        Ring::Pow2(_) => Err(unsupported(node, "slots need a ring modulo a prime".to_owned())),
    }
}

fn unsupported(node: &FixedNode, reason: String) -> PlanError {
    PlanError::Unsupported { node: node.name.clone(), operator: node.op.name(), reason }
}

fn layer(node: &FixedNode, source: ProtocolError) -> PlanError {
    PlanError::Layer { node: node.name.clone(), source }
}

fn convolution(node: &FixedNode, input: &[usize]) -> Result<Convolution, PlanError> {
    match (&node.op, input) {
        (FixedOp::Linear { outputs }, &[inputs]) => Ok(Convolution::fully_connected(inputs, *outputs)),
        (FixedOp::Conv2d(geometry), &[in_channels, height, width]) => Ok(Convolution {
            in_channels,
            out_channels: geometry.out_channels,
            image: [height, width],
            kernel: geometry.kernel,
            strides: geometry.strides,
            pads: geometry.pads,
            dilations: geometry.dilations,
            groups: geometry.groups,
        }),
        (_, shape) => Err(unsupported(node, format!("the input shape {shape:?} does not fit"))),
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
