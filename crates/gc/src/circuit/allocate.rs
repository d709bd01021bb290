//! Turns the builder's graph into a program: drops dead gates and gives slots to wires.

use super::builder::{Node, Wire};
use super::{Operand, Step};

pub(super) struct Program {
    pub(super) steps: Vec<Step>,
    pub(super) slots: usize,
    pub(super) ands: usize,
    pub(super) outputs: usize,
}

/// Compiles the nodes that `outputs` need, in the builder's order, which is topological.
pub(super) fn compile(nodes: &[Node], outputs: &[Wire]) -> Program {
    let reads = count_reads(nodes, outputs);
    let mut allocator = Allocator {
        nodes,
        outputs: outputs_by_node(outputs),
        slot: vec![NONE; nodes.len()],
        reads,
        free: Vec::new(),
        program: Program { steps: Vec::new(), slots: 0, ands: 0, outputs: 0 },
    };
    for (index, node) in nodes.iter().enumerate() {
        if allocator.reads[index] > 0 && is_gate(*node) {
            allocator.gate(index);
        }
    }
    // What no gate loaded: inputs and constants that are outputs themselves.
    for wire in outputs {
        allocator.load(wire.node());
    }
    allocator.program
}

/// How often each node is read, by live gates and by outputs.
fn count_reads(nodes: &[Node], outputs: &[Wire]) -> Vec<u32> {
    let mut reads = vec![0; nodes.len()];
    for wire in outputs {
        reads[wire.node()] += 1;
    }
    for index in (0..nodes.len()).rev() {
        if reads[index] > 0
            && let Some((a, b)) = operands(nodes[index])
        {
            reads[a.node()] += 1;
            reads[b.node()] += 1;
        }
    }
    reads
}

/// The outputs as (node, index, inverted), sorted by node.
fn outputs_by_node(outputs: &[Wire]) -> Vec<(usize, u32, bool)> {
    let indexed = outputs.iter().enumerate();
    let mut list: Vec<_> = indexed.map(|(i, wire)| (wire.node(), i as u32, wire.inverted())).collect();
    list.sort_unstable();
    list
}

const fn operands(node: Node) -> Option<(Wire, Wire)> {
    match node {
        Node::Xor(a, b) | Node::KnownAnd(a, b) | Node::And(a, b) => Some((a, b)),
        Node::Zero | Node::Evaluator(_) | Node::Garbler(_) => None,
    }
}

const fn is_gate(node: Node) -> bool {
    operands(node).is_some()
}

struct Allocator<'a> {
    nodes: &'a [Node],
    outputs: Vec<(usize, u32, bool)>,
    slot: Vec<u32>,
    /// Reads that are still to come.
    reads: Vec<u32>,
    free: Vec<u32>,
    program: Program,
}

const NONE: u32 = u32::MAX;

impl Allocator<'_> {
    fn gate(&mut self, index: usize) {
        let node = self.nodes[index];
        let Some((a, b)) = operands(node) else { return };
        self.load(a.node());
        self.load(b.node());
        let (left, right) = (self.operand(a), self.operand(b));
        // Steps read before they write, so the result may take the place of an operand read for the last time.
        self.release(a.node());
        self.release(b.node());
        let out = self.allocate(index);
        self.program.steps.push(match node {
            Node::Xor(..) => Step::Xor { out, a: left.slot() as u32, b: right.slot() as u32 },
            Node::KnownAnd(..) => Step::KnownAnd { out, a: left, b: right },
            _ => {
                self.program.ands += 1;
                Step::And { out, a: left, b: right }
            }
        });
        self.emit_outputs(index);
    }

    /// Loads an input or a constant unless it has a slot already.
    fn load(&mut self, index: usize) {
        if self.slot[index] != NONE || self.reads[index] == 0 || is_gate(self.nodes[index]) {
            return;
        }
        let out = self.allocate(index);
        self.program.steps.push(match self.nodes[index] {
            Node::Evaluator(index) => Step::Evaluator { out, index },
            Node::Garbler(index) => Step::Garbler { out, index },
            _ => Step::Zero { out },
        });
        self.emit_outputs(index);
    }

    fn emit_outputs(&mut self, index: usize) {
        let first = self.outputs.partition_point(|(node, ..)| *node < index);
        let count = self.outputs[first..].partition_point(|(node, ..)| *node == index);
        for position in first..first + count {
            let (_, output, inverted) = self.outputs[position];
            let from = Operand::new(self.slot[index], inverted);
            self.program.steps.push(Step::Output { index: output, from });
            self.program.outputs += 1;
            self.release(index);
        }
    }

    fn operand(&self, wire: Wire) -> Operand {
        Operand::new(self.slot[wire.node()], wire.inverted())
    }

    fn allocate(&mut self, index: usize) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.program.slots += 1;
            self.program.slots as u32 - 1
        });
        self.slot[index] = slot;
        slot
    }

    /// Counts one read; the last one frees the slot.
    fn release(&mut self, index: usize) {
        self.reads[index] -= 1;
        if self.reads[index] == 0 {
            self.free.push(self.slot[index]);
        }
    }
}
