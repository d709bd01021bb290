//! The client: evaluator, and receiver of oblivious transfer.

use lanner_gc::{Circuit, Evaluator, OutputDecoding, TablesInMemory, batches, chunk_lengths};
use lanner_ot::{CorrelatedReceiver, arithmetic};
use lanner_primitives::{Bits, Block};
use lanner_share::Share;
use lanner_wire::Channel;
use zeroize::Zeroizing;

use super::function::{ArgMax, Layer, group};
use crate::convert::bits_to_ring::ClientBits;
use crate::{ProtocolError, kind};

/// The client's state of evaluation in one session.
pub struct EvaluationSession<R> {
    cot: R,
    salt: Block,
    next_batch: u64,
}

/// One-time material: garbled tables, labels of random bits, and what turns the output arithmetic.
pub struct ClientMaterial {
    garbled: Garbled,
    output: Output,
}

struct Garbled {
    /// `r_i` of each input wire, and `t_i`.
    choices: Bits,
    labels: Zeroizing<Vec<Block>>,
    tables: Vec<u8>,
    first_batch: u64,
}

enum Output {
    Shared(ClientBits),
    Revealed(OutputDecoding),
}

/// An activation layer on the client's side.
pub struct ClientLayer(Layer);

/// An arg-max on the client's side.
pub struct ClientArgMax(ArgMax);

impl<R: CorrelatedReceiver> EvaluationSession<R> {
    /// Takes the session's source of oblivious transfers and its public salt.
    #[must_use]
    pub fn new(cot: R, salt: Block) -> Self {
        Self { cot, salt, next_batch: 0 }
    }

    /// Prepares the labels of random bits and receives the tables.
    fn receive(
        &mut self,
        channel: &mut dyn Channel,
        circuit: &Circuit,
        instances: usize,
    ) -> Result<Garbled, ProtocolError> {
        let inputs = circuit.evaluator_inputs() * instances;
        let mut labels = Zeroizing::new(Vec::with_capacity(inputs));
        let (choices, _) = self.cot.extend_random(channel, inputs, &mut labels)?;
        let mut tables = vec![0; circuit.table_bytes(instances)];
        let mut rest = tables.as_mut_slice();
        for length in chunk_lengths(circuit, instances) {
            let (chunk, later) = rest.split_at_mut(length);
            channel.receive_into(kind::TABLES, chunk)?;
            rest = later;
        }
        let first_batch = self.next_batch;
        self.next_batch += batches(instances);
        Ok(Garbled { choices, labels, tables, first_batch })
    }

    /// Online: obtains the labels of `input` and evaluates; returns the colour bits of the output.
    fn evaluate(
        &self,
        channel: &mut dyn Channel,
        circuit: &Circuit,
        instances: usize,
        garbled: Garbled,
        input: &Bits,
    ) -> Result<Bits, ProtocolError> {
        let Garbled { choices, mut labels, tables, first_batch } = garbled;
        // C -> S: d
        channel.send(kind::MASKED_INPUT, &input.xor(&choices)?.to_bytes())?;
        // S -> C: D xor d Delta
        let mut answer = Zeroizing::new(vec![Block::ZERO; labels.len()]);
        channel.receive_into(kind::INPUT_LABELS, Block::slice_as_bytes_mut(&mut answer))?;
        labels.iter_mut().zip(answer.iter()).for_each(|(label, answer)| *label ^= *answer);
        let mut evaluator = Evaluator::new(circuit, self.salt, first_batch);
        Ok(evaluator.evaluate(instances, &labels, &mut TablesInMemory::new(&tables))?)
    }
}

impl ClientLayer {
    /// Prepares a layer.
    #[must_use]
    pub fn new(layer: Layer) -> Self {
        Self(layer)
    }

    /// Offline: receives garbled tables and prepares both oblivious transfers.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's messages are not the ones due.
    pub fn offline<R: CorrelatedReceiver>(
        &self,
        channel: &mut dyn Channel,
        session: &mut EvaluationSession<R>,
    ) -> Result<ClientMaterial, ProtocolError> {
        let layer = &self.0;
        let garbled = session.receive(channel, layer.circuit(), layer.instances())?;
        let ring = group(layer.encoding().ring)?;
        let (choices, products) =
            arithmetic::receive_random(&mut session.cot, channel, ring, layer.output_bits())?;
        let output = Output::Shared(ClientBits::new(choices, products.to_vec())?);
        Ok(ClientMaterial { garbled, output })
    }

    /// Online: returns the client's share of the output; the message for the server's is queued.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if `share` does not fit; [`ProtocolError::Channel`] if the peer's messages are not the
    /// ones due.
    pub fn online<R: CorrelatedReceiver>(
        &self,
        channel: &mut dyn Channel,
        session: &EvaluationSession<R>,
        material: ClientMaterial,
        share: &Share,
    ) -> Result<Share, ProtocolError> {
        let layer = &self.0;
        let input = layer.evaluator_bits(share)?;
        let colours =
            session.evaluate(channel, layer.circuit(), layer.instances(), material.garbled, &input)?;
        let Output::Shared(output) = material.output else {
            return Err(ProtocolError::Shape { what: "material of another layer" });
        };
        // C -> S: e
        let (share, masked) = output.convert(layer.encoding(), &colours)?;
        channel.send(kind::MASKED_BITS, &masked.to_bytes())?;
        Ok(share)
    }
}

impl ClientArgMax {
    /// Prepares an arg-max.
    #[must_use]
    pub fn new(layer: ArgMax) -> Self {
        Self(layer)
    }

    /// Offline: receives garbled tables and what decodes the index.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's messages are not the ones due.
    pub fn offline<R: CorrelatedReceiver>(
        &self,
        channel: &mut dyn Channel,
        session: &mut EvaluationSession<R>,
    ) -> Result<ClientMaterial, ProtocolError> {
        let outputs = self.0.circuit().outputs();
        let garbled = session.receive(channel, self.0.circuit(), 1)?;
        let bytes = channel.receive(kind::DECODING, Bits::byte_len(outputs))?;
        let output = Output::Revealed(OutputDecoding::from_bytes(outputs, &bytes)?);
        Ok(ClientMaterial { garbled, output })
    }

    /// Online: the index of the largest score, ties to the lowest index.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if `share` does not fit; [`ProtocolError::Channel`] if the peer's message is not the one
    /// due or the index is not of a class.
    pub fn online<R: CorrelatedReceiver>(
        &self,
        channel: &mut dyn Channel,
        session: &EvaluationSession<R>,
        material: ClientMaterial,
        share: &Share,
    ) -> Result<usize, ProtocolError> {
        let input = self.0.evaluator_bits(share)?;
        let colours = session.evaluate(channel, self.0.circuit(), 1, material.garbled, &input)?;
        let Output::Revealed(decoding) = material.output else {
            return Err(ProtocolError::Shape { what: "material of another layer" });
        };
        let index = decoding.decode(&colours)?;
        let index = index.iter().enumerate().map(|(place, bit)| usize::from(bit) << place).sum();
        if index < self.0.classes() {
            Ok(index)
        } else {
            Err(lanner_wire::ChannelError::Malformed { what: "garbled tables" }.into())
        }
    }
}
