//! The interpreter of circuits, the same for every engine.

use lanner_primitives::Block;

use super::{Engine, GATES_PER_SCHEDULE, Gate, ROW};
use crate::circuit::Step;
use crate::half_gates::{LANES, Lanes, Row};

/// What the garbler holds while it garbles one group.
pub(crate) struct GarbledGroup<'a> {
    /// Zero-labels of the live wires.
    pub(crate) slots: &'a mut [Lanes],
    /// Zero-labels of the evaluator's inputs: instance-major, at most sixteen instances.
    pub(crate) zero_labels: &'a [Block],
    /// The evaluator's inputs per instance.
    pub(crate) inputs: usize,
    /// The garbler's input bits, a mask of lanes for each.
    pub(crate) known: &'a [u16],
    /// Permute bits of the outputs, a mask of lanes for each.
    pub(crate) outputs: &'a mut [u16],
    /// Zero-labels of the outputs, if somebody asks for them; else empty.
    pub(crate) output_labels: &'a mut [Lanes],
    pub(crate) delta: Block,
    /// The salt xor the batch's part of the hash index.
    pub(crate) tweak: Block,
    /// The next AND gate.
    pub(crate) gate: u64,
}

/// What the evaluator holds while it evaluates one group.
pub(crate) struct EvaluatedGroup<'a> {
    /// Active labels of the live wires.
    pub(crate) slots: &'a mut [Lanes],
    /// Active labels of the evaluator's inputs: instance-major, at most sixteen instances.
    pub(crate) labels: &'a [Block],
    /// The evaluator's inputs per instance.
    pub(crate) inputs: usize,
    /// Colour bits of the outputs, a mask of lanes for each.
    pub(crate) outputs: &'a mut [u16],
    /// Active labels of the outputs, if somebody asks for them; else empty.
    pub(crate) output_labels: &'a mut [Lanes],
    /// The salt xor the batch's part of the hash index.
    pub(crate) tweak: Block,
    /// The next AND gate.
    pub(crate) gate: u64,
}

/// Always inlined, so that it is compiled with the instructions of the engine's caller.
#[inline(always)]
pub(super) fn garble<E: Engine>(
    engine: &mut E,
    group: &mut GarbledGroup<'_>,
    steps: &[Step],
    rows: &mut [Row],
) -> usize {
    let mut rows = rows.iter_mut();
    let mut index = resume(engine, group.tweak, group.gate);
    let slots = &mut *group.slots;
    for (done, step) in steps.iter().enumerate() {
        match *step {
            Step::Zero { out } => slots[out as usize] = Lanes::ZERO,
            Step::Evaluator { out, index } => {
                load(group.zero_labels, group.inputs, index, &mut slots[out as usize]);
            }
            Step::Garbler { out, index } => {
                slots[out as usize] = Lanes::masked(group.known[index as usize], group.delta);
            }
            Step::Xor { out, a, b } => {
                engine.xor(slots, Gate { out: out as usize, a: a as usize, b: b as usize });
            }
            Step::KnownAnd { out, a, b } => {
                // A known wire's zero-label is delta times its bit, so the bits multiply as the labels do.
                let bits = |operand: crate::circuit::Operand| {
                    let flip = if operand.inverted() { group.delta } else { Block::ZERO };
                    slots[operand.slot()].0.map(|label| label ^ flip)
                };
                let (left, right) = (bits(a), bits(b));
                slots[out as usize] = Lanes(std::array::from_fn(|lane| left[lane] & right[lane]));
            }
            Step::And { out, a, b } => {
                let Some(row) = rows.next() else { return done };
                if index == GATES_PER_SCHEDULE {
                    engine.schedule(group.tweak, group.gate);
                    index = 0;
                }
                engine.garble_and(index, slots, Gate { out: out as usize, a, b }, row);
                index += 1;
                group.gate += 1;
            }
            Step::Output { index, from } => {
                let inverted = u16::from(from.inverted()).wrapping_neg();
                group.outputs[index as usize] = slots[from.slot()].colours() ^ inverted;
                if let Some(labels) = group.output_labels.get_mut(index as usize) {
                    // The zero-label of an inverted wire is the one-label of the wire.
                    let flip = if from.inverted() { group.delta } else { Block::ZERO };
                    *labels = Lanes(slots[from.slot()].0.map(|label| label ^ flip));
                }
            }
        }
    }
    steps.len()
}

/// Always inlined, so that it is compiled with the instructions of the engine's caller.
#[inline(always)]
pub(super) fn evaluate<E: Engine>(
    engine: &mut E,
    group: &mut EvaluatedGroup<'_>,
    steps: &[Step],
    rows: &[[u8; ROW]],
) -> usize {
    let mut rows = rows.iter();
    let mut index = resume(engine, group.tweak, group.gate);
    let slots = &mut *group.slots;
    for (done, step) in steps.iter().enumerate() {
        match *step {
            // The evaluator's label of a wire that the garbler knows is zero.
            Step::Zero { out } | Step::Garbler { out, .. } | Step::KnownAnd { out, .. } => {
                slots[out as usize] = Lanes::ZERO;
            }
            Step::Evaluator { out, index } => {
                load(group.labels, group.inputs, index, &mut slots[out as usize]);
            }
            Step::Xor { out, a, b } => {
                engine.xor(slots, Gate { out: out as usize, a: a as usize, b: b as usize });
            }
            Step::And { out, a, b } => {
                let Some(row) = rows.next() else { return done };
                if index == GATES_PER_SCHEDULE {
                    engine.schedule(group.tweak, group.gate);
                    index = 0;
                }
                engine.evaluate_and(index, slots, Gate { out: out as usize, a: a.slot(), b: b.slot() }, row);
                index += 1;
                group.gate += 1;
            }
            Step::Output { index, from } => {
                group.outputs[index as usize] = slots[from.slot()].colours();
                if let Some(labels) = group.output_labels.get_mut(index as usize) {
                    *labels = slots[from.slot()];
                }
            }
        }
    }
    steps.len()
}

/// The place of the next gate in its schedule, which is computed unless the next gate begins one.
#[inline(always)]
fn resume<E: Engine>(engine: &mut E, tweak: Block, gate: u64) -> usize {
    let index = gate as usize % GATES_PER_SCHEDULE;
    if index == 0 {
        return GATES_PER_SCHEDULE;
    }
    engine.schedule(tweak, gate - index as u64);
    index
}

/// Copies input `index` of each instance to its lane, zero to the lanes without an instance.
#[inline(always)]
fn load(labels: &[Block], inputs: usize, index: u32, out: &mut Lanes) {
    let count = labels.len() / inputs;
    let column = labels.iter().skip(index as usize).step_by(inputs);
    for (lane, label) in out.0.iter_mut().zip(column) {
        *lane = *label;
    }
    out.0[count.min(LANES)..].fill(Block::ZERO);
}
