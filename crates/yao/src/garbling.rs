//! How the server garbles the parts of a layer.

use lanner_gc::{Circuit, Garbler};
use lanner_ot::CorrelatedSender;
use lanner_primitives::{Bits, Block, Prg, PrgStream, Seed};
use lanner_step::{GarblingSession, ProtocolError, Result, Tweaks, kind};
use lanner_wire::{Channel, ChannelError, DecodeError, Kind, Reader, Writer};
use zeroize::Zeroizing;

use super::parts::{Part, length, parts};

/// `D_i` of each input wire, as the seed that they are expanded from, and delta. Two answers would give delta away, so one answer
/// consumes them.
pub(super) struct InputLabels {
    /// Behind a pointer: material is moved about, and each move would leave a copy.
    seed: Box<Seed>,
    delta: Box<Zeroizing<Block>>,
    wires: usize,
    /// The wires of a part, and of one message.
    each: usize,
}

impl InputLabels {
    /// Fresh ones for `wires` wires of a circuit's instances.
    pub(super) fn random(circuit: &Circuit, wires: usize, delta: Block, rng: &mut Prg) -> Self {
        Self::new(circuit, wires, delta, rng.seed())
    }

    fn new(circuit: &Circuit, wires: usize, delta: Block, seed: Seed) -> Self {
        let each = (length(circuit) * circuit.evaluator_inputs()).max(1);
        Self { seed: Box::new(seed), delta: Box::new(Zeroizing::new(delta)), wires, each }
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.bytes(self.seed.as_bytes());
        writer.u128(self.delta.0);
    }

    /// Reads what [`Self::encode`] wrote for a given number of wires of a circuit's instances.
    pub(super) fn decode(
        reader: &mut Reader<'_>,
        circuit: &Circuit,
        wires: usize,
    ) -> Result<Self, DecodeError> {
        let (seed, delta) = (Seed::from_bytes(reader.array()?), Block(reader.u128()?));
        if !delta.lsb() {
            return Err(DecodeError::Invalid { what: "delta" });
        }
        Ok(Self::new(circuit, wires, delta, seed))
    }

    /// `D_i` at any `i`, block by block.
    pub(super) fn stream(&self) -> PrgStream {
        PrgStream::new(&self.seed)
    }

    /// Online: receives the masked input bits and answers with the labels of what they mask.
    pub(super) fn answer(self, channel: &mut dyn Channel) -> Result<()> {
        let Self { ref delta, wires, each, .. } = self;
        // C -> S: d
        let masked = receive_bits(channel, kind::MASKED_INPUT, wires)?;
        let mut bits = masked.iter();
        let stream = self.stream();
        let mut answer = Zeroizing::new(Vec::with_capacity(each.min(wires)));
        for first in (0..wires).step_by(each) {
            answer.resize(each.min(wires - first), Block::ZERO);
            stream.fill_at(first as u64, &mut answer);
            for (label, bit) in answer.iter_mut().zip(&mut bits) {
                *label ^= ***delta & Block::mask(bit);
            }
            // S -> C: D xor d Delta
            channel.send(kind::INPUT_LABELS, Block::slice_as_bytes(&answer))?;
        }
        Ok(())
    }
}

/// What all parts of a layer are garbled with.
pub(super) struct Garbling<'a> {
    pub(super) circuit: &'a Circuit,
    pub(super) tweaks: Tweaks,
    pub(super) labels: &'a InputLabels,
    pub(super) garbler_bits: &'a Bits,
}

impl Garbling<'_> {
    /// Garbles all parts in order and sends their tables as they are made: the client takes one in while the next is garbled. The wires'
    /// `q_i` become their zero-labels `q_i xor D_i`; returns the permute bits.
    pub(super) fn garble_all(
        &self,
        instances: usize,
        wires: &mut [Block],
        send: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<Bits> {
        let parts = parts(self.circuit, instances).zip(wires.chunks_mut(self.labels.each));
        let permute =
            parts.map(|(part, wires)| self.garble(&part, wires, send)).collect::<Result<Vec<_>, _>>()?;
        Ok(Bits::join(&permute)?)
    }

    /// Garbles one part.
    fn garble(
        &self,
        part: &Part,
        wires: &mut [Block],
        send: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<Bits> {
        let circuit = self.circuit;
        let mut d = Zeroizing::new(vec![Block::ZERO; wires.len()]);
        self.labels.stream().fill_at(part.first_of(circuit.evaluator_inputs()) as u64, &mut d);
        wires.iter_mut().zip(d.iter()).for_each(|(q, d)| *q ^= *d);
        let width = circuit.garbler_inputs();
        let bits = self.garbler_bits.part(part.first_word(width), part.len() * width);
        let mut garbler = Garbler::new(
            circuit,
            **self.labels.delta,
            self.tweaks.salt,
            part.first_batch(self.tweaks.first_batch),
        )?;
        garbler.garble(part.len(), wires, &bits, send)
    }
}

/// Garbles instances of a circuit and sends the tables; returns the `D_i` and the permute bits.
pub(super) fn garble<S: CorrelatedSender>(
    session: &mut GarblingSession<S>,
    channel: &mut dyn Channel,
    (circuit, instances): (&Circuit, usize),
    mut wires: Zeroizing<Vec<Block>>,
    garbler_bits: &Bits,
    rng: &mut Prg,
) -> Result<(InputLabels, Bits)> {
    let labels = InputLabels::random(circuit, wires.len(), session.cot().delta(), rng);
    // Before anything is sent.
    let tweaks = session.take_batches(instances)?;
    let garbling = Garbling { circuit, tweaks, labels: &labels, garbler_bits };
    // S -> C: tables
    let mut send = |chunk: &[u8]| Ok::<_, ProtocolError>(channel.send(kind::TABLES, chunk)?);
    let permute = garbling.garble_all(instances, &mut wires, &mut send)?;
    Ok((labels, permute))
}

/// Bits of a message.
pub(super) fn receive_bits(channel: &mut dyn Channel, kind: Kind, bits: usize) -> Result<Bits> {
    let bytes = channel.receive(kind, Bits::byte_len(bits))?;
    Bits::from_bytes(bits, &bytes).map_err(|_| ChannelError::Malformed { what: "bits" }.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lanner_gc::library::relu_rescale;
    use lanner_primitives::Ring;

    use super::*;

    /// Tables, permute bits and zero-labels.
    type Garbled = (Vec<u8>, Bits, Vec<Block>);

    fn same(a: &Garbled, b: &Garbled) -> bool {
        a.0 == b.0 && a.1.as_words() == b.1.as_words() && a.2 == b.2
    }

    #[test]
    fn parts_are_what_one_garbler_makes_of_all_instances() {
        let masked = relu_rescale(Ring::Prime(1_032_193), 7).unwrap();
        let circuit = masked.circuit();
        let mut rng = Prg::new(Seed::from_bytes([1; 16]));
        let (delta, salt) = (Block::random(&mut rng).with_lsb(true), Block::random(&mut rng));
        for instances in [1, length(circuit), 4 * length(circuit) + 21] {
            let labels =
                InputLabels::random(circuit, circuit.evaluator_inputs() * instances, delta, &mut rng);
            let garbler_bits = Bits::random(circuit.garbler_inputs() * instances, &mut rng);
            let mut q = vec![Block::ZERO; labels.wires];
            rng.fill_blocks(&mut q);

            let (mut tables, mut wires) = (Vec::new(), q.clone());
            let garbling = Garbling {
                circuit,
                tweaks: Tweaks { salt, first_batch: 5 },
                labels: &labels,
                garbler_bits: &garbler_bits,
            };
            let mut send = |chunk: &[u8]| {
                tables.extend_from_slice(chunk);
                Ok(())
            };
            let permute = garbling.garble_all(instances, &mut wires, &mut send).unwrap();
            let in_parts = (tables, permute, wires);

            let mut zero_labels = vec![Block::ZERO; q.len()];
            Prg::new(Seed::clone(&labels.seed)).fill_blocks(&mut zero_labels);
            zero_labels.iter_mut().zip(&q).for_each(|(d, q)| *d ^= *q);
            let garble_from = |first_batch| {
                let mut tables = Vec::new();
                let mut keep = |chunk: &[u8]| {
                    tables.extend_from_slice(chunk);
                    Ok::<_, ProtocolError>(())
                };
                let mut garbler = Garbler::new(circuit, delta, salt, first_batch).unwrap();
                let permute = garbler.garble(instances, &zero_labels, &garbler_bits, &mut keep).unwrap();
                (tables, permute, zero_labels.clone())
            };
            assert!(same(&in_parts, &garble_from(5)), "{instances} instances");
            assert!(!same(&in_parts, &garble_from(6)));
        }
    }
}
