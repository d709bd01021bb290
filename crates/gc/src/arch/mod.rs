//! The half-gates kernels and the choice between them at run time.
//!
//! A kernel runs a circuit's steps for one group of sixteen instances. All kernels follow one program, [`steps`], over
//! an [`Engine`] with the arithmetic of one gate; they give the same bytes.
#![allow(
    clippy::inline_always,
    reason = "code is compiled with the instructions of the function it is inlined into"
)]

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod portable;
mod steps;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use std::sync::OnceLock;
use std::{fmt, iter};

use lanner_primitives::Block;

use crate::circuit::Step;
use crate::half_gates::{LANES, Lanes, Row};

pub(crate) use steps::{EvaluatedGroup, GarbledGroup};

/// The kernels of an instruction set, as a table that it fills.
struct Kernels {
    name: &'static str,
    garble: unsafe fn(&mut GarbledGroup<'_>, &[Step], &mut [Row]) -> usize,
    evaluate: unsafe fn(&mut EvaluatedGroup<'_>, &[Step], &[[u8; ROW]]) -> usize,
}

/// How the half-gates are computed, of what this machine has. The bytes do not depend on it.
#[derive(Clone, Copy)]
pub struct Backend(&'static Kernels);

#[allow(unsafe_code, reason = "calling kernels compiled for instructions that this machine has")]
impl Backend {
    /// The `aes` crate, one call for each key.
    pub const PORTABLE: Self = Self(&portable::KERNELS);

    /// Every backend of this machine, the fastest first; the last is [`Self::PORTABLE`].
    #[must_use]
    pub fn available() -> &'static [Self] {
        static AVAILABLE: OnceLock<Vec<Backend>> = OnceLock::new();
        AVAILABLE.get_or_init(|| {
            let tables = iter::once(&portable::KERNELS);
            #[cfg(target_arch = "aarch64")]
            let tables = aarch64::available().chain(tables);
            #[cfg(target_arch = "x86_64")]
            let tables = x86_64::available().chain(tables);
            tables.map(Self).collect()
        })
    }

    /// The fastest backend of this machine.
    #[must_use]
    pub fn detect() -> Self {
        Self::available()[0]
    }

    /// Garbles `steps` for one group, a row of `rows` for each AND; stops at the first AND without a row.
    ///
    /// Returns how many steps were done.
    pub(crate) fn garble(self, group: &mut GarbledGroup<'_>, steps: &[Step], rows: &mut [Row]) -> usize {
        // SAFETY: a backend exists only where the machine has its instructions.
        unsafe { (self.0.garble)(group, steps, rows) }
    }

    /// Evaluates `steps` for one group with the rows of `rows`; stops at the first AND without a row.
    ///
    /// Returns how many steps were done.
    pub(crate) fn evaluate(
        self,
        group: &mut EvaluatedGroup<'_>,
        steps: &[Step],
        rows: &[[u8; ROW]],
    ) -> usize {
        // SAFETY: as above.
        unsafe { (self.0.evaluate)(group, steps, rows) }
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.name)
    }
}

/// Bytes of a row: the garbler's and the evaluator's half gate of sixteen lanes.
pub(crate) const ROW: usize = 2 * LANES * Block::BYTES;

/// The arithmetic of one gate in sixteen lanes.
trait Engine {
    /// Computes the keys of gates `first..first + GATES_PER_SCHEDULE`: `tweak xor (2 gate + half)`.
    fn schedule(&mut self, tweak: Block, first: u64);

    /// `slots[out] = slots[a] xor slots[b]`.
    fn xor(&self, slots: &mut [Lanes], gate: Gate<usize>);

    /// Garbles gate `index` of the schedule.
    fn garble_and(
        &self,
        index: usize,
        slots: &mut [Lanes],
        gate: Gate<crate::circuit::Operand>,
        row: &mut Row,
    );

    /// Evaluates gate `index` of the schedule.
    fn evaluate_and(&self, index: usize, slots: &mut [Lanes], gate: Gate<usize>, row: &[u8; ROW]);
}

/// A gate's places among the slots.
#[derive(Clone, Copy)]
struct Gate<T> {
    out: usize,
    a: T,
    b: T,
}

/// Gates whose keys are computed together, so that their key schedules overlap in the pipeline.
const GATES_PER_SCHEDULE: usize = 8;
