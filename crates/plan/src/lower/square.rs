//! Squares by encryption: alone, or left to the linear layer behind, which saves a round.

use std::collections::BTreeSet;

use lanner_bfv::ParameterSet;
use lanner_network::{FixedOp, PublicNetwork};
use lanner_packed::gazelle::Linear;
use lanner_packed::gazelle::packing::Packing;
use lanner_packed::square::{Square, SquareLinear, Target};
use lanner_step::{ProtocolError, Sets};

use super::{Planner, convolution, in_frequencies, layer, prime};
use crate::{PlanError, Samples};

impl Planner<'_> {
    /// The square at node `index` of a value of the plan.
    pub(super) fn square(&mut self, index: usize, input: usize) -> Result<(), PlanError> {
        let node = &self.network.nodes()[index];
        let input = self.reshare_for_all(&node.name, node.inputs[0], input)?;
        if !self.leave_to_layer(index, input)? {
            let square = Square { values: node.len(), prime: prime(node)?, set: self.rotating };
            let square = self.push(&node.name, vec![input], square)?;
            self.values[index + 1] = Some(square);
        }
        Ok(())
    }

    /// The layer at node `index`, which takes the squares of `input` as they are computed.
    pub(super) fn squares_and_layer(&mut self, index: usize, input: usize) -> Result<(), PlanError> {
        let node = &self.network.nodes()[index];
        let shape = convolution(node, self.network.shape(node.inputs[0]))?;
        let (kernel, prime) = (self.layout(node, &shape)?.kernel(), prime(node)?);
        let layer = Linear { shape, prime, set: self.rotating, kernel, samples: Samples::ONE };
        self.values[index + 1] = Some(self.push(&node.name, vec![input], SquareLinear(layer))?);
        Ok(())
    }

    /// Leaves the square of `input` at node `index` to the layer that alone takes it, if the parameters have room for both.
    fn leave_to_layer(&mut self, index: usize, input: usize) -> Result<bool, PlanError> {
        let network = self.network;
        let Some(taker) = taker(network, index) else { return Ok(false) };
        let node = &network.nodes()[taker];
        let (shape, prime) = (convolution(node, network.shape(node.inputs[0]))?, prime(node)?);
        if in_frequencies(self.rules.layer, &shape, prime, &self.sets).is_some() {
            return Ok(false);
        }
        let fits = fits(self.layout(node, &shape)?, prime, self.rotating, &self.sets);
        if !fits.map_err(|source| layer(node, source))? {
            return Ok(false);
        }
        self.squared.insert(taker, input);
        let mut between = node.inputs[0];
        while between != index + 1 {
            self.inside[between - 1] = true;
            between = network.nodes()[between - 1].inputs[0];
        }
        Ok(true)
    }
}

/// The linear layers that could take squares as they are computed.
pub(super) fn takers(network: &PublicNetwork) -> BTreeSet<usize> {
    let squares = (0..network.nodes().len()).filter(|node| network.nodes()[*node].op == FixedOp::Square);
    squares.filter_map(|square| taker(network, square)).collect()
}

/// The linear layer that is the only reader of a node's value, reshapes aside.
fn taker(network: &PublicNetwork, node: usize) -> Option<usize> {
    let mut users = network.users(node + 1);
    let user = users.next().filter(|_| users.next().is_none())?;
    match network.nodes()[user].op {
        FixedOp::Conv2d(_) | FixedOp::Linear { .. } => Some(user),
        FixedOp::Reshape => taker(network, user),
        _ => None,
    }
}

/// Whether the parameters have room for squares and the layer that takes them in this layout.
pub(super) fn fits(
    packing: &Packing,
    prime: u64,
    set: ParameterSet,
    sets: &Sets,
) -> Result<bool, ProtocolError> {
    Target::Layer(Box::new(packing.clone())).fits(sets.get(set)?, prime)
}
