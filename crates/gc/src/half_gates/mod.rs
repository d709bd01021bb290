//! Half-gates garbling of many instances of one circuit.
//!
//! [ZRE15] Zahur, Rosulek, Evans, "Two Halves Make a Whole", <https://eprint.iacr.org/2014/756>, Fig. 2, with the hash
//! of [GKWWY20] Guo, Katz, Wang, Weng, Yu, "Better Concrete Security for Half-Gates Garbling (in the Multi-Instance
//! Setting)", <https://eprint.iacr.org/2019/1168>, section 7.1:
//!
//! `H(x, i) = AES_(salt xor i)(sigma(x)) xor sigma(x)`, `sigma(hi || lo) = (hi xor lo) || hi`.
//!
//! The salt is public and fresh for each session. The index `i` is the batch number in its upper 64 bits and `2 g` or
//! `2 g + 1` for the halves of AND gate `g` in its lower ones. Deviation from the paper: sixteen instances, a *batch*,
//! share the key of a gate, which costs at most 4 bits of security: 124 are left. A batch number must never be used twice with one
//! salt; [`Garbler`] and [`Evaluator`] count on from the number that they are given.
//!
//! The evaluator's input wires have random zero-labels (from correlated OT with the same delta). The garbler's inputs are
//! known when it garbles: their zero-label is delta times the bit, so the evaluator's label is zero and nothing is sent.
//! An output is left shared by XOR: the garbler has the permute bit, the evaluator the colour bit of its label.
//!
//! Threat model: semi-honest parties. The evaluator learns nothing but its colour bits, which the permute bits hide. No
//! branch or index depends on a label, a bit or delta.

mod evaluator;
mod garbler;
mod lanes;
mod tables;

pub use evaluator::{Evaluator, evaluate};
pub use garbler::{Garbler, OutputDecoding, garble};
pub use tables::{BYTES_PER_AND, CHUNK_BYTES, TableSource, TablesFrom, TablesInMemory, chunk_lengths};

pub(crate) use lanes::{LANES, Lanes};
pub(crate) use tables::Row;

use lanner_primitives::Block;

use crate::GcError;

/// Instances that are garbled together and share one batch number.
pub const INSTANCES_PER_BATCH: usize = LANES;

/// Bits of security of garbling: those of AES-128, less one for each doubling of the instances that share a key.
pub const SECURITY_BITS: u32 = 128 - LANES.ilog2();

/// The batch numbers that `instances` instances take: one for each sixteen or part of sixteen.
#[must_use]
pub const fn batches(instances: usize) -> u64 {
    instances.div_ceil(LANES) as u64
}

/// The batch number after those of `instances` instances.
fn advance(batch: u64, instances: usize) -> Result<u64, GcError> {
    batch.checked_add(batches(instances)).ok_or(GcError::BatchesExhausted)
}

/// The part of the hash's key that the gates of a batch share.
fn tweak(salt: Block, batch: u64) -> Block {
    salt ^ Block(u128::from(batch) << 64)
}

/// The number of items that `instances` times `each` are, where memory could hold them.
fn product(instances: usize, each: usize) -> Result<usize, GcError> {
    instances.checked_mul(each).ok_or(GcError::BatchesExhausted)
}
