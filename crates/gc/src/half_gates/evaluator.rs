//! The evaluator.

use lanner_primitives::{Bits, Block};
use zeroize::Zeroizing;

use super::lanes::{Collector, OutputLabels};
use super::tables::{ChunkReader, TableSource, chunk_lengths, widen};
use super::{LANES, Lanes, Row, advance, product, tweak};
use crate::BYTES_PER_AND;
use crate::arch::{Backend, EvaluatedGroup, ROW};
use crate::circuit::{Circuit, check_length};

/// Evaluates garbled instances of one circuit, in the calls that the garbler made.
pub struct Evaluator<'c> {
    circuit: &'c Circuit,
    backend: Backend,
    salt: Block,
    batch: u64,
    slots: Zeroizing<Vec<Lanes>>,
}

impl<'c> Evaluator<'c> {
    /// An evaluator with the session's salt, whose first batch number is the garbler's.
    #[must_use]
    pub fn new(circuit: &'c Circuit, salt: Block, first_batch: u64) -> Self {
        let slots = Zeroizing::new(vec![Lanes::ZERO; circuit.slots()]);
        Self { circuit, backend: Backend::detect(), salt, batch: first_batch, slots }
    }

    /// The same evaluator on a chosen backend.
    #[must_use]
    pub fn with_backend(self, backend: Backend) -> Self {
        Self { backend, ..self }
    }

    /// The batch number that the next call begins with.
    #[must_use]
    pub const fn next_batch(&self) -> u64 {
        self.batch
    }

    /// Evaluates `instances` instances and returns the colour bits of the outputs, instance-major.
    ///
    /// `labels` has the active labels of the evaluator's inputs, instance-major. Xored with the garbler's permute bits
    /// the result is the output; wrong labels or tables give random bits, not an error.
    ///
    /// # Errors
    /// [`crate::GcError::Length`] if `labels` or a chunk has another length, [`crate::GcError::BatchesExhausted`] if the batch numbers
    /// would overflow, and whatever the source of the tables returns.
    pub fn evaluate<S: TableSource>(
        &mut self,
        instances: usize,
        labels: &[Block],
        tables: &mut S,
    ) -> Result<Bits, S::Error> {
        self.evaluate_to(instances, labels, None, tables)
    }

    /// As [`Self::evaluate`], and writes the active labels of the outputs, instance-major.
    ///
    /// # Errors
    /// As [`Self::evaluate`]; [`crate::GcError::Length`] if `outputs` has not one for each output.
    pub fn evaluate_with_labels<S: TableSource>(
        &mut self,
        instances: usize,
        labels: &[Block],
        outputs: &mut [Block],
        tables: &mut S,
    ) -> Result<Bits, S::Error> {
        self.evaluate_to(instances, labels, Some(outputs), tables)
    }

    fn evaluate_to<S: TableSource>(
        &mut self,
        instances: usize,
        labels: &[Block],
        output_labels: Option<&mut [Block]>,
        tables: &mut S,
    ) -> Result<Bits, S::Error> {
        let circuit = self.circuit;
        let inputs = circuit.evaluator_inputs();
        check_length("labels", product(instances, inputs)?, labels.len())?;
        product(instances, BYTES_PER_AND * circuit.and_count())?;
        let end = advance(self.batch, instances)?;

        let mut outputs = Zeroizing::new(vec![0_u16; circuit.outputs()]);
        let mut colours = Collector::new(product(instances, circuit.outputs())?);
        let mut output_labels = OutputLabels::new(output_labels, instances, circuit)?;
        let mut reader = ChunkReader { source: tables, lengths: chunk_lengths(circuit, instances) };
        let mut chunk: &[u8] = &[];
        for first in (0..instances).step_by(LANES) {
            let lanes = LANES.min(instances - first);
            let mut group = EvaluatedGroup {
                slots: &mut self.slots,
                labels: &labels[first * inputs..(first + lanes) * inputs],
                inputs,
                outputs: &mut outputs,
                output_labels: &mut output_labels.of_group,
                tweak: tweak(self.salt, self.batch),
                gate: 0,
            };
            let mut steps = circuit.steps();
            while !steps.is_empty() {
                let row = lanes * BYTES_PER_AND;
                let left = circuit.and_count() - group.gate as usize;
                if left > 0 && chunk.len() < row {
                    chunk = reader.next()?;
                }
                let (done, used) = evaluate_rows(self.backend, &mut group, steps, lanes, chunk, left);
                steps = &steps[done..];
                chunk = &chunk[used..];
            }
            colours.scatter(&outputs, first, lanes);
            output_labels.scatter(first, lanes);
            self.batch += 1;
        }
        debug_assert_eq!(self.batch, end);
        Ok(colours.finish()?)
    }
}

/// Evaluates with the rows that `chunk` begins with, at most `left`; returns the steps done and the bytes used.
fn evaluate_rows(
    backend: Backend,
    group: &mut EvaluatedGroup<'_>,
    steps: &[crate::circuit::Step],
    lanes: usize,
    chunk: &[u8],
    left: usize,
) -> (usize, usize) {
    if lanes == LANES {
        let (rows, _) = chunk.as_chunks::<ROW>();
        let rows = &rows[..rows.len().min(left)];
        return (backend.evaluate(group, steps, rows), rows.len() * ROW);
    }
    let row = lanes * BYTES_PER_AND;
    let count = left.min(chunk.len() / row).min(PARTIAL_ROWS);
    let mut scratch = [Row::ZERO; PARTIAL_ROWS];
    for (wide, narrow) in scratch.iter_mut().zip(chunk.chunks_exact(row).take(count)) {
        *wide = widen(narrow, lanes);
    }
    let (rows, _) = bytemuck::must_cast_slice::<Row, u8>(&scratch).as_chunks::<ROW>();
    (backend.evaluate(group, steps, &rows[..count]), count * row)
}

/// Rows of an incomplete group that are widened before they are evaluated.
const PARTIAL_ROWS: usize = 16;

/// Evaluates all instances of a circuit: see [`Evaluator::evaluate`].
///
/// # Errors
/// As for [`Evaluator::evaluate`].
pub fn evaluate<S: TableSource>(
    circuit: &Circuit,
    instances: usize,
    salt: Block,
    first_batch: u64,
    labels: &[Block],
    tables: &mut S,
) -> Result<Bits, S::Error> {
    Evaluator::new(circuit, salt, first_batch).evaluate(instances, labels, tables)
}
