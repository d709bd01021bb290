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
