//! A chain of layers as one step, in which the client's part is checked as a whole.

use lanner_bfv::ParameterSet;
use lanner_hardened::{self as hardened, Told, Whole};
use lanner_network::{Evidence, FixedNode, FixedOp, LinearWeights, Network, Policy, PublicNetwork};
use lanner_primitives::Ring;
use lanner_protocol::Protocol;

use super::saturation::UpperBound;
use super::{OUTPUT, convolution, ring, unsupported, unsupported_input, windows};
use crate::built::layer as layer_of;
use crate::fuse::Fused;
use crate::limits::{Limits, Totals, check_memory, has_no_checked_circuit};
use crate::{BuiltPlan, Choices, Item, Mode, Plan, PlanError, Step};

/// The set of all ciphertexts: masks of 128 checks have room there.
const SET: ParameterSet = ParameterSet::B;

/// Plans a network.
///
/// # Errors
/// As [`super::plan_within`].
pub(super) fn plan(
    network: &PublicNetwork,
    policy: Policy,
    choices: &Choices,
    bounds: &[UpperBound],
    limits: &Limits,
) -> Result<(Plan, BuiltPlan), PlanError> {
    if !bounds.is_empty() {
        let reason = "mode hardened tells no more than the result".to_owned();
        return Err(PlanError::Saturation { reason, fix: "choose a mode that does not check its clients" });
    }
    let told = match policy {
        Policy::Label => Told::Label,
        Policy::Labels => Told::Positive,
        Policy::TopK { k } => Told::TopK(k as usize),
        Policy::Logits | Policy::Value => Told::Scores,
        Policy::Probability { .. } | Policy::LabelMap { .. } => {
            return Err(has_no_checked_circuit(policy));
        }
    };
    let input = network.input();
    let Ring::Prime(prime) = ring(input.accumulator) else {
        return Err(unsupported_input(network, "mode hardened computes modulo a prime"));
    };
    let values = input.high.abs_diff(input.low).saturating_add(1);
    if !values.is_power_of_two() || values < 2 {
        let reason = format!(
            "in mode hardened the number of input integers must be a power of two, because clients commit to bits; here it is {values}"
        );
        return Err(unsupported_input(network, &reason));
    }
    let whole = hardened::Network {
        set: SET,
        prime,
        low: input.low,
        bits: values.ilog2(),
        layers: layers(network, prime)?,
        told,
    };
    let step = Step {
        name: OUTPUT.to_owned(),
        inputs: vec![0],
        protocol: Protocol::Hardened(Whole { network: whole }),
    };
    let mut totals = Totals::new(Mode::Hardened, *limits);
    totals.add(&step.name, step.protocol.spec().work())?;
    let input = (Ring::Prime(prime), input.len());
    let Choices { designs, samples, saturation, .. } = choices.clone();
    let items = vec![Item::Step(step)];
    let plan = Plan { mode: Mode::Hardened, designs, policy, samples, saturation, input, items };
    let built = plan.build()?;
    check_memory(&built.memory()?, limits)?;
    Ok((plan, built))
}

/// The network as a chain of layers with circuits between.
fn layers(network: &PublicNetwork, prime: u64) -> Result<Vec<hardened::Layer>, PlanError> {
    let mut layers: Vec<hardened::Layer> = Vec::new();
    let nodes = network.nodes();
    let (mut index, mut summed) = (0, None);
    while index < nodes.len() {
        let node = &nodes[index];
        if node.inputs != [index] {
            return Err(unsupported(
                node,
                "mode hardened takes chains of layers, without branches".to_owned(),
            ));
        }
        if ring(node.accumulator) != Ring::Prime(prime) {
            return Err(unsupported(node, "mode hardened computes modulo one prime".to_owned()));
        }
        let open = layers.last().is_none_or(|layer| layer.activation.is_some());
        match &node.op {
            FixedOp::Reshape => index += 1,
            FixedOp::Linear { picks: true, .. } => {
                let reason = "mode hardened has no layers that pick elements".to_owned();
                return Err(unsupported(node, reason));
            }
            FixedOp::Conv2d(_) | FixedOp::Linear { .. } if open => {
                let (shape, node) = (convolution(node, network.shape(index))?, node.name.clone());
                layers.push(hardened::Layer { node, summed: summed.take(), shape, activation: None });
                index += 1;
            }
            FixedOp::SumPool(window) if open && summed.is_none() => {
                summed = Some(windows(network.shape(index), window));
                index += 1;
            }
            FixedOp::Conv2d(_) | FixedOp::Linear { .. } => {
                let reason = "mode hardened needs an activation or a rescale between layers".to_owned();
                return Err(unsupported(node, reason));
            }
            _ if open => return Err(lacks(node)),
            _ => {
                let chain = nodes[index..].iter().enumerate();
                let chain = chain.take_while(|(ahead, node)| node.inputs == [index + ahead]);
                let (fused, count) = Fused::run(chain.map(|(_, node)| &node.op), network.shape(index));
                if count == 0 {
                    return Err(lacks(node));
                }
                if let Some(layer) = layers.last_mut() {
                    let Fused { function, windows, .. } = fused;
                    layer.activation = Some(hardened::Activation { function, windows });
                }
                index += count;
            }
        }
    }
    match (layers.last(), nodes.last()) {
        (last, Some(node)) if summed.is_some() || last.is_none_or(|last| last.activation.is_some()) => {
            Err(unsupported(
                node,
                "mode hardened expects the network to end with a convolution or a fully connected layer"
                    .to_owned(),
            ))
        }
        _ => Ok(layers),
    }
}

fn lacks(node: &FixedNode) -> PlanError {
    unsupported(node, format!("mode hardened cannot compute {} at this place", node.op.name()))
}

/// Checks that weights are as small as checks take them, and that every sum of a network is proved to stay where circuits read it alike, whichever of two representatives a client commits.
///
/// # Errors
/// [`PlanError::Unsupported`] naming the node whose weights or sums may be beyond.
pub fn check_sums(network: &Network, plan: &Plan) -> Result<(), PlanError> {
    for step in plan.steps() {
        let Protocol::Hardened(Whole { network: whole }) = &step.protocol else { continue };
        for layer in &whole.layers {
            let nodes = network.public().nodes();
            let Some(index) = nodes.iter().position(|node| node.name == layer.node) else { continue };
            let (node, value) = (&nodes[index], &network.values()[index + 1]);
            let weights = network.weights(index).map_or(&[][..], LinearWeights::weight);
            if weights.iter().any(|weight| weight.unsigned_abs() > hardened::MOST_WEIGHT.into()) {
                let reason = format!(
                    "a weight is too large; mode hardened accepts integer weights up to {}",
                    hardened::MOST_WEIGHT
                );
                return Err(unsupported(node, reason));
            }
            if value.evidence != Evidence::Proved {
                let reason =
                    "its sums are not proved to fit for every input, which mode hardened requires".to_owned();
                return Err(unsupported(node, reason));
            }
            let shift = layer.activation.as_ref().map_or(0, |activation| activation.function.shift);
            let bound = hardened::bound(whole.prime, shift).map_err(|source| layer_of(&node.name, source))?;
            if value.high.max(-value.low) >= i128::from(bound) {
                let reason = format!(
                    "its sums may reach {}; mode hardened accepts sums below {bound}",
                    value.high.max(-value.low)
                );
                return Err(unsupported(node, reason));
            }
        }
    }
    Ok(())
}
