//! The design of each node of a network that comes out best by the estimate.
//!
//! Over powers of two a layer is computed when its input is known or ahead of time, and what is between layers by transfers, lookups or
//! circuits: all on the same shares, so that any mixture is a plan. What a design takes depends on the others: the first transfers of a session
//! pay for their set-up, and rounds of two steps may be one. So whole plans are compared. The search begins where all nodes follow one
//! design, as far as they can, and changes the design of all nodes alike, one kind after the other, as long as that makes the plan better.
//!
//! Times differ between machines. So the plan carries the designs that were chosen, and whoever reads it derives the same steps from them.

use lanner_network::{FixedNode, FixedOp, Policy, PublicNetwork};

use crate::lower::{OUTPUT, build_within};
use crate::mode::{Kind, NodeDesign, TRIED};
use crate::{
    Choices, Designs, Estimate, Kernels, Limits, Link, Mode, PhaseEstimate, Plan, PlanError, Samples,
};

/// What a plan is chosen for; whichever it is, [`Objective::Latency`] decides between equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// Seconds of a prediction, offline and online, with its share of the set-up in a session of [`Objective::PREDICTIONS`].
    Latency,
    /// Seconds from the input to the result, where its material was prepared.
    Online,
    /// Bytes of a prediction, offline and online, with its share of the set-up.
    Bytes,
    /// Bytes that both parties hold for it.
    Memory,
}

impl Objective {
    /// Predictions that share a set-up, for the choice: a handful of sessions with some, and a pairing that is kept for many.
    pub const PREDICTIONS: f64 = 16.0;

    /// What an estimate is worth: the less the better, by the first number, then by the second.
    #[must_use]
    pub fn price(self, estimate: &Estimate) -> [f64; 2] {
        let share = |of: fn(&PhaseEstimate) -> f64| {
            of(&estimate.setup) / Self::PREDICTIONS + of(&estimate.offline()) + of(&estimate.online())
        };
        let seconds = share(|phase| phase.seconds);
        let price = match self {
            Self::Latency => seconds,
            Self::Online => estimate.online().seconds,
            Self::Bytes => share(|phase| phase.bytes as f64),
            Self::Memory => (estimate.memory.of_client() + estimate.memory.of_server()) as f64,
        };
        [price, seconds]
    }
}

/// By what plans are compared.
#[derive(Clone, Debug)]
pub struct Prices {
    /// What operations take.
    pub kernels: Kernels,
    /// What lies between the parties.
    pub link: Link,
    /// What matters.
    pub objective: Objective,
}

/// The best plan of a network over powers of two, for requests of so many samples: of one design, or of a mixture if that is better by a per cent.
///
/// # Errors
/// As [`plan_within`](crate::plan_within) in mode `cheetah`, if there is none in any.
pub fn choose(
    network: &PublicNetwork,
    policy: Policy,
    samples: Samples,
    limits: &Limits,
    prices: &Prices,
) -> Result<(Plan, Estimate), PlanError> {
    let search = Search { network, policy, samples, limits, prices };
    let mut best = search.single();
    let groups = groups(network, policy);
    for (designs, start) in search.starts(&groups).into_iter().take(STARTS) {
        let mixed = search.descend(&groups, designs, start);
        let is_worth_it = |single: &Planned| mixed.price[0] < WORTH * single.price[0];
        if best.as_ref().map_or(true, is_worth_it) {
            best = Ok(mixed);
        }
    }
    best.map(|Planned { plan, estimate, .. }| (plan, estimate))
}

/// What [`choose`] will find, about: the best price without a search.
///
/// # Errors
/// As [`choose`].
pub fn promise(
    network: &PublicNetwork,
    policy: Policy,
    samples: Samples,
    limits: &Limits,
    prices: &Prices,
) -> Result<[f64; 2], PlanError> {
    let search = Search { network, policy, samples, limits, prices };
    let starts = search.starts(&groups(network, policy));
    match (starts.first(), search.single()) {
        (Some((_, mixed)), Ok(single)) if mixed.price < single.price => Ok(mixed.price),
        (Some((_, mixed)), Err(_)) => Ok(mixed.price),
        (_, single) => Ok(single?.price),
    }
}

/// A mixture must come down to so much, of the best before it.
const WORTH: f64 = 0.99;

/// Beginnings that are searched from, the best of them.
const STARTS: usize = 2;

/// Sweeps over all kinds of nodes; most searches end after two.
const SWEEPS: usize = 4;

struct Search<'n> {
    network: &'n PublicNetwork,
    policy: Policy,
    samples: Samples,
    limits: &'n Limits,
    prices: &'n Prices,
}

struct Planned {
    plan: Plan,
    estimate: Estimate,
    price: [f64; 2],
}

impl Search<'_> {
    fn planned(&self, choices: &Choices) -> Result<Planned, PlanError> {
        let Prices { kernels, link, objective } = self.prices;
        let (plan, built) = build_within(self.network, self.policy, choices, self.limits)?;
        let estimate = built.estimate(kernels, *link)?;
        let price = objective.price(&estimate);
        Ok(Planned { plan, estimate, price })
    }

    /// The better of the plans of one design.
    fn single(&self) -> Result<Planned, PlanError> {
        let [transfers, lookups] =
            [TRIED[0], TRIED[1]].map(|mode| self.planned(&Choices { samples: self.samples, ..mode.into() }));
        match (transfers, lookups) {
            (Ok(transfers), Ok(lookups)) if lookups.price < transfers.price => Ok(lookups),
            (Err(_), Ok(lookups)) => Ok(lookups),
            (transfers, _) => transfers,
        }
    }

    /// The beginnings that are plans, the best first: in each, every node follows one design for layers and one for what is between them, if it can.
    fn starts(&self, groups: &[Group]) -> Vec<(Vec<NodeDesign>, Planned)> {
        let layers = [NodeDesign::Cheetah, NodeDesign::Tabula];
        let between = [NodeDesign::Cheetah, NodeDesign::Tabula, NodeDesign::Gazelle];
        let all = layers.into_iter().flat_map(|layer| between.map(|between| (layer, between)));
        let mut starts: Vec<_> = all
            .filter_map(|(layer, between)| {
                let designs: Vec<_> = groups.iter().map(|group| group.nearest(layer, between)).collect();
                let planned = self.planned(&self.mixture(groups, &designs)).ok()?;
                Some((designs, planned))
            })
            .collect();
        starts.sort_by(|(_, a), (_, b)| a.price[0].total_cmp(&b.price[0]));
        starts
    }

    /// The end of a search that begins with these designs and their plan.
    fn descend(&self, groups: &[Group], mut at: Vec<NodeDesign>, mut best: Planned) -> Planned {
        for _ in 0..SWEEPS {
            let mut is_changed = false;
            for (index, group) in groups.iter().enumerate() {
                for design in group.designs {
                    let mut changed = at.clone();
                    changed[index] = *design;
                    if changed == at {
                        continue;
                    }
                    // Beyond a limit, or beyond what the design can do.
                    let Ok(other) = self.planned(&self.mixture(groups, &changed)) else { continue };
                    if other.price < best.price {
                        (at, best, is_changed) = (changed, other, true);
                    }
                }
            }
            if !is_changed {
                break;
            }
        }
        best
    }

    /// The choices in which groups follow these designs.
    fn mixture(&self, groups: &[Group], of: &[NodeDesign]) -> Choices {
        let named = groups.iter().zip(of).filter(|(_, design)| **design != NodeDesign::Cheetah);
        let designs: Designs = named
            .flat_map(|(group, design)| group.names.iter().map(|name| (name.clone(), *design)))
            .collect();
        Choices { designs, samples: self.samples, ..Mode::Auto.into() }
    }
}

/// Nodes of one kind, which follow one design.
struct Group {
    names: Vec<String>,
    designs: &'static [NodeDesign],
}

impl Group {
    /// The design that its nodes follow if layers follow one and what is between them another, as far as they can.
    fn nearest(&self, layer: NodeDesign, between: NodeDesign) -> NodeDesign {
        let design = if self.designs.contains(&NodeDesign::Gazelle) { between } else { layer };
        if self.designs.contains(&design) { design } else { NodeDesign::Cheetah }
    }
}

/// The nodes that have a choice, those of one operator on values of one shape in one ring together.
fn groups(network: &PublicNetwork, policy: Policy) -> Vec<Group> {
    let mut kinds: Vec<(&FixedNode, &[usize], Group)> = Vec::new();
    for (index, node) in network.nodes().iter().enumerate() {
        let designs = NodeDesign::of(&node.op);
        if designs.is_empty() || is_taken_along(network, index) {
            continue;
        }
        let shape = network.shape(node.inputs[0]);
        let alike = |(other, input, _): &&mut (&FixedNode, &[usize], Group)| {
            other.op == node.op && *input == shape && other.accumulator == node.accumulator
        };
        let name = node.name.clone();
        match kinds.iter_mut().find(alike) {
            Some((_, _, group)) => group.names.push(name),
            None => kinds.push((node, shape, Group { names: vec![name], designs })),
        }
    }
    let mut groups: Vec<Group> = kinds.into_iter().map(|(_, _, group)| group).collect();
    if matches!(policy, Policy::Probability { .. }) {
        groups.push(Group {
            names: vec![OUTPUT.to_owned()],
            designs: &[NodeDesign::Cheetah, NodeDesign::Gazelle],
        });
    }
    groups
}

/// Whether a node follows another that has a choice for both, as its only reader. One that begins steps of its own all the same follows cheetah.
fn is_taken_along(network: &PublicNetwork, index: usize) -> bool {
    let is_between = |op: &FixedOp| Kind::of(op) == Kind::Between;
    let Some(before) = network.nodes()[index].inputs[0].checked_sub(1) else { return false };
    let nodes = network.nodes();
    is_between(&nodes[index].op) && is_between(&nodes[before].op) && network.users(before + 1).count() == 1
}
