//! Builds circuits gate by gate.

use super::allocate::compile;
use super::{Circuit, check_length};
use crate::GcError;

/// A wire of a circuit being built: a node, perhaps inverted, or a public constant.
///
/// Inverters are free, so a wire and its inverse are one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire(u32);

impl Wire {
    /// The public constant zero.
    pub const ZERO: Self = Self(0);
    /// The public constant one.
    pub const ONE: Self = Self(1);

    /// The public constant `bit`.
    #[must_use]
    pub const fn constant(bit: bool) -> Self {
        Self(bit as u32)
    }

    const fn new(node: u32, inverted: bool) -> Self {
        Self(node << 1 | inverted as u32)
    }

    pub(super) const fn node(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(super) const fn inverted(self) -> bool {
        self.0 & 1 == 1
    }

    /// The public constant that the wire is, if it is one.
    const fn as_constant(self) -> Option<bool> {
        if self.0 < 2 { Some(self.0 == 1) } else { None }
    }
}

impl std::ops::Not for Wire {
    type Output = Self;
    fn not(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// A node of the graph that the builder grows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node {
    Zero,
    Evaluator(u32),
    Garbler(u32),
    /// Neither operand is inverted.
    Xor(Wire, Wire),
    KnownAnd(Wire, Wire),
    And(Wire, Wire),
}

/// Grows a circuit. A wire that depends on the garbler's inputs only is *known*: its gates are free.
///
/// Gates on public constants and on a wire with itself cost nothing, and gates that no output needs are dropped by
/// [`CircuitBuilder::build`].
#[derive(Debug)]
pub struct CircuitBuilder {
    nodes: Vec<Node>,
    /// The formal label of each node: a XOR of independent symbols, one for each evaluator input and each AND, written as
    /// 64 pseudorandom bits. It is zero where the evaluator's label is the all-zero string in every instance.
    symbols: Vec<u64>,
    evaluator_inputs: u32,
    garbler_inputs: u32,
    /// The first misuse, reported by `build`.
    error: Option<GcError>,
}

impl Default for CircuitBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl CircuitBuilder {
    /// An empty circuit.
    #[must_use]
    pub fn new() -> Self {
        Self {
            nodes: vec![Node::Zero],
            symbols: vec![0],
            evaluator_inputs: 0,
            garbler_inputs: 0,
            error: None,
        }
    }

    /// The evaluator's next input bit.
    pub fn evaluator_input(&mut self) -> Wire {
        self.evaluator_inputs += 1;
        let symbol = self.fresh_symbol();
        self.push(Node::Evaluator(self.evaluator_inputs - 1), symbol)
    }

    /// The garbler's next input bit, known to it when it garbles.
    pub fn garbler_input(&mut self) -> Wire {
        self.garbler_inputs += 1;
        self.push(Node::Garbler(self.garbler_inputs - 1), 0)
    }

    /// `a xor b`: free.
    pub fn xor(&mut self, a: Wire, b: Wire) -> Wire {
        let (Some(left), Some(right)) = (self.symbol(a), self.symbol(b)) else { return Wire::ZERO };
        let inverted = a.inverted() ^ b.inverted();
        match (a.node(), b.node()) {
            (x, y) if x == y => Wire::constant(inverted),
            (0, _) => Wire::constant(a.inverted() ^ b.inverted()).xor_onto(b),
            (_, 0) => Wire::constant(a.inverted() ^ b.inverted()).xor_onto(a),
            _ => {
                let (a, b) = (a.upright(), b.upright());
                let out = self.push(Node::Xor(a, b), left ^ right);
                if inverted { !out } else { out }
            }
        }
    }

    /// `a and b`: one row of the table, unless an operand is a constant, the operands are one node, or the garbler
    /// knows both.
    ///
    /// If the garbler knows `a` only, the gate is built as `not(a xor b) and b`, which is the same bit: the labels of
    /// a known wire are zero and delta in *every* instance, and as instances share the key of the hash, the rows of two
    /// instances would differ by delta or nothing if a two-party gate took such a wire as its input.
    pub fn and(&mut self, a: Wire, b: Wire) -> Wire {
        let (Some(left), Some(right)) = (self.symbol(a), self.symbol(b)) else { return Wire::ZERO };
        match (a.as_constant(), b.as_constant()) {
            (Some(bit), _) => return if bit { b } else { Wire::ZERO },
            (_, Some(bit)) => return if bit { a } else { Wire::ZERO },
            _ => {}
        }
        if a.node() == b.node() {
            return if a == b { a } else { Wire::ZERO };
        }
        match (left, right) {
            (0, 0) => self.push(Node::KnownAnd(a, b), 0),
            (0, _) => {
                let masked = self.xor(a, b);
                self.two_party_and(!masked, b)
            }
            (_, 0) => {
                let masked = self.xor(b, a);
                self.two_party_and(!masked, a)
            }
            _ => self.two_party_and(a, b),
        }
    }

    /// `a or b`: one AND.
    pub fn or(&mut self, a: Wire, b: Wire) -> Wire {
        let neither = self.and(!a, !b);
        !neither
    }

    /// `when_one` if `select` else `when_zero`: one AND.
    pub fn mux(&mut self, select: Wire, when_one: Wire, when_zero: Wire) -> Wire {
        let differ = self.xor(when_one, when_zero);
        let change = self.and(select, differ);
        self.xor(change, when_zero)
    }

    /// The circuit with these outputs, without the gates that none of them needs.
    ///
    /// # Errors
    /// [`GcError::ForeignWire`] if a wire is not of this builder, [`GcError::Width`] if a word-level operation got
    /// words of different widths, [`GcError::TooLarge`] above `2^31` wires.
    pub fn build(mut self, outputs: &[Wire]) -> Result<Circuit, GcError> {
        for wire in outputs {
            self.symbol(*wire);
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        let program = compile(&self.nodes, outputs);
        check_length("output steps", outputs.len(), program.outputs)?;
        Ok(Circuit {
            steps: program.steps,
            slots: program.slots,
            evaluator_inputs: self.evaluator_inputs as usize,
            garbler_inputs: self.garbler_inputs as usize,
            outputs: outputs.len(),
            ands: program.ands,
        })
    }

    /// Keeps the first misuse for `build`.
    pub(super) fn fail(&mut self, error: GcError) {
        self.error.get_or_insert(error);
    }

    fn two_party_and(&mut self, a: Wire, b: Wire) -> Wire {
        let symbol = self.fresh_symbol();
        self.push(Node::And(a, b), symbol)
    }

    fn symbol(&mut self, wire: Wire) -> Option<u64> {
        let symbol = self.symbols.get(wire.node()).copied();
        if symbol.is_none() {
            self.fail(GcError::ForeignWire);
        }
        symbol
    }

    fn push(&mut self, node: Node, symbol: u64) -> Wire {
        let index = self.nodes.len();
        if index >= MAX_NODES {
            self.fail(GcError::TooLarge);
            return Wire::ZERO;
        }
        self.nodes.push(node);
        self.symbols.push(symbol);
        Wire::new(index as u32, false)
    }

    /// A symbol for the node about to be pushed: the `SplitMix64` finalizer of its index, a bijection without fixed
    /// pattern, so that XORs of different sets of symbols are equal by accident only.
    fn fresh_symbol(&self) -> u64 {
        let mut z = (self.nodes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Wire {
    const fn upright(self) -> Self {
        Self(self.0 & !1)
    }

    /// The wire of `other`'s node, inverted if `self` (a constant) is one.
    const fn xor_onto(self, other: Self) -> Self {
        Self(other.upright().0 | self.0)
    }
}

const MAX_NODES: usize = 1 << 31;
