//! The garbler.

use lanner_primitives::{Bits, Block};
use zeroize::Zeroizing;

use super::lanes::{Collector, OutputLabels, gather};
use super::tables::ChunkWriter;
use super::{LANES, Lanes, Row, advance, product, tweak};
use crate::arch::{Backend, GarbledGroup};
use crate::circuit::{Circuit, Step, check_length};
use crate::{BYTES_PER_AND, GcError};

/// Garbles instances of one circuit, in as many calls as the caller's memory asks for.
///
/// Each call's batch numbers follow the last call's.
pub struct Garbler<'c> {
    circuit: &'c Circuit,
    backend: Backend,
    delta: Zeroizing<Block>,
    salt: Block,
    batch: u64,
    slots: Zeroizing<Vec<Lanes>>,
    chunk: ChunkWriter,
}

impl<'c> Garbler<'c> {
    /// A garbler with the session's delta and salt, whose first batch number is `first_batch`.
    ///
    /// # Errors
    /// [`GcError::DeltaColour`] unless the lowest bit of `delta` is one.
    pub fn new(circuit: &'c Circuit, delta: Block, salt: Block, first_batch: u64) -> Result<Self, GcError> {
        if !delta.lsb() {
            return Err(GcError::DeltaColour);
        }
        Ok(Self {
            circuit,
            backend: Backend::detect(),
            delta: Zeroizing::new(delta),
            salt,
            batch: first_batch,
            slots: Zeroizing::new(vec![Lanes::ZERO; circuit.slots()]),
            chunk: ChunkWriter::new(),
        })
    }

    /// The same garbler on a chosen backend.
    #[must_use]
    pub fn with_backend(self, backend: Backend) -> Self {
        Self { backend, ..self }
    }

    /// The batch number that the next call begins with.
    #[must_use]
    pub const fn next_batch(&self) -> u64 {
        self.batch
    }

    /// Garbles `instances` instances and returns the permute bits of the outputs, instance-major.
    ///
    /// `zero_labels` has the zero-labels of the evaluator's inputs, instance-major; `bits` the garbler's input bits,
    /// instance-major. The tables go to `sink` in the chunks of [`crate::chunk_lengths`].
    ///
    /// # Errors
    /// [`GcError::Length`] if an input has another length, [`GcError::BatchesExhausted`] if the batch numbers would
    /// overflow, and whatever `sink` returns.
    pub fn garble<E: From<GcError>>(
        &mut self,
        instances: usize,
        zero_labels: &[Block],
        bits: &Bits,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Bits, E> {
        self.garble_to(instances, zero_labels, bits, None, sink)
    }

    /// As [`Self::garble`], and writes the zero-labels of the outputs, instance-major: with them outputs can become arithmetic under hashes.
    ///
    /// The active label of an output that is constant or known to the garbler is zero, whatever its value.
    ///
    /// # Errors
    /// As [`Self::garble`]; [`GcError::Length`] if `labels` has not one for each output.
    pub fn garble_with_labels<E: From<GcError>>(
        &mut self,
        instances: usize,
        zero_labels: &[Block],
        bits: &Bits,
        labels: &mut [Block],
        sink: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Bits, E> {
        self.garble_to(instances, zero_labels, bits, Some(labels), sink)
    }

    fn garble_to<E: From<GcError>>(
        &mut self,
        instances: usize,
        zero_labels: &[Block],
        bits: &Bits,
        labels: Option<&mut [Block]>,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Bits, E> {
        let circuit = self.circuit;
        let inputs = circuit.evaluator_inputs();
        check_length("zero-labels", product(instances, inputs)?, zero_labels.len())?;
        check_length("garbler input bits", product(instances, circuit.garbler_inputs())?, bits.len())?;
        product(instances, BYTES_PER_AND * circuit.and_count())?;
        let end = advance(self.batch, instances)?;

        let mut known = Zeroizing::new(vec![0_u16; circuit.garbler_inputs()]);
        let mut outputs = Zeroizing::new(vec![0_u16; circuit.outputs()]);
        let mut permute = Collector::new(product(instances, circuit.outputs())?);
        let mut labels = OutputLabels::new(labels, instances, circuit)?;
        for first in (0..instances).step_by(LANES) {
            let lanes = LANES.min(instances - first);
            gather(bits, first, lanes, &mut known);
            let mut group = GarbledGroup {
                slots: &mut self.slots,
                zero_labels: &zero_labels[first * inputs..(first + lanes) * inputs],
                inputs,
                known: &known,
                outputs: &mut outputs,
                output_labels: &mut labels.of_group,
                delta: *self.delta,
                tweak: tweak(self.salt, self.batch),
                gate: 0,
            };
            garble_group(self.backend, circuit, &mut group, lanes, &mut self.chunk, sink)?;
            permute.scatter(&outputs, first, lanes);
            labels.scatter(first, lanes);
            self.batch += 1;
        }
        debug_assert_eq!(self.batch, end);
        self.chunk.flush(sink)?;
        Ok(permute.finish()?)
    }
}

/// Garbles one group of `lanes` instances, handing over chunks as they fill.
fn garble_group<E>(
    backend: Backend,
    circuit: &Circuit,
    group: &mut GarbledGroup<'_>,
    lanes: usize,
    chunk: &mut ChunkWriter,
    sink: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut steps: &[Step] = circuit.steps();
    let mut scratch = [Row::ZERO; PARTIAL_ROWS];
    while !steps.is_empty() {
        let first = group.gate;
        if lanes == LANES {
            let left = circuit.and_count() - first as usize;
            let done = backend.garble(group, steps, chunk.space(left));
            chunk.advance((group.gate - first) as usize);
            steps = &steps[done..];
            if !steps.is_empty() {
                chunk.flush(sink)?;
            }
        } else {
            let done = backend.garble(group, steps, &mut scratch);
            steps = &steps[done..];
            for row in &scratch[..(group.gate - first) as usize] {
                chunk.push(row, lanes, sink)?;
            }
        }
    }
    Ok(())
}

/// Rows of an incomplete group that are garbled before they are narrowed.
const PARTIAL_ROWS: usize = 16;

/// Garbles all instances of a circuit: see [`Garbler::garble`].
///
/// # Errors
/// As for [`Garbler::new`] and [`Garbler::garble`].
#[expect(clippy::too_many_arguments, reason = "the inputs of garbling, each of its own kind")]
pub fn garble<E: From<GcError>>(
    circuit: &Circuit,
    instances: usize,
    delta: Block,
    salt: Block,
    first_batch: u64,
    zero_labels: &[Block],
    bits: &Bits,
    sink: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<Bits, E> {
    Garbler::new(circuit, delta, salt, first_batch)?.garble(instances, zero_labels, bits, sink)
}

/// The permute bits of outputs that the evaluator may learn, instance-major.
pub struct OutputDecoding(Bits);

impl OutputDecoding {
    /// The decoding of the permute bits that garbling returned: from then on they are no share, but public.
    #[must_use]
    pub const fn new(permute: Bits) -> Self {
        Self(permute)
    }

    /// The packed bits to be sent.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    /// The decoding of `len` outputs that was received.
    ///
    /// # Errors
    /// [`GcError::Length`] if there are not exactly the bytes of `len` bits, or if unused bits are set.
    pub fn from_bytes(len: usize, bytes: &[u8]) -> Result<Self, GcError> {
        let error =
            GcError::Length { what: "output decoding", expected: Bits::byte_len(len), got: bytes.len() };
        Bits::from_bytes(len, bytes).map(Self).map_err(|_| error)
    }

    /// The outputs, from the evaluator's colour bits.
    ///
    /// # Errors
    /// [`GcError::Length`] if the lengths differ.
    pub fn decode(&self, colours: &Bits) -> Result<Bits, GcError> {
        let error = GcError::Length { what: "colour bits", expected: self.0.len(), got: colours.len() };
        self.0.xor(colours).map_err(|_| error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuit::Operand;

    /// Why the builder never gives a known wire to a two-party gate: instances share the pad of its one-label, so two
    /// rows give delta away.
    #[test]
    fn a_gate_that_takes_a_known_wire_gives_delta_away() {
        let steps = vec![
            Step::Garbler { out: 0, index: 0 },
            Step::Evaluator { out: 1, index: 0 },
            Step::And { out: 2, a: Operand::new(0, false), b: Operand::new(1, false) },
            Step::Output { index: 0, from: Operand::new(2, false) },
        ];
        let circuit = Circuit::from_steps(steps, 3, 1, 1);
        let delta = Block::from(0x1234_5679);
        let zero_labels: Vec<_> = (0..16).map(|i| Block::from(1 << 100 | i)).collect();
        let mut rows = Vec::new();
        let mut sink = |chunk: &[u8]| -> Result<(), GcError> {
            rows.extend(chunk.chunks(16).map(<[u8]>::to_vec));
            Ok(())
        };
        garble(&circuit, 16, delta, Block::ZERO, 0, &zero_labels, &Bits::zeros(16), &mut sink).unwrap();
        let sum: Vec<_> = rows[0].iter().zip(&rows[1]).map(|(a, b)| a ^ b).collect();
        assert_eq!(sum, delta.to_bytes());
    }
}
