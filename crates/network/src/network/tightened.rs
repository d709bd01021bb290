//! Smaller rings for what is rescaled in front of functions, and for products: no bit is compared or multiplied that a value cannot have.

use std::collections::BTreeMap;

use super::rebuilt::Rebuilt;
use super::{Calibrated, Evidence, FixedNode, FixedOp, Network};
use crate::CompileError;
use crate::accumulator::Accumulator;

/// How many times what calibration saw of a product there is room for where sums before it are calibrated, too.
const ROOM_FOR_PRODUCTS: i128 = 4;

/// What a node becomes.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// The same in a smaller ring.
    In(Accumulator),
    /// A positive part in a smaller ring, which returns to its own; its value there is read by the node that is given, too.
    Positive { ring: Accumulator, size: Option<usize> },
    /// The same of what is left of its inputs in a smaller ring.
    Of(Accumulator),
}

impl Network {
    /// The network in which a rescale in front of functions and positive parts alone leaves its values in the ring that has the bits which are left of
    /// them: what functions and positive parts make of them is in the rings that it was in. All integers are the same.
    ///
    /// An absolute value, twice the positive part less the value, stays in the small ring with it. A product that is rescaled next is in the smallest ring
    /// with room for twice what calibration saw of it, for four times that where
    /// more follows from what calibration saw before, or for what is proved.
    ///
    /// Networks that repeat stay as they are: what calibration saw differs from step to step.
    ///
    /// # Errors
    /// [`CompileError::Network`]; never for a checked network.
    pub fn tightened(&self) -> Result<Self, CompileError> {
        let old = &self.public;
        let mut changes = BTreeMap::new();
        for node in 0..old.nodes().len() {
            changes.extend(self.changes(node).or_else(|| self.product_changes(node)).into_iter().flatten());
        }
        if changes.is_empty() || !old.repeats().is_empty() {
            return Ok(self.clone());
        }
        let mut made = Rebuilt::new(self.seen(0));
        // Of each value where it is now, and of positive parts where they are in the small ring.
        let (mut places, mut small) = (vec![0], BTreeMap::new());
        for (index, node) in old.nodes().iter().enumerate() {
            let place = |value: &usize| small.get(&(*value, index)).copied().unwrap_or(places[*value]);
            let mut inputs: Vec<usize> = node.inputs.iter().map(place).collect();
            let ring = match changes.get(&index) {
                Some(Change::In(ring) | Change::Of(ring) | Change::Positive { ring, .. }) => *ring,
                None => node.accumulator,
            };
            if let Some(Change::Of(ring)) = changes.get(&index) {
                for (number, (input, value)) in inputs.iter_mut().zip(&node.inputs).enumerate() {
                    let (name, shape) = (format!("{}/factor{number}", node.name), old.shape(*value).to_vec());
                    let narrow = FixedNode {
                        name,
                        op: FixedOp::Narrow,
                        inputs: vec![*input],
                        shape,
                        accumulator: *ring,
                    };
                    *input = made.push(narrow, Calibrated { saturates: false, ..self.seen(*value) });
                }
            }
            if let Some(weights) = self.weights.get(&index) {
                made.weights.insert(made.nodes.len(), weights.clone());
            }
            let seen = self.seen(index + 1);
            let changed = |name: String, op: FixedOp, inputs, accumulator| FixedNode {
                name,
                op,
                inputs,
                shape: node.shape.clone(),
                accumulator,
            };
            let mut value = made.push(changed(node.name.clone(), node.op.clone(), inputs, ring), seen);
            if let Some(Change::Positive { size, .. }) = changes.get(&index) {
                let (name, same) = (format!("{}/wide", node.name), FixedOp::Rescale { shift: 0 });
                value = made.push(changed(name, same, vec![value], node.accumulator), self.seen(index + 1));
                if let Some(size) = size {
                    let name = format!("{}/narrow", node.name);
                    let narrow = changed(name, FixedOp::Narrow, vec![value], ring);
                    small.insert((index + 1, *size), made.push(narrow, self.seen(index + 1)));
                }
            }
            places.push(value);
        }
        Self::repeating(old.input().clone(), made.nodes, old.ending(), made.weights, made.seen)
    }

    /// What a rescale, if it is one, and those who read it become in its small ring; nothing unless all of them can.
    fn changes(&self, rescale: usize) -> Option<Vec<(usize, Change)>> {
        let (network, value) = (&self.public, rescale + 1);
        let node = &network.nodes()[rescale];
        let FixedOp::Rescale { shift: shift @ 1.. } = node.op else { return None };
        let (before, after) = (network.accumulator(node.inputs[0]), node.accumulator);
        if !before.is_power_of_two() || !after.is_power_of_two() {
            return None;
        }
        let mut small = Accumulator::small_powers_of_two().chain(Accumulator::powers_of_two());
        let ring = small.find(|ring| ring.bits() + shift == before.bits() && ring.bits() < after.bits())?;
        let (input, room) = (node.inputs[0], (ring.limit(0) << shift) - 1);
        let report = &self.values[input];
        let [low, high] = report.calibrated;
        let has_room = 2 * high.max(-low) <= room && self.is_cut(input);
        if report.high.max(-report.low) > room && !has_room {
            return None;
        }
        let mut changes = vec![(rescale, Change::In(ring))];
        let users: Vec<usize> = network.users(value).collect();
        if users.is_empty() {
            return None;
        }
        for &user in &users {
            match &network.nodes()[user].op {
                FixedOp::Relu => {
                    changes.push((user, Change::Positive { ring, size: self.size(&users, user) }));
                }
                FixedOp::Function(_) if self.takes(user, ring) => {}
                // A sign that is part of an absolute value.
                FixedOp::Scale { factor: -1 } => {
                    let size = users.iter().find_map(|positive| self.size(&users, *positive))?;
                    let is_part = network.nodes()[size].inputs.contains(&(user + 1));
                    if !is_part || !network.users(size + 1).all(|reader| self.takes(reader, ring)) {
                        return None;
                    }
                    changes.extend([user, size].map(|node| (node, Change::In(ring))));
                }
                _ => return None,
            }
        }
        Some(changes)
    }

    /// What a product, if it is one, and the movements behind it become in the smallest ring with room for it; nothing unless all of that is rescaled next.
    fn product_changes(&self, product: usize) -> Option<Vec<(usize, Change)>> {
        let (network, value) = (&self.public, product + 1);
        let node = &network.nodes()[product];
        if !matches!(node.op, FixedOp::Mul | FixedOp::MatrixProduct { .. })
            || !node.accumulator.is_power_of_two()
        {
            return None;
        }
        let (mut changed, mut shift) = (vec![product], 0);
        let mut next = 0;
        while let Some(node) = changed.get(next) {
            next += 1;
            for user in network.users(node + 1) {
                match network.nodes()[user].op {
                    FixedOp::Reshape | FixedOp::Transpose { .. } | FixedOp::Slice { .. } => {
                        changed.push(user);
                    }
                    FixedOp::Rescale { shift: by @ 1.. } => shift = shift.max(by),
                    _ => return None,
                }
            }
        }
        let report = &self.values[value];
        let [low, high] = report.calibrated;
        let (seen, known) = (high.max(-low), report.high.max(-report.low));
        let need = match report.evidence {
            Evidence::Calibrated => 2 * seen,
            Evidence::Implied => known.min(ROOM_FOR_PRODUCTS * seen),
            Evidence::Proved => known,
        };
        let ring = Accumulator::powers_of_two().find(|ring| ring.limit(shift) >= need)?;
        let is_smaller = ring.bits() < node.accumulator.bits() && shift > 0;
        let behind = changed[1..].iter().map(|node| (*node, Change::In(ring)));
        is_smaller.then(|| [(product, Change::Of(ring))].into_iter().chain(behind).collect())
    }

    /// Whether a value, or what it has the elements of, is a sum that calibration vouches for: what it may be follows from the rings that it enters.
    fn is_cut(&self, value: usize) -> bool {
        let Some(node) = value.checked_sub(1) else { return false };
        let FixedNode { op, inputs, .. } = &self.public.nodes()[node];
        match op {
            FixedOp::Reshape | FixedOp::Transpose { .. } | FixedOp::Slice { .. } => self.is_cut(inputs[0]),
            _ => op.may_grow() && self.values[value].evidence == Evidence::Calibrated,
        }
    }

    /// The node that makes the absolute value of what node `positive` makes the positive part of, if there is one: both are among `users`.
    fn size(&self, users: &[usize], positive: usize) -> Option<usize> {
        let network = &self.public;
        let is_relu = network.nodes()[positive].op == FixedOp::Relu;
        let negated = users.iter().find(|user| network.nodes()[**user].op == FixedOp::Scale { factor: -1 });
        let negated = negated.filter(|_| is_relu)? + 1;
        let mut readers = network.users(negated);
        let size = readers.next().filter(|_| readers.next().is_none())?;
        let FixedNode { op, inputs, .. } = &network.nodes()[size];
        let is_size = *op == FixedOp::Add { factors: [2, 1] } && **inputs == [positive + 1, negated];
        is_size.then_some(size)
    }

    /// Whether a node is a function with a domain that a ring has room for.
    fn takes(&self, node: usize, ring: Accumulator) -> bool {
        let FixedOp::Function(function) = &self.public.nodes()[node].op else { return false };
        i128::from(function.last().max(-function.low)) <= ring.domain_limit()
    }
}
