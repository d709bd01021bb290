//! Functions by polynomials, with the rescale before them, and products of two values.
//!
//! Their protocols are over powers of two. Modes over primes take values there by a circuit, which rescales on the way, and back by another.

use lanner_network::elementwise;
use lanner_network::elementwise::FixedFunction;
use lanner_network::{FixedNode, FixedOp, PublicNetwork};
use lanner_primitives::Ring;
use lanner_protocol::Protocol;
use lanner_step::{Function, Spec, Windows};
use lanner_transfers::{End, Factors, Polynomials, RingFunction, RingProduct};
use lanner_yao as yao;

use super::{Planner, ring, unsupported};
use crate::PlanError;

/// The end of a function's domain that no value lies beyond, where the network says so: of what is taken of absolute values, and of differences from a
/// maximum.
fn known_end(network: &PublicNetwork, node: usize) -> Option<End> {
    let FixedNode { op: FixedOp::Function(function), inputs, .. } = &network.nodes()[node] else {
        return None;
    };
    let sum = network.nodes().get(inputs[0].checked_sub(1)?)?;
    let &FixedOp::Add { factors } = &sum.op else { return None };
    let made = |value: usize| value.checked_sub(1).map(|node| &network.nodes()[node]);
    let negated = made(sum.inputs[1]).filter(|node| node.op == FixedOp::Scale { factor: -1 })?.inputs[0];
    let value = sum.inputs[0];
    match factors {
        // Twice the positive part less the value.
        [2, 1] => {
            let is_part = is_positive_part(network, value, negated);
            (is_part && function.low <= 0).then_some(End::Low)
        }
        // A value less the maximum of its row.
        [1, 1] => {
            let of = made(negated).filter(|node| matches!(node.op, FixedOp::Concat { axis: 1 }));
            let maximum = of.map_or(Some(negated), |node| {
                node.inputs.iter().all(|input| *input == node.inputs[0]).then_some(node.inputs[0])
            })?;
            let FixedNode { op: FixedOp::MaxPool(window), inputs, .. } = made(maximum)? else { return None };
            let shape = network.shape(value);
            let is_row = shape.len() == 3 && window.kernel == [shape[1], shape[2]] && window.pads == [0; 4];
            let is_whole = inputs[0] == value && is_row && network.shape(negated) == shape;
            (is_whole && function.last() >= 0).then_some(End::High)
        }
        _ => None,
    }
}

/// Whether `part` is the positive part of `value`, in its own ring or back from another.
fn is_positive_part(network: &PublicNetwork, mut part: usize, value: usize) -> bool {
    while let Some(FixedNode { op, inputs, .. }) = part.checked_sub(1).map(|node| &network.nodes()[node]) {
        match op {
            FixedOp::Relu => return inputs[0] == value,
            FixedOp::Narrow | FixedOp::Rescale { shift: 0 } => part = inputs[0],
            _ => return false,
        }
    }
    false
}

/// A function and the rescale before it, if nothing else reads what that makes.
pub(super) struct FunctionRun<'n> {
    /// The first and the last of them.
    first: usize,
    pub(super) last: usize,
    function: &'n FixedFunction,
    /// Bits that are dropped first.
    pub(super) shift: u32,
}

impl<'n> Planner<'n> {
    /// What node `first` begins, if that is a function or a rescale that may go with one.
    pub(super) fn function_run(&self, first: usize) -> Option<FunctionRun<'n>> {
        let nodes = self.network.nodes();
        match &nodes[first].op {
            FixedOp::Function(function) => Some(FunctionRun { first, last: first, function, shift: 0 }),
            FixedOp::Rescale { shift } => {
                let mut users = self.network.users(first + 1);
                let last = users.next().filter(|_| users.next().is_none())?;
                let FixedOp::Function(function) = &nodes[last].op else { return None };
                Some(FunctionRun { first, last, function, shift: *shift })
            }
            _ => None,
        }
    }

    /// The step that computes a run of values over a power of two with bits of guard; none if transfers do not.
    pub(super) fn function(&self, run: &FunctionRun<'_>, guard: u32) -> Option<RingFunction> {
        let network = self.network;
        let input = network.nodes()[run.first].inputs[0];
        let rings = [input, run.last + 1].map(|value| ring(network.accumulator(value)));
        let [Ring::Pow2(from), Ring::Pow2(to)] = rings else { return None };
        self.function_between(run, [from + guard, to], run.shift + guard)
    }

    fn function_between(
        &self,
        run: &FunctionRun<'_>,
        [from, to]: [u32; 2],
        shift: u32,
    ) -> Option<RingFunction> {
        let function = polynomials(run.function);
        let values = self.network.nodes()[run.last].len();
        // Bits that are dropped first may be those of a rounded value beyond the end.
        let within = if run.first == run.last { known_end(self.network, run.last) } else { None };
        let step = RingFunction { function, values, from, to, shift, within };
        step.build(&self.sets).is_ok().then_some(step)
    }

    /// Adds the steps of what node `first` begins, a function or a rescale before one; returns whether there are some.
    pub(super) fn add_function(&mut self, first: usize, input: usize) -> Result<bool, PlanError> {
        let network = self.network;
        let Some(run) = self.function_run(first) else { return Ok(false) };
        let node = &network.nodes()[run.last];
        let value = network.nodes()[first].inputs[0];
        let made = if network.accumulator(value).is_power_of_two() {
            let step = self.function(&run, self.guards.of(value));
            let step =
                step.map(|step| self.table(run.last, &step).map_or_else(|| step.into(), Protocol::from));
            step.map(|step| self.push(&node.name, vec![input], step)).transpose()?
        } else {
            let (before, after) = (network.accumulator(node.inputs[0]), node.accumulator);
            let bits = [before, after].map(|ring| wider(ring.bits()));
            match self.function_between(&run, bits, 0) {
                Some(step) => {
                    let input = self.over_power(node, value, run.shift, bits[0])?;
                    let made = self.push(&node.name, vec![input], step)?;
                    Some(self.over_prime(node, made, bits[1])?)
                }
                None => None,
            }
        };
        let Some(made) = made else {
            // A rescale alone may do.
            return if run.last == first {
                Err(unsupported(node, "its range of inputs is too large for its ring".to_owned()))
            } else {
                Ok(false)
            };
        };
        self.inside[run.last] = true;
        self.values[run.last + 1] = Some(made);
        Ok(true)
    }

    /// Adds the product of two values at node `index`.
    pub(super) fn add_product(&mut self, index: usize, inputs: Vec<usize>) -> Result<(), PlanError> {
        let node = &self.network.nodes()[index];
        self.values[index + 1] = Some(match ring(node.accumulator) {
            Ring::Pow2(bits) => self.push(&node.name, inputs, self.product(index, bits)?)?,
            Ring::Prime(_) => {
                let bits = wider(node.accumulator.bits());
                let mut factors = Vec::new();
                for value in &node.inputs {
                    factors.push(self.over_power(node, *value, 0, bits)?);
                }
                let made = self.push(&node.name, factors, self.product(index, bits)?)?;
                self.over_prime(node, made, bits)?
            }
        });
        Ok(())
    }

    /// The product that a node is, modulo `2^bits`.
    fn product(&self, index: usize, bits: u32) -> Result<Protocol, PlanError> {
        let node = &self.network.nodes()[index];
        if node.op == FixedOp::Mul {
            return Ok(RingProduct { values: node.len(), bits }.into());
        }
        self.matrix_product(index, bits)
    }

    /// A value of the network over a prime, rescaled, modulo `2^bits`.
    fn over_power(
        &mut self,
        node: &FixedNode,
        value: usize,
        shift: u32,
        bits: u32,
    ) -> Result<usize, PlanError> {
        let input = self.value(node, value)?;
        let input = self.reshare_for_all(&node.name, value, input)?;
        let from = ring(self.network.accumulator(value));
        let len = self.network.shape(value).iter().product();
        self.circuit_between(node, input, len, shift, [from, Ring::Pow2(bits)])
    }

    /// A value of the plan modulo `2^bits` over a prime.
    fn over_prime(&mut self, node: &FixedNode, value: usize, bits: u32) -> Result<usize, PlanError> {
        let input = self.reshare(&node.name, value)?;
        self.circuit_between(node, input, node.len(), 0, [Ring::Pow2(bits), ring(node.accumulator)])
    }

    fn circuit_between(
        &mut self,
        node: &FixedNode,
        input: usize,
        len: usize,
        shift: u32,
        [from, to]: [Ring; 2],
    ) -> Result<usize, PlanError> {
        let function = Function { shift, ..Function::IDENTITY };
        let activation = yao::Activation { function, windows: Windows::each(len), from, to };
        self.push(&node.name, vec![input], activation)
    }
}

/// A network's function as its protocol takes it.
#[must_use]
pub fn polynomials(function: &FixedFunction) -> Polynomials {
    let FixedFunction { low, bits, ref polynomials, shift, ref factors } = *function;
    let of =
        |factors: &elementwise::Factors| Factors { values: factors.values.clone(), shift: factors.shift };
    let factors = factors.as_ref().map(of);
    Polynomials { low, bits, polynomials: polynomials.clone(), shift, factors }
}

/// Bits of a ring modulo a power of two in which what a prime of so many bits has room for is below a quarter of it.
const fn wider(bits: u32) -> u32 {
    bits + 1
}
