//! The half-gates kernels and the choice between them at run time.
//!
//! A kernel runs a circuit's steps for one group of sixteen instances. All kernels follow one program, [`steps`], over
//! an [`Engine`] with the arithmetic of one gate; they give the same bytes.
#![allow(
    clippy::inline_always,
    reason = "code is compiled with the instructions of the function it is inlined into"
)]

mod portable;
mod steps;
#[cfg(target_arch = "x86_64")]
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

use lanner_primitives::Block;

use crate::GcError;
use crate::circuit::Step;
use crate::half_gates::{LANES, Lanes, Row};

pub(crate) use steps::{EvaluatedGroup, GarbledGroup};

/// How the half-gates are computed. The bytes do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// The `aes` crate, one call for each key.
    Portable,
    /// AES-NI with AVX: one block to an instruction.
    AesNi,
    /// VAES with AVX-512: four blocks to an instruction.
    Vaes512,
}

impl Backend {
    /// Every backend, the slowest first.
    pub const ALL: [Self; 3] = [Self::Portable, Self::AesNi, Self::Vaes512];

    /// The fastest backend that this machine runs.
    #[must_use]
    pub fn detect() -> Self {
        Self::ALL.into_iter().rev().find(|backend| backend.is_available()).unwrap_or(Self::Portable)
    }

    /// Whether this machine runs the backend.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::AesNi => x86::has_aes_ni(),
            #[cfg(target_arch = "x86_64")]
            Self::Vaes512 => x86::has_vaes512(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::AesNi | Self::Vaes512 => false,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::AesNi => "AES-NI",
            Self::Vaes512 => "VAES-512",
        }
    }
}

/// A backend that was found to run here.
#[derive(Clone, Copy)]
pub(crate) struct Kernel(Backend);

impl Kernel {
    pub(crate) fn detect() -> Self {
        Self(Backend::detect())
    }

    pub(crate) fn new(backend: Backend) -> Result<Self, GcError> {
        if backend.is_available() { Ok(Self(backend)) } else { Err(GcError::Backend(backend.name())) }
    }

    /// Garbles `steps` for one group, a row of `rows` for each AND; stops at the first AND without a row.
    ///
    /// Returns how many steps were done.
    pub(crate) fn garble(self, group: &mut GarbledGroup<'_>, steps: &[Step], rows: &mut [Row]) -> usize {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Backend::Vaes512 => x86::garble_vaes512(group, steps, rows),
            #[cfg(target_arch = "x86_64")]
            Backend::AesNi => x86::garble_aes_ni(group, steps, rows),
            _ => steps::garble(&mut portable::Portable::new(group.delta), group, steps, rows),
        }
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
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Backend::Vaes512 => x86::evaluate_vaes512(group, steps, rows),
            #[cfg(target_arch = "x86_64")]
            Backend::AesNi => x86::evaluate_aes_ni(group, steps, rows),
            _ => steps::evaluate(&mut portable::Portable::new(Block::ZERO), group, steps, rows),
        }
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
