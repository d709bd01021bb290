//! How the client obtains garbled circuits and evaluates them.

use lanner_gc::{Circuit, Evaluator, TablesInMemory, chunk_lengths};
use lanner_ot::CorrelatedReceiver;
use lanner_primitives::{Bits, Block, parallel};
use lanner_step::encoding::{read_bits, read_blocks, write_bits, write_blocks};
use lanner_step::{EvaluationSession, ProtocolError, Result, Tweaks, kind};
use lanner_wire::{Channel, DecodeError, Reader, Writer};
use zeroize::Zeroizing;

use super::parts::{Part, in_turns, length, parts};

/// The transfers of a layer, asked for; the server's answer is still to be received.
pub struct ClientRequest {
    pub(super) inputs: Transfers,
    /// One for each output bit that becomes arithmetic.
    pub(super) outputs: Transfers,
    pub(super) tweaks: Tweaks,
}

/// Random correlated transfers: choices `r_i` and blocks `t_i`, from index `first` on.
pub(super) struct Transfers {
    pub(super) choices: Bits,
    pub(super) blocks: Zeroizing<Vec<Block>>,
    pub(super) first: u64,
}

/// A circuit's instances ready to be evaluated, once.
pub(super) struct Garbled {
    /// `r_i` of each input wire.
    choices: Bits,
    /// `t_i` of each input wire.
    labels: Zeroizing<Vec<Block>>,
    tables: Vec<u8>,
    tweaks: Tweaks,
}

/// Asks for the transfers of `instances` of `circuit`, and for `outputs` more.
pub(super) fn request<R: CorrelatedReceiver>(
    session: &mut EvaluationSession<R>,
    channel: &mut dyn Channel,
    circuit: &Circuit,
    instances: usize,
    outputs: usize,
) -> Result<ClientRequest> {
    let mut ask = |count| {
        let (choices, blocks, first) = session.transfers(channel, count)?;
        Ok::<_, ProtocolError>(Transfers { choices, blocks, first })
    };
    let inputs = ask(circuit.evaluator_inputs() * instances)?;
    let outputs = ask(outputs)?;
    Ok(ClientRequest { inputs, outputs, tweaks: session.take_batches(instances) })
}

impl Transfers {
    /// Receives the tables whose input labels these transfers are.
    pub(super) fn receive_tables(
        self,
        channel: &mut dyn Channel,
        circuit: &Circuit,
        instances: usize,
        tweaks: Tweaks,
    ) -> Result<Garbled> {
        let mut tables = vec![0; circuit.table_bytes(instances)];
        let mut rest = tables.as_mut_slice();
        for length in parts(circuit, instances).flat_map(|part| chunk_lengths(circuit, part.len())) {
            let (chunk, later) = rest.split_at_mut(length);
            channel.receive_into(kind::TABLES, chunk)?;
            rest = later;
        }
        Ok(Garbled { choices: self.choices, labels: self.blocks, tables, tweaks })
    }
}

impl Garbled {
    pub(super) fn encode(&self, writer: &mut Writer) {
        write_bits(&self.choices, writer);
        write_blocks(&self.labels, writer);
        writer.bytes(&self.tables);
        writer.bytes(&self.tweaks.salt.to_bytes());
        writer.u64(self.tweaks.first_batch);
    }

    /// Reads what [`Self::encode`] wrote of a given number of instances of a circuit.
    pub(super) fn decode(
        reader: &mut Reader<'_>,
        circuit: &Circuit,
        instances: usize,
    ) -> Result<Self, DecodeError> {
        let wires = circuit.evaluator_inputs() * instances;
        let (choices, labels) = (read_bits(reader, wires)?, read_blocks(reader, wires)?);
        let tables = reader.bytes(circuit.table_bytes(instances))?.to_vec();
        let tweaks = Tweaks { salt: Block::from_bytes(reader.array()?), first_batch: reader.u64()? };
        Ok(Self { choices, labels, tables, tweaks })
    }

    /// Online: obtains the labels of `input` and evaluates; returns the colour bits of the output.
    pub(super) fn evaluate(
        self,
        channel: &mut dyn Channel,
        circuit: &Circuit,
        instances: usize,
        input: &Bits,
    ) -> Result<Bits> {
        let Self { choices, mut labels, tables, tweaks: Tweaks { salt, first_batch } } = self;
        // C -> S: d
        channel.send(kind::MASKED_INPUT, &input.xor(&choices)?.to_bytes())?;
        let mut colours = Vec::new();
        let mut answer = Zeroizing::new(Vec::new());
        let each = (length(circuit) * circuit.evaluator_inputs()).max(1);
        let mut rest = tables.as_slice();
        let tables_of = |part: Part| {
            let (own, later) = rest.split_at(circuit.table_bytes(part.len()));
            rest = later;
            (part, own)
        };
        for mut some in in_turns(parts(circuit, instances).map(tables_of).zip(labels.chunks_mut(each))) {
            for (_, labels) in &mut some {
                // S -> C: D xor d Delta
                answer.resize(labels.len(), Block::ZERO);
                channel.receive_into(kind::INPUT_LABELS, Block::slice_as_bytes_mut(&mut answer))?;
                labels.iter_mut().zip(answer.iter()).for_each(|(label, answer)| *label ^= *answer);
            }
            colours.extend(parallel::map(some, |((part, tables), labels)| {
                let mut evaluator = Evaluator::new(circuit, salt, part.first_batch(first_batch));
                evaluator.evaluate(part.len(), labels, &mut TablesInMemory::new(tables))
            }));
        }
        Ok(Bits::join(&colours.into_iter().collect::<Result<Vec<_>, _>>()?)?)
    }
}
