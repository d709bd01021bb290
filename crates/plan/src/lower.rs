//! From a network to the protocols of mode gazelle.

use std::collections::BTreeSet;

use lanner_graph::{FixedNode, FixedOp, Policy, PublicNetwork, Window};
use lanner_protocol::linear::Convolution;
use lanner_protocol::linear::gazelle::packing::{Packing, Rotation};
use lanner_protocol::nonlinear::windows::Windows;

use crate::fuse::Fused;
use crate::{Mode, Plan, PlanError, Protocol, Step, limits};

/// Slots of the ciphertexts of parameter set B.
pub(crate) const SLOTS: usize = 8192;

/// Plans a network in mode gazelle for an output policy.
///
/// # Errors
/// [`PlanError`] naming the node or the policy that the mode does not support.
pub fn plan(network: &PublicNetwork, policy: Policy) -> Result<Plan, PlanError> {
    limits::check(network, policy)?;
    let mut planner = Planner { network, steps: Vec::new(), server_share_known: true, keys: BTreeSet::new() };
    let nodes = network.nodes();
    let mut index = 0;
    while index < nodes.len() {
        index += match planner.circuit(index) {
            0 => planner.local(index)?,
            run => run,
        };
    }
    planner.output(policy)?;
    let plan = Plan { mode: Mode::Gazelle, policy, steps: planner.steps };
    limits::check_held(&plan.held()?)?;
    Ok(plan)
}

struct Planner<'n> {
    network: &'n PublicNetwork,
    steps: Vec<Step>,
    /// Whether the server knows its share of the latest value before the input is known, as garbling needs.
    server_share_known: bool,
    /// The evaluation keys that earlier layers need anyway.
    keys: BTreeSet<Rotation>,
}

impl Planner<'_> {
    fn push(&mut self, name: &str, protocol: Protocol) {
        self.steps.push(Step { name: name.to_owned(), protocol });
    }

    /// A linear layer, a sum pool, or a reshape, which is no step: one node.
    fn local(&mut self, index: usize) -> Result<usize, PlanError> {
        let node = &self.network.nodes()[index];
        let prime = node.accumulator.prime();
        match node.op {
            FixedOp::SumPool(window) => {
                let windows = windows(self.network.shape(index), &window);
                self.push(&node.name, Protocol::SumPool { windows, prime });
            }
            FixedOp::Conv2d(_) | FixedOp::Linear { .. } => {
                let shape = convolution(node, self.network.shape(index))?;
                let packing = self.cheapest(&shape).map_err(|source| layer(node, source))?;
                self.keys.extend(packing.keys());
                self.push(&node.name, Protocol::GazelleLinear { shape, prime, kernel: packing.kernel() });
                self.server_share_known = true;
            }
            _ => {}
        }
        Ok(1)
    }

    /// A run of `MaxPool`, `Relu`, `Clip` and `Rescale` from node `first` on: one circuit. Returns the number of nodes.
    fn circuit(&mut self, first: usize) -> usize {
        let (nodes, shape) = (&self.network.nodes()[first..], self.network.shape(first));
        let (fused, run) = Fused::run(nodes, shape);
        let Some(last) = run.checked_sub(1).map(|last| &nodes[last]) else {
            return 0;
        };
        let (from, to) = (self.network.accumulator(first).prime(), last.accumulator.prime());
        self.remask(&last.name, fused.windows.inputs(), from);
        self.push(&last.name, Protocol::Yao { function: fused.function, windows: fused.windows, from, to });
        self.server_share_known = false;
        run
    }

    fn output(&mut self, policy: Policy) -> Result<(), PlanError> {
        let (values, from) =
            (self.network.output_len(), self.network.accumulator(self.network.nodes().len()).prime());
        match policy {
            Policy::Label if values < 2 => {
                return Err(PlanError::Unsupported {
                    node: "output".to_owned(),
                    operator: "ArgMax",
                    reason: "a label needs at least two scores; choose logits".to_owned(),
                });
            }
            Policy::Label => {
                self.remask("output", values, from);
                self.push("output", Protocol::YaoArgMax { classes: values, from });
            }
            Policy::Logits => self.push("output", Protocol::Reveal { values, from }),
            Policy::Probability { .. } => return Err(PlanError::Policy { policy: "probability" }),
            Policy::TopK { .. } => return Err(PlanError::Policy { policy: "top-k" }),
        }
        Ok(())
    }

    fn remask(&mut self, name: &str, values: usize, prime: u64) {
        if !self.server_share_known {
            self.push(name, Protocol::Remask { values, prime });
        }
    }

    /// The layout that takes the server the least time, counting keys that no earlier layer needs.
    fn cheapest(&self, shape: &Convolution) -> Result<Packing, lanner_protocol::ProtocolError> {
        let layouts = Packing::choices(shape, SLOTS)?;
        let cost = |packing: &Packing| {
            let operations = packing.operations();
            let new_keys = packing.keys().difference(&self.keys).count();
            operations.hoisted_rotations * HOISTED_ROTATION + operations.rotations * ROTATION + new_keys * KEY
        };
        let best = layouts.into_iter().min_by_key(cost);
        best.ok_or(lanner_protocol::ProtocolError::Shape { what: "layouts" })
    }
}

/// Relative costs at N = 8192 with three limbs: of the transforms that dominate each. A key is paid once a session.
const HOISTED_ROTATION: usize = 8;
const ROTATION: usize = 20;
const KEY: usize = 4;

fn layer(node: &FixedNode, source: lanner_protocol::ProtocolError) -> PlanError {
    PlanError::Layer { node: node.name.clone(), source }
}

fn convolution(node: &FixedNode, input: &[usize]) -> Result<Convolution, PlanError> {
    let unsupported =
        |reason: String| PlanError::Unsupported { node: node.name.clone(), operator: node.op.name(), reason };
    match (node.op, input) {
        (FixedOp::Linear { outputs }, &[inputs]) => Ok(Convolution::fully_connected(inputs, outputs)),
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
        (_, shape) => Err(unsupported(format!("the input shape {shape:?} does not fit"))),
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
