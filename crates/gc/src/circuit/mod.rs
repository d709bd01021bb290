//! Boolean circuits of XOR and AND gates with inverters, ready to be garbled.
//!
//! A [`Circuit`] is a straight-line program over *slots*: the wires that are alive at the same time have different
//! slots, and a slot is used again as soon as its wire is dead, so that the labels of many instances fit the first-level
//! cache. Inputs are loaded just before their first use, outputs are taken as soon as they exist. Only
//! [`CircuitBuilder`] makes circuits, so every circuit is topologically ordered and every index is in range.
//!
//! Wires are of two kinds. A wire that depends on the garbler's inputs only is *known*: the evaluator's label of it is
//! zero and its gates are free. All other wires carry secret labels. Two-party gates never take a known wire as an input
//! (see [`CircuitBuilder::and`]).

mod allocate;
mod builder;
mod words;

pub use builder::{CircuitBuilder, Wire};

use crate::GcError;

/// An immutable circuit: the program of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circuit {
    steps: Vec<Step>,
    slots: usize,
    evaluator_inputs: usize,
    garbler_inputs: usize,
    outputs: usize,
    ands: usize,
}

/// A slot read by a gate, perhaps inverted: the slot times two, plus one if inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand(u32);

impl Operand {
    pub(crate) const fn new(slot: u32, inverted: bool) -> Self {
        Self(slot << 1 | inverted as u32)
    }

    pub(crate) const fn slot(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(crate) const fn inverted(self) -> bool {
        self.0 & 1 == 1
    }
}

/// One instruction. Reads happen before the write: `out` may be one of the slots read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The constant zero.
    Zero { out: u32 },
    /// The evaluator's input bit `index`.
    Evaluator { out: u32, index: u32 },
    /// The garbler's input bit `index`.
    Garbler { out: u32, index: u32 },
    /// A free XOR; inversions were moved to the readers of its output.
    Xor { out: u32, a: u32, b: u32 },
    /// An AND of two wires that the garbler knows: free.
    KnownAnd { out: u32, a: Operand, b: Operand },
    /// An AND that takes a row of the table.
    And { out: u32, a: Operand, b: Operand },
    /// Output bit `index`.
    Output { index: u32, from: Operand },
}

impl Circuit {
    /// Input bits of the evaluator per instance.
    #[must_use]
    pub const fn evaluator_inputs(&self) -> usize {
        self.evaluator_inputs
    }

    /// Input bits of the garbler per instance, known when the circuit is garbled.
    #[must_use]
    pub const fn garbler_inputs(&self) -> usize {
        self.garbler_inputs
    }

    /// Output bits per instance.
    #[must_use]
    pub const fn outputs(&self) -> usize {
        self.outputs
    }

    /// AND gates that cost a row of the table.
    #[must_use]
    pub const fn and_count(&self) -> usize {
        self.ands
    }

    /// Wires alive at the same time: the working memory is this many labels per instance.
    #[must_use]
    pub const fn slots(&self) -> usize {
        self.slots
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Evaluates one instance in the clear; a test's or an ideal functionality's twin of garbling.
    ///
    /// # Errors
    /// [`GcError::Length`] unless there are `evaluator_inputs` and `garbler_inputs` bits.
    pub fn evaluate_clear(&self, evaluator: &[bool], garbler: &[bool]) -> Result<Vec<bool>, GcError> {
        check_length("evaluator input bits", self.evaluator_inputs, evaluator.len())?;
        check_length("garbler input bits", self.garbler_inputs, garbler.len())?;
        let mut slots = vec![false; self.slots];
        let mut outputs = vec![false; self.outputs];
        for step in &self.steps {
            let read = |operand: Operand| slots[operand.slot()] ^ operand.inverted();
            let (out, bit) = match *step {
                Step::Zero { out } => (out, false),
                Step::Evaluator { out, index } => (out, evaluator[index as usize]),
                Step::Garbler { out, index } => (out, garbler[index as usize]),
                Step::Xor { out, a, b } => (out, slots[a as usize] ^ slots[b as usize]),
                Step::KnownAnd { out, a, b } | Step::And { out, a, b } => (out, read(a) & read(b)),
                Step::Output { index, from } => {
                    outputs[index as usize] = read(from);
                    continue;
                }
            };
            slots[out as usize] = bit;
        }
        Ok(outputs)
    }
}

pub(crate) const fn check_length(what: &'static str, expected: usize, got: usize) -> Result<(), GcError> {
    if expected == got { Ok(()) } else { Err(GcError::Length { what, expected, got }) }
}

#[cfg(test)]
impl Circuit {
    /// The circuit of any steps, which the builder may refuse to make.
    pub(crate) fn from_steps(
        steps: Vec<Step>,
        slots: usize,
        evaluator_inputs: usize,
        garbler_inputs: usize,
    ) -> Self {
        let count = |test: fn(&Step) -> bool| steps.iter().filter(|step| test(step)).count();
        let ands = count(|step| matches!(step, Step::And { .. }));
        let outputs = count(|step| matches!(step, Step::Output { .. }));
        Self { steps, slots, evaluator_inputs, garbler_inputs, outputs, ands }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lanner_primitives::{Prg, Ring};
    use proptest::prelude::*;
    use rand_core::{Rng, SeedableRng};

    use super::*;
    use crate::library::{argmax, max_pool_relu_rescale, relu_clip};

    /// The evaluator's inputs and ANDs whose labels add up to each slot's label, exactly.
    fn check_operands(circuit: &Circuit) {
        let mut terms = vec![BTreeSet::new(); circuit.slots];
        for (position, step) in circuit.steps.iter().enumerate() {
            match *step {
                Step::Zero { out } | Step::Garbler { out, .. } => terms[out as usize] = BTreeSet::new(),
                Step::Evaluator { out, .. } => terms[out as usize] = BTreeSet::from([position]),
                Step::Xor { out, a, b } => {
                    let sum = terms[a as usize].symmetric_difference(&terms[b as usize]).copied().collect();
                    terms[out as usize] = sum;
                }
                Step::KnownAnd { out, a, b } => {
                    assert!(terms[a.slot()].is_empty() && terms[b.slot()].is_empty());
                    terms[out as usize] = BTreeSet::new();
                }
                Step::And { out, a, b } => {
                    assert!(!terms[a.slot()].is_empty() && !terms[b.slot()].is_empty());
                    terms[out as usize] = BTreeSet::from([position]);
                }
                Step::Output { .. } => {}
            }
        }
    }

    #[test]
    fn no_gate_of_the_library_takes_a_known_wire() {
        let prime = Ring::Prime(1_032_193);
        let circuits = [argmax(prime, 10), max_pool_relu_rescale(prime, 4, 7), relu_clip(prime, 7, 96)];
        for masked in circuits {
            check_operands(masked.unwrap().circuit());
        }
    }

    proptest! {
        #[test]
        fn no_gate_takes_a_known_wire(seed: [u8; 16], gates in 1_usize..200) {
            let mut prg = Prg::from_seed(seed);
            let mut builder = CircuitBuilder::new();
            let mut wires = builder.evaluator_word(3);
            wires.extend(builder.garbler_word(3));
            for _ in 0..gates {
                let mut pick = || wires[prg.next_u32() as usize % wires.len()];
                let (a, b) = (pick(), pick());
                let out = if prg.next_u32() % 3 == 0 { builder.and(a, b) } else { builder.xor(a, b) };
                wires.push(out);
            }
            check_operands(&builder.build(&wires[6..]).unwrap());
        }
    }

    #[test]
    fn slots_are_used_again() {
        let masked = argmax(Ring::Prime(1_032_193), 1000).unwrap();
        assert!(masked.circuit().slots() < 400, "{} slots", masked.circuit().slots());
    }
}
