//! The client: it encrypts, evaluates, and shows that it has done so as it committed.

use std::sync::Arc;

use lanner_bfv::function_privacy::PreparedPhase;
use lanner_bfv::halves::{C1, PreparedEncryption};
use lanner_bfv::{CoefficientEncoder, KeyChallenge, SecretKey};
use lanner_gc::{Evaluator, OutputDecoding, TablesInMemory, batches, chunk_lengths};
use lanner_ot::CorrelatedReceiver;
use lanner_primitives::{Bits, Block, Prg, Seed, Share, parallel};
use lanner_step::encoding::{read_bits, read_blocks, read_elements, undecodable, write_bits, write_blocks};
use lanner_step::{EvaluationSession, Outcome, ProtocolError, Result, kind};
use lanner_wire::{Channel, ChannelError, DecodeError, Encode, Reader, Writer, packed_len};
use lanner_yao::labels_to_ring::TERMS;
use zeroize::Zeroizing;

use crate::LABELS_OF_A_MESSAGE;
use crate::checks::{
    EQUATIONS, Each, all_terms, factors, hash, joined, of_equations, read_terms, with_first, write_terms,
};
use crate::form::{Form, Source};
use crate::linear::Linear;
use crate::scheme::{Behind, Layer, Scheme, Tweaks};

/// A network as the client runs it.
pub struct Client {
    pub(crate) scheme: Arc<Scheme>,
    /// In tests, what it does otherwise.
    #[cfg(test)]
    pub(crate) cheat: crate::tests::Cheat,
}

/// One-time material of a prediction. It is used up by value and cannot be copied.
pub struct ClientMaterial {
    salts: [Block; 2],
    /// Random choices of committed bits: the input's, then layer by layer.
    choices: Bits,
    /// `D`, if no committed bit differed from its choice, and of choices that differ.
    known: Each,
    changes: Zeroizing<Vec<Each>>,
    stages: Vec<Prepared>,
    checks: Vec<PreparedPhase>,
}

/// What is kept of one stage.
struct Prepared {
    /// Of the stage's layers.
    encryptions: Vec<PreparedEncryption>,
    phases: Vec<PreparedPhase>,
    /// `t_i` of each input wire of the circuits.
    labels: Zeroizing<Vec<Block>>,
    tables: Vec<u8>,
    /// Corrections of outputs.
    corrections: Zeroizing<Vec<[u64; TERMS]>>,
}

impl Client {
    /// Prepares a network.
    #[must_use]
    pub const fn new(scheme: Arc<Scheme>) -> Self {
        Self {
            scheme,
            #[cfg(test)]
            cheat: crate::tests::Cheat::Nothing,
        }
    }

    /// Offline: all that does not depend on the input.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the server's messages are not the ones due.
    pub fn offline<R: CorrelatedReceiver>(
        &self,
        channel: &mut dyn Channel,
        session: &mut EvaluationSession<R>,
        rng: &mut Prg,
    ) -> Result<ClientMaterial> {
        let scheme = &*self.scheme;
        let key = self.prove_key(channel, rng)?;
        let seeds = parallel::seeds(scheme.ciphertexts(), rng);
        let prepare = |seed: &Seed| key.prepare_encryption(&mut Prg::new(seed.clone()));
        let (announced, encryptions): (Vec<_>, Vec<_>) =
            parallel::map(seeds.iter(), prepare).into_iter().unzip();
        // C -> S: seeds of c1
        let seeds: Vec<u8> = announced.iter().flat_map(C1::to_bytes).collect();
        channel.send(kind::LINEAR_SEEDS, &seeds)?;
        let (choices, labels, _) = session.transfers(channel, scheme.transfers())?;
        channel.flush()?;
        let (of_input, mut of_layers) = labels.split_at(scheme.input_bits());
        // S -> C: salts
        let salts = channel.receive(kind::SALTS, 2 * Block::BYTES)?;
        let mut salts = Reader::new(&salts);
        let mut salt =
            || Ok::<_, ProtocolError>(Block::from_bytes(salts.array().map_err(ChannelError::from)?));
        let salts = [salt()?, salt()?];
        let mut tweaks = Tweaks::new(scheme, salts[0]);
        let (mut known, mut changes) = ([0; EQUATIONS], Zeroizing::new(Vec::new()));
        changes.resize(scheme.input_bits(), [0; EQUATIONS]);
        let mut encryptions = encryptions.into_iter();
        let mut stages = Vec::with_capacity(scheme.stages.len());
        for stage in &scheme.stages {
            let behind = &stage.behind;
            let mut received = Vec::new();
            for Layer { linear, .. } in scheme.layers_of(stage) {
                for wanted in &linear.wanted {
                    // S -> C: c1 of an answer
                    let second =
                        channel.receive(kind::LINEAR_SECOND_HALF, linear.modulus.second_half_len())?;
                    received.push((linear, second, wanted));
                }
            }
            let prepare = |(linear, second, wanted): (&Linear, Vec<u8>, &Vec<usize>)| {
                key.prepare_phase(&linear.modulus, &second, wanted)
            };
            let phases = parallel::map(received, prepare).into_iter().collect::<Result<_, _>>()?;
            let (own, rest) = of_layers.split_at(behind.wires());
            of_layers = rest;
            if behind.wires() > 0 {
                let committed = commit(scheme, channel, &mut tweaks, own, &mut known)?;
                changes.extend_from_slice(&committed);
            }
            stages.push(Prepared {
                encryptions: encryptions.by_ref().take(scheme.ciphertexts_of(stage)).collect(),
                phases,
                labels: Zeroizing::new(own.to_vec()),
                tables: receive_tables(channel, behind)?,
                corrections: receive_corrections(scheme, channel, behind)?,
            });
            tweaks.take(behind.converted())?;
        }
        let committed = commit(scheme, channel, &mut tweaks, of_input, &mut known)?;
        changes[..committed.len()].copy_from_slice(&committed);
        let last = scheme.parameters.degree() - 1;
        let mut checks = Vec::with_capacity(scheme.masks);
        for numbers in lanner_step::in_turns(scheme.masks) {
            // S -> C: c1 of a check
            let receive = |_| channel.receive(kind::CHECK_SECOND_HALF, scheme.check.second_half_len());
            let received = numbers.map(receive).collect::<Result<Vec<_>, _>>()?;
            let prepared =
                parallel::map(received, |second| key.prepare_phase(&scheme.check, &second, &[last]));
            checks.extend(prepared.into_iter().collect::<Result<Vec<_>, _>>()?);
        }
        Ok(ClientMaterial { salts, choices, known, changes, stages, checks })
    }

    /// A key under the server's half, and the proof that it is short.
    fn prove_key(&self, channel: &mut dyn Channel, rng: &mut Prg) -> Result<SecretKey> {
        let mut half = Seed::from_bytes([0; 16]);
        // S -> C: seed of a
        channel.receive_into(kind::KEY_HALF, half.as_bytes_mut())?;
        let (key, proof, announced) = SecretKey::generate_proven(&self.scheme.parameters, &half, rng);
        // C -> S: b, commitments
        channel.send(kind::KEY_COMMITMENTS, &announced)?;
        channel.flush()?;
        let mut asked = [0; KeyChallenge::ENCODED_LEN];
        // S -> C: which to open
        channel.receive_into(kind::KEY_CHALLENGE, &mut asked)?;
        // C -> S: openings
        channel.send(kind::KEY_ANSWER, &proof.answer(&KeyChallenge::from_bytes(&asked)?))?;
        channel.flush()?;
        Ok(key)
    }

    /// Online: what the client is told of its input.
    ///
    /// # Errors
    /// [`ProtocolError::WrongInput`] for an input out of range; [`ProtocolError::Channel`] if the server's messages are not the ones due, or end, as they do for a client whose
    /// check fails.
    #[allow(clippy::too_many_lines, reason = "a party's messages, in the diagram's order")]
    pub fn online(
        &self,
        channel: &mut dyn Channel,
        material: ClientMaterial,
        input: &Share,
    ) -> Result<Outcome> {
        let scheme = &*self.scheme;
        let ClientMaterial { salts, choices, mut known, changes, stages, checks } = material;
        let mut own = Own { elements: vec![self.raised(input)?], outputs: Vec::new() };
        let mut committed = Committed { choices: &choices, changes: &changes, at: 0 };
        // C -> S: bits of x
        let bits = bits_of(&own.elements[0], scheme.bits);
        #[cfg(test)]
        let bits = self.cheat.input(bits);
        let masked = committed.mask(scheme, &bits, &mut known)?;
        channel.send(kind::COMMITTED_BITS, &masked.to_bytes())?;
        let mut tweaks = Tweaks::new(scheme, salts[0]);
        let mut next_batch = 0;
        let encoder = CoefficientEncoder::new(&scheme.parameters, scheme.p.value())?;
        let mut checks = Some(checks);
        let mut values = Zeroizing::new(Vec::new());
        let (mut colours, mut scores) = (Bits::zeros(0), Zeroizing::new(Vec::new()));
        #[allow(unused_variables, reason = "numbers are for tests")]
        for (number, (stage, prepared)) in scheme.stages.iter().zip(stages).enumerate() {
            let behind = &stage.behind;
            let mut encryptions = prepared.encryptions.into_iter();
            #[allow(unused_variables, reason = "numbers and places are for tests")]
            for (layer, Layer { reads, linear }) in stage.layers.clone().zip(scheme.layers_of(stage)) {
                let slots = linear.scatter(&own.share(scheme, reads)?);
                for (at, (slots, encryption)) in slots.iter().zip(&mut encryptions).enumerate() {
                    // C -> S: c0
                    let half = encryption.encrypt(&encoder.encode(slots)?)?;
                    #[cfg(test)]
                    let half = self.cheat.half(half, layer, at, &scheme.parameters);
                    channel.send(kind::LINEAR_INPUT, &half.to_bytes())?;
                }
            }
            channel.flush()?;
            let mut phases = prepared.phases.into_iter();
            for Layer { linear, .. } in scheme.layers_of(stage) {
                let mut outputs = Zeroizing::new(vec![0; linear.elements()[1]]);
                for ((places, wanted), phase) in linear.outputs.iter().zip(&linear.wanted).zip(&mut phases) {
                    // S -> C: c0 of an answer
                    let first = channel.receive(kind::LINEAR_OUTPUT, linear.modulus.c0_len(wanted.len()))?;
                    let opened = phase.open(&first)?;
                    for ((_, element), value) in places.iter().zip(opened.iter()) {
                        outputs[*element] = *value;
                    }
                }
                #[cfg(test)]
                self.cheat.outputs(&mut outputs, own.outputs.len(), &scheme.p);
                own.outputs.push(outputs);
            }
            if scheme.ends_ciphertexts(stage) {
                // S -> C: coefficient N - 1 of each check
                let each = scheme.check.c0_len(1);
                let bytes = channel.receive(kind::CHECK_VALUES, scheme.masks * each)?;
                for (check, bytes) in checks.take().unwrap_or_default().into_iter().zip(bytes.chunks(each)) {
                    values.push(check.open(bytes)?[0]);
                }
            }
            let sum = own.share(scheme, &stage.sum)?;
            let Some(circuit) = behind.circuit() else {
                scores = sum;
                continue;
            };
            #[cfg(test)]
            let sum = self.cheat.sum(sum, number, &scheme.p);
            let bits = behind.evaluator_bits(&scheme.share(sum)?)?;
            #[cfg(test)]
            let bits = self.cheat.committed(bits, number);
            let masked = committed.mask(scheme, &bits, &mut known)?;
            // C -> S: bits of c
            channel.send(kind::MASKED_INPUT, &masked.to_bytes())?;
            channel.flush()?;
            let mut labels = prepared.labels;
            let mut answer = Zeroizing::new(vec![Block::ZERO; LABELS_OF_A_MESSAGE.min(labels.len())]);
            for labels in labels.chunks_mut(LABELS_OF_A_MESSAGE) {
                let answer = &mut answer[..labels.len()];
                // S -> C: D xor d Delta
                channel.receive_into(kind::INPUT_LABELS, Block::slice_as_bytes_mut(answer))?;
                labels.iter_mut().zip(&*answer).for_each(|(label, answer)| *label ^= *answer);
            }
            let mut results = Zeroizing::new(vec![Block::ZERO; behind.output_bits()]);
            let mut evaluator = Evaluator::new(circuit, salts[1], next_batch);
            next_batch += batches(behind.instances());
            let mut tables = TablesInMemory::new(&prepared.tables);
            colours =
                evaluator.evaluate_with_labels(behind.instances(), &labels, &mut results, &mut tables)?;
            tweaks.take(behind.wires())?;
            if let Behind::Activation(layer) = behind {
                #[cfg(test)]
                self.cheat.results(&mut results, number);
                let shares = tweaks.take(results.len())?.evaluator(&results, &prepared.corrections)?;
                let mut elements = Zeroizing::new(Vec::with_capacity(layer.instances()));
                for bits in shares.chunks_exact(layer.encoding().bits) {
                    let sum = |term: usize| bits.iter().fold(0, |sum, terms| scheme.p.add(sum, terms[term]));
                    elements.push(sum(0));
                    known = std::array::from_fn(|k| scheme.p.add(known[k], sum(k + 1)));
                }
                #[cfg(test)]
                self.cheat.elements(&mut elements, number, &scheme.p);
                own.elements.push(elements);
            }
        }
        let mut seed = Seed::from_bytes([0; 16]);
        // S -> C: seed of beta
        channel.receive_into(kind::CHECK_FACTORS, seed.as_bytes_mut())?;
        let told = joined(scheme, &factors(scheme, &seed), &values);
        let difference: Each = std::array::from_fn(|k| scheme.p.sub(known[k], told[k]));
        #[cfg(test)]
        let difference = self.cheat.difference(difference);
        // C -> S: hash of D
        channel.send(kind::CHECK_HASH, &hash(salts[0], &difference))?;
        channel.flush()?;
        self.learn(channel, &colours, &scores)
    }

    /// What the client is told behind the check.
    fn learn(&self, channel: &mut dyn Channel, colours: &Bits, scores: &[u64]) -> Result<Outcome> {
        let scheme = &*self.scheme;
        if let Some(Behind::Revealed(revealed)) = scheme.stages.last().map(|stage| &stage.behind) {
            // S -> C: permute bits
            let bytes = channel.receive(kind::DECODING, Bits::byte_len(colours.len()))?;
            let mut reader = Reader::new(&bytes);
            let permute = read_bits(&mut reader, colours.len()).map_err(ChannelError::from)?;
            let outputs = OutputDecoding::new(permute).decode(colours)?;
            let garbled = ChannelError::Malformed { what: "garbled tables" };
            return revealed.outcome(&outputs).ok_or(garbled.into());
        }
        // S -> C: its share of the scores
        let length = packed_len(scores.len(), scheme.ring.bits());
        let bytes = channel.receive(kind::REVEAL, length)?;
        let mut reader = Reader::new(&bytes);
        let theirs = read_elements(&mut reader, scheme.ring, scores.len()).map_err(ChannelError::from)?;
        let sums = scores.iter().zip(theirs.iter()).map(|(own, other)| scheme.ring.add(*own, *other));
        Ok(Outcome::Logits(sums.map(|sum| scheme.ring.signed(sum).into()).collect()))
    }

    /// How far each element of the input is above the least.
    fn raised(&self, input: &Share) -> Result<Zeroizing<Vec<u64>>> {
        let scheme = &*self.scheme;
        ProtocolError::check_share("input of a hardened network", input, scheme.ring, scheme.inputs)?;
        let raise = |element: &u64| {
            let raised = scheme.ring.signed(*element).checked_sub(scheme.low);
            let raised = raised.and_then(|raised| u64::try_from(raised).ok());
            raised
                .filter(|raised| raised >> scheme.bits == 0)
                .ok_or(ProtocolError::WrongInput("an element is out of its range"))
        };
        Ok(Zeroizing::new(input.values().iter().map(raise).collect::<Result<_>>()?))
    }
}

impl ClientMaterial {
    pub(crate) fn encode(&self, scheme: &Scheme, writer: &mut Writer) {
        self.salts.iter().for_each(|salt| writer.bytes(&salt.to_bytes()));
        write_bits(&self.choices, writer);
        write_terms(scheme, &[self.known], writer);
        write_terms(scheme, &self.changes, writer);
        for prepared in &self.stages {
            prepared.encryptions.iter().for_each(|encryption| encryption.encode(writer));
            prepared.phases.iter().for_each(|phase| phase.encode(writer));
            write_blocks(&prepared.labels, writer);
            writer.bytes(&prepared.tables);
            write_terms(scheme, &prepared.corrections, writer);
        }
        self.checks.iter().for_each(|check| check.encode(writer));
    }

    /// Reads what [`Self::encode`] wrote.
    pub(crate) fn decode(scheme: &Scheme, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let salts = [Block::from_bytes(reader.array()?), Block::from_bytes(reader.array()?)];
        let choices = read_bits(reader, scheme.transfers())?;
        let known = read_terms(scheme, 1, reader)?[0];
        let changes = read_terms(scheme, scheme.transfers(), reader)?;
        let mut stages = Vec::with_capacity(scheme.stages.len());
        for stage in &scheme.stages {
            let (layers, behind) = (scheme.layers_of(stage), &stage.behind);
            let mut encryptions = Vec::new();
            for _ in 0..scheme.ciphertexts_of(stage) {
                let encryption = PreparedEncryption::decode(&scheme.parameters, reader);
                encryptions.push(encryption.map_err(undecodable)?);
            }
            let mut phases = Vec::new();
            for Layer { linear, .. } in layers {
                for wanted in &linear.wanted {
                    let phase = PreparedPhase::decode(&linear.modulus, wanted.len(), reader);
                    phases.push(phase.map_err(undecodable)?);
                }
            }
            let labels = read_blocks(reader, behind.wires())?;
            let tables = behind.circuit().map_or(0, |circuit| circuit.table_bytes(behind.instances()));
            let tables = reader.bytes(tables)?.to_vec();
            let corrections = read_terms(scheme, behind.converted(), reader)?;
            stages.push(Prepared { encryptions, phases, labels, tables, corrections });
        }
        let mut checks = Vec::with_capacity(scheme.masks);
        for _ in 0..scheme.masks {
            checks.push(PreparedPhase::decode(&scheme.check, 1, reader).map_err(undecodable)?);
        }
        Ok(Self { salts, choices, known, changes, stages, checks })
    }
}

/// The client's shares of what is computed.
struct Own {
    /// Of the input and of each stage's elements.
    elements: Vec<Zeroizing<Vec<u64>>>,
    /// Of each layer's outputs.
    outputs: Vec<Zeroizing<Vec<u64>>>,
}

impl Own {
    /// Of a sum.
    fn share(&self, scheme: &Scheme, form: &Form) -> Result<Zeroizing<Vec<u64>>> {
        form.of(&scheme.p, |source| match source {
            Source::Elements(value) => self.elements.get(value).map(|share| share.as_slice()),
            Source::Outputs(layer) => self.outputs.get(layer).map(|share| share.as_slice()),
        })
    }
}

/// The bits committed so far.
struct Committed<'a> {
    choices: &'a Bits,
    changes: &'a [Each],
    at: usize,
}

impl Committed<'_> {
    /// Masks the next bits by their choices, and counts what those that differ change.
    fn mask(&mut self, scheme: &Scheme, bits: &Bits, known: &mut Each) -> Result<Bits> {
        let first = self.at;
        self.at += bits.len();
        let choices: Bits = (first..self.at).map(|i| self.choices.get(i)).collect();
        let masked = bits.xor(&choices)?;
        // Which bits differ is what is sent.
        let differing = masked.iter().zip(&self.changes[first..]).filter(|(bit, _)| *bit);
        for (_, change) in differing {
            *known = std::array::from_fn(|k| scheme.p.add(known[k], change[k]));
        }
        Ok(masked)
    }
}

/// Receives corrections of labels of random choices; adds up the shares, and returns what a choice that differs from its bit changes.
fn commit(
    scheme: &Scheme,
    channel: &mut dyn Channel,
    tweaks: &mut Tweaks,
    labels: &[Block],
    known: &mut Each,
) -> Result<Zeroizing<Vec<Each>>> {
    // S -> C: corrections of committed bits
    let length = packed_len(labels.len() * EQUATIONS, scheme.ring.bits());
    let sent: Zeroizing<Vec<Each>> =
        all_terms(scheme, labels.len(), &channel.receive(kind::CORRECTIONS, length)?)?;
    let shares = tweaks.take(labels.len())?.evaluator(labels, &with_first(&sent))?;
    let shares = of_equations(&shares);
    let (p, mut changes) = (&scheme.p, Zeroizing::new(Vec::with_capacity(labels.len())));
    for share in shares.iter() {
        *known = std::array::from_fn(|k| p.add(known[k], share[k]));
        // From the share to less than nothing by as much.
        changes.push(std::array::from_fn(|k| p.neg(p.add(share[k], share[k]))));
    }
    Ok(changes)
}

fn receive_tables(channel: &mut dyn Channel, behind: &Behind) -> Result<Vec<u8>> {
    let Some(circuit) = behind.circuit() else { return Ok(Vec::new()) };
    let mut tables = vec![0; circuit.table_bytes(behind.instances())];
    let mut rest = tables.as_mut_slice();
    for length in chunk_lengths(circuit, behind.instances()) {
        let (chunk, later) = rest.split_at_mut(length);
        // S -> C: tables
        channel.receive_into(kind::TABLES, chunk)?;
        rest = later;
    }
    Ok(tables)
}

fn receive_corrections(
    scheme: &Scheme,
    channel: &mut dyn Channel,
    behind: &Behind,
) -> Result<Zeroizing<Vec<[u64; TERMS]>>> {
    let count = behind.converted();
    if count == 0 {
        return Ok(Zeroizing::default());
    }
    // S -> C: corrections of outputs
    let length = packed_len(count * TERMS, scheme.ring.bits());
    all_terms(scheme, count, &channel.receive(kind::CORRECTIONS, length)?)
}

fn bits_of(values: &[u64], width: u32) -> Bits {
    values.iter().flat_map(|value| (0..width).map(move |bit| value >> bit & 1 == 1)).collect()
}
