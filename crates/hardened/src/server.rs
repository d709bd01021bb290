//! The server: it has the weights, garbles, and checks.

use std::sync::Arc;

use lanner_bfv::function_privacy::{CoefficientSealing, PhaseSealing};
use lanner_bfv::halves::{C0, C1};
use lanner_bfv::{Ciphertext, KeyChallenge, KeyProof, KeyVerifier, LastCoefficient, PublicKey, WideFactor};
use lanner_gc::{Garbler, OutputDecoding, batches};
use lanner_ot::CorrelatedSender;
use lanner_primitives::{Bits, Block, Prg, PrgStream, Seed, parallel};
use lanner_ring::sample::uniform_below;
use lanner_ring::{Modulus, Shoup};
use lanner_step::encoding::{read_bits, read_elements, undecodable, write_bits, write_elements};
use lanner_step::{GarblingSession, ProtocolError, Result, in_turns, kind};
use lanner_wire::{Channel, ChannelError, DecodeError, Reader, Writer};
use lanner_yao::labels_to_ring::TERMS;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::LABELS_OF_A_MESSAGE;
use crate::checks::{
    EQUATIONS, Each, factors, hash, joined, of_equations, read_seed, read_terms, with_first, write_terms,
};
use crate::form::{Form, Source};
use crate::linear::{Residues, Weights};
use crate::scheme::{Behind, Layer, SIDE_BITS, Scheme, Stage, Tweaks};

/// A network as the server runs it, shared by all sessions.
pub struct Server {
    pub(crate) scheme: Arc<Scheme>,
    weights: Vec<Weights>,
}

/// One-time material of a prediction. It is used up by value and cannot be copied.
pub struct ServerMaterial {
    salt: Block,
    delta: Box<Zeroizing<Block>>,
    /// What `D_i` of all wires are expanded from.
    labels: Seed,
    /// What `V` and `beta` are.
    masks: Seed,
    factors: Seed,
    layers: Vec<Vec<PhaseSealing>>,
    checks: Vec<CoefficientSealing>,
    /// `E`, if no committed bit differed from its random choice.
    expected: Each,
    /// What a committed bit that differs adds: the input's, then layer by layer.
    changes: Zeroizing<Vec<Each>>,
    told: Last,
}

/// What the client is told after the check.
enum Last {
    Decoding(Bits),
    Scores(Zeroizing<Vec<u64>>),
}

/// What the server knows of one prediction while it prepares it.
struct Preparation<'a> {
    scheme: &'a Scheme,
    channel: &'a mut dyn Channel,
    delta: Block,
    garbling_salt: Block,
    next_batch: u64,
    tweaks: Tweaks,
    labels: PrgStream,
    next_label: u64,
    expected: Each,
    changes: Zeroizing<Vec<Each>>,
}

/// What multiplies each of some elements in each equation.
type Multipliers = [Zeroizing<Vec<u64>>; EQUATIONS];

/// What the server knows of values while it prepares a prediction.
struct Known {
    /// Its shares of the input and of each stage's elements.
    elements: Vec<Zeroizing<Vec<u64>>>,
    /// Of each layer's outputs, its share, and the masks in it.
    outputs: Vec<[Zeroizing<Vec<u64>>; 2]>,
}

impl Known {
    /// Its share of a sum.
    fn shares(&self, scheme: &Scheme, form: &Form) -> Result<Zeroizing<Vec<u64>>> {
        form.of(&scheme.p, |source| match source {
            Source::Elements(value) => self.elements.get(value).map(|share| share.as_slice()),
            Source::Outputs(layer) => self.outputs.get(layer).map(|[share, _]| share.as_slice()),
        })
    }

    /// The sum of the masks in it.
    fn masks(&self, scheme: &Scheme, form: &Form) -> Result<Zeroizing<Vec<u64>>> {
        form.of(&scheme.p, |source| match source {
            Source::Elements(_) => None,
            Source::Outputs(layer) => self.outputs.get(layer).map(|[_, masks]| masks.as_slice()),
        })
    }
}

impl Server {
    /// Prepares a network with the weights and biases of its layers.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] or [`ProtocolError::WrongModel`] if they do not fit.
    pub fn new(scheme: Arc<Scheme>, layers: &[(&[i64], Vec<i64>)]) -> Result<Self> {
        ProtocolError::check_length("layers", scheme.layers.len(), layers.len())?;
        let of_layer = |(layer, (weights, bias)): (&crate::scheme::Layer, &(&[i64], Vec<i64>))| {
            Weights::new(&layer.linear, &scheme.parameters, &scheme.basis, weights, bias)
        };
        let weights = scheme.layers.iter().zip(layers).map(of_layer).collect::<Result<_>>()?;
        Ok(Self { scheme, weights })
    }

    /// Offline: all that does not depend on the input. The client speaks, too.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] or [`ProtocolError::Ot`] if the client fails a check that no honest one fails; [`ProtocolError::Channel`] if its messages are not the ones due.
    #[allow(clippy::too_many_lines, reason = "a party's messages, in the diagram's order")]
    pub fn offline<S: CorrelatedSender>(
        &self,
        channel: &mut dyn Channel,
        session: &mut GarblingSession<S>,
        rng: &mut Prg,
    ) -> Result<ServerMaterial> {
        let scheme = &*self.scheme;
        let key = receive_key(scheme, channel, rng)?;
        // C -> S: seeds of c1
        let seeds = channel.receive(kind::LINEAR_SEEDS, scheme.ciphertexts() * C1::ENCODED_LEN)?;
        let expand = |seed| Ok::<_, ProtocolError>(C1::from_bytes(seed)?.expand(&scheme.parameters));
        let announced: Vec<Ciphertext> =
            parallel::map(seeds.chunks(C1::ENCODED_LEN), expand).into_iter().collect::<Result<_>>()?;
        // Checked before anything is said that depends on it.
        let (q, _) = session.transfers(channel, scheme.transfers())?;
        let delta = session.cot().delta();
        let (salt, garbling_salt) = (Block::public(rng), Block::public(rng));
        // S -> C: salts
        channel.send(kind::SALTS, &[salt.to_bytes(), garbling_salt.to_bytes()].concat())?;
        let (labels, masks, seed_of_factors) = (rng.seed(), rng.seed(), rng.seed());
        let factors = factors(scheme, &seed_of_factors);
        let v = multipliers_of_checks(scheme, announced.len(), &masks, &factors)?;
        let chi = self.draw_chi(rng);
        let eta = self.multipliers(&v, &chi)?;
        let mut prepared = Preparation {
            scheme,
            channel,
            delta,
            garbling_salt,
            next_batch: 0,
            tweaks: Tweaks::new(scheme, salt),
            labels: PrgStream::new(&labels),
            next_label: 0,
            expected: [0; EQUATIONS],
            changes: Zeroizing::new(Vec::with_capacity(scheme.transfers())),
        };
        // The input's come first.
        prepared.changes.resize(scheme.input_bits(), [0; EQUATIONS]);
        let seeds = parallel::seeds(scheme.masks, rng);
        // The checks are long to compute and short to send: meanwhile tables are sent.
        let (checks, made) = parallel::beside(
            || seal_checks(scheme, &announced, &key, &masks, &seeds),
            || {
                let q = q.split_at(scheme.input_bits());
                let made = self.prepare_stages(&mut prepared, &announced, &key, q, (&chi, &eta), rng)?;
                // The client goes on while checks are computed.
                prepared.channel.flush()?;
                Ok::<_, ProtocolError>(made)
            },
        );
        let (layers, told) = made?;
        let (seconds, checks): (Vec<_>, Vec<_>) = checks?.into_iter().unzip();
        for second in seconds {
            // S -> C: c1 of a check
            prepared.channel.send(kind::CHECK_SECOND_HALF, &second)?;
        }
        prepared.channel.flush()?;
        let Preparation { mut expected, changes, .. } = prepared;
        let shares: Vec<u64> = checks.iter().map(CoefficientSealing::share).collect();
        let of_checks = joined(scheme, &factors, &shares);
        expected.iter_mut().zip(of_checks).for_each(|(sum, share)| *sum = scheme.p.add(*sum, share));
        Ok(ServerMaterial {
            salt,
            delta: Box::new(Zeroizing::new(delta)),
            labels,
            masks,
            factors: seed_of_factors,
            layers,
            checks,
            expected,
            changes,
            told,
        })
    }

    /// Offline, stage by stage: seals answers, commits the client's bits, garbles. Returns the sealings of each layer, and what the client is told in the end.
    fn prepare_stages(
        &self,
        prepared: &mut Preparation<'_>,
        announced: &[Ciphertext],
        key: &PublicKey,
        (of_input, mut of_layers): (&[Block], &[Block]),
        (chi, eta): (&[Multipliers], &[Multipliers]),
        rng: &mut Prg,
    ) -> Result<(Vec<Vec<PhaseSealing>>, Last)> {
        let scheme = &*self.scheme;
        // The lowest value of each element of the input is the server's share of it.
        let low = Zeroizing::new(vec![scheme.p.reduce_signed(scheme.low); scheme.inputs]);
        let mut known = Known { elements: vec![low], outputs: Vec::new() };
        let mut layers = Vec::with_capacity(scheme.layers.len());
        let (mut told, mut first) = (None, 0);
        for (number, stage) in scheme.stages.iter().enumerate() {
            for (layer, weights) in scheme.layers_of(stage).iter().zip(&self.weights[stage.layers.clone()]) {
                let Layer { reads, linear } = layer;
                let inputs = &announced[first..first + linear.inputs.len()];
                first += linear.inputs.len();
                // What is known of the input goes into the share, and never into a ciphertext.
                let read = known.shares(scheme, reads)?;
                let mut share = weights.clear(linear, &scheme.basis, &linear.scatter(&read))?;
                let mut masks = Zeroizing::new(vec![0; share.len()]);
                let mut sealings = Vec::with_capacity(linear.outputs.len());
                for (ahead, places) in weights.ahead(linear, inputs)?.iter().zip(&linear.outputs) {
                    let (second, sealing) =
                        PhaseSealing::new(&linear.modulus, ahead, key, linear.noise, places.len(), rng)?;
                    // S -> C: c1 of an answer
                    prepared.channel.send(kind::LINEAR_SECOND_HALF, &second)?;
                    for ((_, element), mask) in places.iter().zip(sealing.shares().iter()) {
                        masks[*element] = *mask;
                    }
                    sealings.push(sealing);
                }
                layers.push(sealings);
                for ((share, mask), bias) in share.iter_mut().zip(masks.iter()).zip(weights.bias.iter()) {
                    *share = scheme.p.add(scheme.p.add(*share, *mask), *bias);
                }
                known.outputs.push([share, masks]);
            }
            let share = known.shares(scheme, &stage.sum)?;
            let (wires, rest) = of_layers.split_at(stage.behind.wires());
            of_layers = rest;
            if let Behind::Scores = stage.behind {
                told = Some(Last::Scores(share));
                continue;
            }
            prepared.commit(&stage.behind, wires, &chi[number], &known.masks(scheme, &stage.sum)?)?;
            let share = scheme.share(share)?;
            let (permute, outputs) = prepared.garble(&stage.behind, wires, &share)?;
            match &stage.behind {
                Behind::Activation(circuits) => {
                    let own = prepared.convert(circuits, &outputs, &eta[number + 1])?;
                    known.elements.push(own);
                }
                _ => told = Some(Last::Decoding(permute)),
            }
        }
        prepared.commit_input(of_input, &eta[0])?;
        Ok((layers, told.ok_or(ProtocolError::Missing("what a client is told"))?))
    }

    /// `chi` of each committed value of each stage.
    fn draw_chi(&self, rng: &mut Prg) -> Vec<Multipliers> {
        let of_stage = |stage: &Stage| {
            let count = stage.behind.elements(stage.sum.len()).len();
            std::array::from_fn(|_| {
                let mut chi = Zeroizing::new(vec![0; count]);
                uniform_below(&self.scheme.p, &mut chi, rng);
                chi
            })
        };
        #[allow(unused_mut, reason = "tests change it")]
        let mut all: Vec<Multipliers> = self.scheme.stages.iter().map(of_stage).collect();
        #[cfg(test)]
        if let crate::tests::Wrong::LacksChi(stage) = self.scheme.wrong {
            all[stage].iter_mut().for_each(|chi| chi.fill(0));
        }
        all
    }

    /// `eta` of the input and of each stage's elements: the sum of `L^T (v - M^T chi)` over the layers that read them, less `n chi` for each sum that they are added to.
    fn multipliers(&self, v: &[Residues; EQUATIONS], chi: &[Multipliers]) -> Result<Vec<Multipliers>> {
        let scheme = &*self.scheme;
        let lengths = || std::iter::once(scheme.inputs).chain(scheme.stages.iter().map(Stage::makes));
        let of_equation = |k: usize| {
            let mut eta: Vec<Zeroizing<Vec<u64>>> =
                lengths().map(|len| Zeroizing::new(vec![0; len])).collect();
            let zeros = |layer: &Layer| Zeroizing::new(vec![0; layer.linear.elements()[1]]);
            // What multiplies the outputs of layers.
            let mut of_outputs: Vec<Zeroizing<Vec<u64>>> = scheme.layers.iter().map(zeros).collect();
            for (stage, chi) in scheme.stages.iter().zip(chi) {
                let mut sums = Zeroizing::new(vec![0; stage.sum.len()]);
                for (element, chi) in stage.behind.elements(sums.len()).into_iter().zip(chi[k].iter()) {
                    sums[element] = scheme.p.add(sums[element], *chi);
                }
                stage.sum.transposed(&scheme.p, &sums, |source, multipliers| match source {
                    Source::Outputs(layer) => add(&scheme.p, &mut of_outputs[layer], multipliers),
                    #[cfg(test)]
                    Source::Elements(_) if scheme.wrong == crate::tests::Wrong::ForgetsShortcuts => {}
                    Source::Elements(value) => subtract(&scheme.p, &mut eta[value], multipliers),
                })?;
            }
            let mut first = 0;
            for ((layer, weights), outputs) in scheme.layers.iter().zip(&self.weights).zip(&of_outputs) {
                let linear = &layer.linear;
                let own = first..first + linear.inputs.len();
                first = own.end;
                let taken = weights.transposed(linear, &scheme.basis, outputs)?;
                let mut psi: Residues = Zeroizing::new(v[k][own].to_vec());
                psi.iter_mut().zip(taken.iter()).for_each(|(psi, taken)| subtract(&scheme.p, psi, taken));
                let inputs = linear.gather(&scheme.p, &psi);
                layer.reads.transposed(&scheme.p, &inputs, |source, multipliers| {
                    // Layers read no others.
                    if let Source::Elements(value) = source {
                        add(&scheme.p, &mut eta[value], multipliers);
                    }
                })?;
            }
            Ok::<_, ProtocolError>(eta)
        };
        let mut made = parallel::map(0..EQUATIONS, of_equation).into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok((0..made[0].len())
            .map(|value| std::array::from_fn(|k| std::mem::take(&mut made[k][value])))
            .collect())
    }

    /// Online: answers a prediction, and tells the client what it is told if its check is what it has to be.
    ///
    /// # Errors
    /// [`ProtocolError::Cheating`] if it is not; [`ProtocolError::Unchecked`] if the client does not come to it; [`ProtocolError::Channel`] if the client's messages are not the ones due.
    #[allow(clippy::too_many_lines, reason = "a party's messages, in the diagram's order")]
    pub fn online(&self, channel: &mut dyn Channel, material: ServerMaterial) -> Result<()> {
        let scheme = &*self.scheme;
        let ServerMaterial {
            salt,
            delta,
            labels,
            masks,
            factors,
            layers,
            checks,
            mut expected,
            changes,
            told,
        } = material;
        let (of_input, mut of_layers) = changes.split_at(scheme.input_bits());
        // C -> S: bits of x
        let bits = receive_bits(channel, kind::COMMITTED_BITS, scheme.input_bits())?;
        add_changes(scheme, &mut expected, &bits, of_input);
        let (stream, mut next_label) = (PrgStream::new(&labels), 0);
        let seeds = mask_seeds(scheme, &masks);
        let mut sums: Vec<LastCoefficient> =
            (0..scheme.masks).map(|_| LastCoefficient::zero(&scheme.parameters)).collect();
        let mut checks = Some(checks);
        let mut layers = layers.into_iter();
        let (mut first, last) = (0, scheme.stages.len() - 1);
        for (number, stage) in scheme.stages.iter().enumerate() {
            let mut halves = Vec::new();
            for Layer { linear, .. } in scheme.layers_of(stage) {
                let mut of_layer = Vec::with_capacity(linear.inputs.len());
                for _ in 0..linear.inputs.len() {
                    // C -> S: c0
                    let bytes = channel.receive(kind::LINEAR_INPUT, C0::encoded_len(&scheme.parameters))?;
                    of_layer.push(C0::from_bytes(&scheme.parameters, &bytes)?);
                }
                halves.push(of_layer);
            }
            // The client reads no answer before all of its halves are sent.
            let weights = &self.weights[stage.layers.clone()];
            for ((layer, weights), halves) in scheme.layers_of(stage).iter().zip(weights).zip(&halves) {
                let linear = &layer.linear;
                let answers = weights.apply(linear, halves)?;
                let sealings = layers.next().unwrap_or_default();
                for ((sealing, answer), wanted) in sealings.into_iter().zip(&answers).zip(&linear.wanted) {
                    // S -> C: c0 of an answer
                    channel.send(kind::LINEAR_OUTPUT, &sealing.seal(answer, wanted)?)?;
                }
            }
            #[cfg(test)]
            if scheme.early_factors && number == 0 {
                channel.send(kind::CHECK_FACTORS, factors.as_bytes())?;
            }
            let ends = scheme.ends_ciphertexts(stage);
            if !halves.is_empty() && !ends {
                channel.flush()?;
            }
            for halves in halves {
                add_products(scheme, &mut sums, &halves, &seeds, first)?;
                first += halves.len();
            }
            if ends {
                let mut values = Writer::new();
                for (check, sum) in checks.take().unwrap_or_default().into_iter().zip(&sums) {
                    values.bytes(&check.seal(sum)?);
                }
                // S -> C: coefficient N - 1 of each check, once every c0 is in
                channel.send(kind::CHECK_VALUES, values.as_bytes())?;
                channel.flush()?;
            }
            let wires = stage.behind.wires();
            if wires == 0 {
                continue;
            }
            // C -> S: bits of c
            let bits = receive_bits(channel, kind::MASKED_INPUT, wires)?;
            let (own, rest) = of_layers.split_at(wires);
            of_layers = rest;
            add_changes(scheme, &mut expected, &bits, own);
            answer(channel, &stream, next_label, **delta, &bits)?;
            next_label += wires as u64;
            if number < last {
                channel.flush()?;
            }
        }
        // S -> C: seed of beta, once every bit is in
        channel.send(kind::CHECK_FACTORS, factors.as_bytes())?;
        // C -> S: hash of D
        let mut theirs = [0; 32];
        let received = channel.flush().and_then(|()| channel.receive_into(kind::CHECK_HASH, &mut theirs));
        received.map_err(ProtocolError::Unchecked)?;
        if !bool::from(theirs.ct_eq(&hash(salt, &expected))) {
            return Err(ProtocolError::Cheating);
        }
        match told {
            Last::Decoding(permute) => {
                channel.send(kind::DECODING, &OutputDecoding::new(permute).to_bytes())?;
            }
            Last::Scores(share) => {
                let mut writer = Writer::new();
                write_elements(scheme.ring, &share, &mut writer);
                channel.send(kind::REVEAL, writer.as_bytes())?;
            }
        }
        channel.flush()?;
        Ok(())
    }
}

impl ServerMaterial {
    pub(crate) fn encode(&self, scheme: &Scheme, writer: &mut Writer) {
        writer.bytes(&self.salt.to_bytes());
        writer.u128(self.delta.0);
        for seed in [&self.labels, &self.masks, &self.factors] {
            writer.bytes(seed.as_bytes());
        }
        self.layers.iter().flatten().for_each(|sealing| sealing.encode(writer));
        self.checks.iter().for_each(|check| check.encode(writer));
        write_terms(scheme, &[self.expected], writer);
        write_terms(scheme, &self.changes, writer);
        match &self.told {
            Last::Decoding(permute) => write_bits(permute, writer),
            Last::Scores(share) => write_elements(scheme.ring, share, writer),
        }
    }

    /// Reads what [`Self::encode`] wrote.
    pub(crate) fn decode(scheme: &Scheme, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (salt, delta) = (Block::from_bytes(reader.array()?), Block(reader.u128()?));
        if !delta.lsb() {
            return Err(DecodeError::Invalid { what: "delta" });
        }
        let (labels, masks, factors) = (read_seed(reader)?, read_seed(reader)?, read_seed(reader)?);
        let mut layers = Vec::with_capacity(scheme.layers.len());
        for Layer { linear, .. } in &scheme.layers {
            let mut sealings = Vec::with_capacity(linear.wanted.len());
            for wanted in &linear.wanted {
                let sealing = PhaseSealing::decode(&linear.modulus, linear.noise, wanted.len(), reader);
                sealings.push(sealing.map_err(undecodable)?);
            }
            layers.push(sealings);
        }
        let mut checks = Vec::with_capacity(scheme.masks);
        for _ in 0..scheme.masks {
            checks.push(CoefficientSealing::decode(&scheme.check, reader).map_err(undecodable)?);
        }
        let expected = read_terms(scheme, 1, reader)?[0];
        let changes = read_terms(scheme, scheme.transfers(), reader)?;
        let told = match scheme.stages.last() {
            Some(stage) if matches!(stage.behind, Behind::Scores) => {
                Last::Scores(read_elements(reader, scheme.ring, stage.sum.len())?)
            }
            last => Last::Decoding(read_bits(reader, last.map_or(0, |stage| stage.behind.output_bits()))?),
        };
        let delta = Box::new(Zeroizing::new(delta));
        Ok(Self { salt, delta, labels, masks, factors, layers, checks, expected, changes, told })
    }
}

impl Preparation<'_> {
    /// Commits the client's bits of a sum: they are `c = sum of (M L y_C - masks) + sum of n y_C`.
    fn commit(&mut self, behind: &Behind, wires: &[Block], chi: &Multipliers, masks: &[u64]) -> Result<()> {
        let (scheme, p) = (self.scheme, &self.scheme.p);
        let powers = scheme.powers(scheme.ring.bits() as usize);
        for (place, element) in behind.elements(masks.len()).into_iter().enumerate() {
            for (expected, chi) in self.expected.iter_mut().zip(chi) {
                *expected = p.sub(*expected, p.mul(chi[place], masks[element]));
            }
        }
        let (changes, base) = self.convert_choices(wires, chi, &powers)?;
        self.changes.extend_from_slice(&changes);
        self.subtract(&base);
        Ok(())
    }

    /// Commits the bits of the input.
    fn commit_input(&mut self, labels: &[Block], eta: &Multipliers) -> Result<()> {
        let powers = self.scheme.powers(self.scheme.bits as usize);
        let (changes, base) = self.convert_choices(labels, eta, &powers)?;
        self.changes[..changes.len()].copy_from_slice(&changes);
        self.subtract(&base);
        Ok(())
    }

    /// Turns the labels of random choices into shares of multiples; returns what a choice that differs from its bit adds to `E`, and the sum of the shares.
    fn convert_choices(
        &mut self,
        labels: &[Block],
        multipliers: &Multipliers,
        powers: &[u64],
    ) -> Result<(Zeroizing<Vec<Each>>, Each)> {
        let (scheme, p) = (self.scheme, &self.scheme.p);
        let values = multipliers[0].len();
        let powers: Vec<Shoup> = powers.iter().map(|power| p.shoup(*power)).collect();
        let multiples = (0..values).flat_map(|value| {
            powers
                .iter()
                .map(move |power| std::array::from_fn(|k| p.mul_shoup(multipliers[k][value], *power)))
        });
        let multiples: Zeroizing<Vec<Each>> = Zeroizing::new(multiples.collect());
        let (sent, shares) =
            self.tweaks.take(labels.len())?.garbler(labels, self.delta, &with_first(&multiples))?;
        let mut writer = Writer::new();
        write_terms(scheme, &of_equations(&sent), &mut writer);
        // S -> C: corrections of committed bits
        self.channel.send(kind::CORRECTIONS, writer.as_bytes())?;
        let mut base = [0; EQUATIONS];
        let mut changes = Zeroizing::new(Vec::with_capacity(labels.len()));
        for (share, multiple) in of_equations(&shares).iter().zip(multiples.iter()) {
            changes.push(std::array::from_fn(|k| p.sub(p.add(share[k], share[k]), multiple[k])));
            base = std::array::from_fn(|k| p.add(base[k], share[k]));
        }
        Ok((changes, base))
    }

    fn subtract(&mut self, known: &Each) {
        self.expected = std::array::from_fn(|k| self.scheme.p.sub(self.expected[k], known[k]));
    }

    /// Garbles circuits for the server's share; returns the permute bits and zero-labels of their outputs.
    fn garble(
        &mut self,
        behind: &Behind,
        wires: &[Block],
        share: &lanner_primitives::Share,
    ) -> Result<(Bits, Zeroizing<Vec<Block>>)> {
        let (Some(circuit), instances) = (behind.circuit(), behind.instances()) else {
            return Err(ProtocolError::Missing("circuits of a layer"));
        };
        let mut zero_labels = Zeroizing::new(vec![Block::ZERO; wires.len()]);
        self.labels.fill_at(self.next_label, &mut zero_labels);
        self.next_label += wires.len() as u64;
        zero_labels.iter_mut().zip(wires).for_each(|(label, q)| *label ^= *q);
        let mut outputs = Zeroizing::new(vec![Block::ZERO; behind.output_bits()]);
        let known = behind.garbler_bits(share)?;
        let mut garbler = Garbler::new(circuit, self.delta, self.garbling_salt, self.next_batch)?;
        self.next_batch += batches(instances);
        let channel = &mut *self.channel;
        // S -> C: tables
        let mut send = |chunk: &[u8]| Ok::<_, ProtocolError>(channel.send(kind::TABLES, chunk)?);
        let permute = garbler.garble_with_labels(instances, &zero_labels, &known, &mut outputs, &mut send)?;
        Ok((permute, outputs))
    }

    /// Turns labels of outputs into shares of the values and of their multiples by `eta`; returns the server's of the values.
    fn convert(
        &mut self,
        circuits: &lanner_yao::Layer,
        outputs: &[Block],
        eta: &Multipliers,
    ) -> Result<Zeroizing<Vec<u64>>> {
        let (scheme, p) = (self.scheme, &self.scheme.p);
        let weights = scheme.weights_of(circuits);
        let factors: Vec<Shoup> = weights.iter().map(|weight| p.shoup(*weight)).collect();
        let multiples = (0..eta[0].len()).flat_map(|value| {
            weights.iter().zip(&factors).map(move |(weight, factor)| {
                let [a, b, c] = [0, 1, 2].map(|k: usize| p.mul_shoup(eta[k][value], *factor));
                [*weight, a, b, c]
            })
        });
        let multiples: Zeroizing<Vec<[u64; TERMS]>> = Zeroizing::new(multiples.collect());
        let (sent, shares) = self.tweaks.take(outputs.len())?.garbler(outputs, self.delta, &multiples)?;
        let mut writer = Writer::new();
        write_terms(scheme, &sent, &mut writer);
        // S -> C: corrections of outputs
        self.channel.send(kind::CORRECTIONS, writer.as_bytes())?;
        let mut known = [0; EQUATIONS];
        let mut own = Zeroizing::new(Vec::with_capacity(eta[0].len()));
        for (value, bits) in shares.chunks_exact(weights.len()).enumerate() {
            let share = bits.iter().fold(0, |sum, terms| p.add(sum, terms[0]));
            for (k, known) in known.iter_mut().enumerate() {
                let of_bits = bits.iter().fold(0, |sum, terms| p.add(sum, terms[k + 1]));
                *known = p.add(*known, p.sub(of_bits, p.mul(eta[k][value], share)));
            }
            own.push(share);
        }
        self.subtract(&known);
        Ok(own)
    }
}

/// A key that the client proves.
fn receive_key(scheme: &Scheme, channel: &mut dyn Channel, rng: &mut Prg) -> Result<PublicKey> {
    let parameters = &scheme.parameters;
    let half = rng.seed();
    // S -> C: seed of a
    channel.send(kind::KEY_HALF, half.as_bytes())?;
    channel.flush()?;
    // C -> S: b, commitments
    let announced = channel.receive(kind::KEY_COMMITMENTS, KeyProof::announced_len(parameters))?;
    let verifier = KeyVerifier::read(parameters, &half, &announced)?;
    let challenge = KeyChallenge::draw(rng);
    // S -> C: which to open
    channel.send(kind::KEY_CHALLENGE, &challenge.to_bytes())?;
    channel.flush()?;
    // C -> S: openings
    let answer = channel.receive(kind::KEY_ANSWER, KeyProof::answer_len(parameters))?;
    Ok(verifier.finish(&challenge, &answer)?)
}

/// The seeds of all masks, ciphertext by ciphertext in each.
fn mask_seeds(scheme: &Scheme, masks: &Seed) -> Vec<Seed> {
    let mut random = Prg::new(masks.clone());
    (0..scheme.masks * scheme.ciphertexts()).map(|_| random.seed()).collect()
}

/// What multiplies each coefficient of the ciphertexts in each equation.
fn multipliers_of_checks(
    scheme: &Scheme,
    ciphertexts: usize,
    masks: &Seed,
    factors: &[Zeroizing<Vec<u64>>; EQUATIONS],
) -> Result<[Residues; EQUATIONS]> {
    let (p, degree) = (&scheme.p, scheme.parameters.degree());
    let seeds = mask_seeds(scheme, masks);
    let mut v: [Residues; EQUATIONS] =
        std::array::from_fn(|_| Zeroizing::new(vec![vec![0; degree]; ciphertexts]));
    for numbers in in_turns(scheme.masks) {
        let drawn = parallel::map(numbers.clone(), |number| {
            let seeds = &seeds[number * ciphertexts..(number + 1) * ciphertexts];
            seeds.iter().map(|seed| Ok(mask(scheme, seed)?.reversed(p))).collect::<Result<Vec<_>>>()
        });
        let drawn = drawn.into_iter().collect::<Result<Vec<_>>>()?;
        for (v, factors) in v.iter_mut().zip(factors) {
            parallel::for_each(v.iter_mut().enumerate(), |(ciphertext, v)| {
                let masks: Vec<&[u64]> = drawn.iter().map(|masks| &masks[ciphertext][..]).collect();
                p.add_dot_repeated(v, &masks, &factors[numbers.clone()], degree);
            });
        }
    }
    Ok(v)
}

/// The second halves of all checks, and what is kept of them; their randomness comes from `seeds`.
fn seal_checks(
    scheme: &Scheme,
    announced: &[Ciphertext],
    key: &PublicKey,
    masks: &Seed,
    seeds: &parallel::Seeds,
) -> Result<Vec<(Vec<u8>, CoefficientSealing)>> {
    let of_masks = mask_seeds(scheme, masks);
    let each = of_masks.chunks(announced.len()).zip(seeds.iter());
    let sealed = parallel::map(each, |(of_masks, seed)| {
        let prepare = |seed: &Seed| Ok(mask(scheme, seed)?.prepared(&scheme.parameters));
        let prepared = of_masks.iter().map(prepare).collect::<Result<Vec<_>>>()?;
        let sum = Ciphertext::inner_product_ahead(announced, &prepared, scheme.check_norm())?;
        let rng = &mut Prg::new(seed.clone());
        Ok(CoefficientSealing::new(&scheme.check, &sum, key, scheme.check_noise, rng)?)
    });
    sealed.into_iter().collect()
}

/// The mask of a seed.
fn mask(scheme: &Scheme, seed: &Seed) -> Result<WideFactor> {
    Ok(WideFactor::draw(&scheme.parameters, SIDE_BITS, &mut Prg::new(seed.clone()))?)
}

/// Adds the products of a layer's first halves to each check's sum; their ciphertexts are numbered from `first` on.
fn add_products(
    scheme: &Scheme,
    sums: &mut [LastCoefficient],
    halves: &[C0],
    seeds: &[Seed],
    first: usize,
) -> Result<()> {
    let halves = parallel::map(halves, C0::coefficients);
    let each = scheme.ciphertexts();
    let added = parallel::map(sums.iter_mut().enumerate(), |(number, sum)| {
        let seeds = &seeds[number * each + first..][..halves.len()];
        let masks = seeds.iter().map(|seed| mask(scheme, seed)).collect::<Result<Vec<_>>>()?;
        sum.add_products(&halves, &masks)?;
        Ok(())
    });
    added.into_iter().collect()
}

/// Answers committed bits with labels.
fn answer(
    channel: &mut dyn Channel,
    stream: &PrgStream,
    first: u64,
    delta: Block,
    bits: &Bits,
) -> Result<()> {
    let mut bits = bits.iter();
    let mut labels = Zeroizing::new(Vec::new());
    let mut at = first;
    while bits.len() > 0 {
        labels.resize(LABELS_OF_A_MESSAGE.min(bits.len()), Block::ZERO);
        stream.fill_at(at, &mut labels);
        at += labels.len() as u64;
        for (label, bit) in labels.iter_mut().zip(&mut bits) {
            *label ^= delta & Block::mask(bit);
        }
        // S -> C: D xor d Delta
        channel.send(kind::INPUT_LABELS, Block::slice_as_bytes(&labels))?;
    }
    Ok(())
}

fn add(p: &Modulus, sums: &mut [u64], more: &[u64]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = p.add(*sum, *more));
}

fn subtract(p: &Modulus, sums: &mut [u64], less: &[u64]) {
    sums.iter_mut().zip(less).for_each(|(sum, less)| *sum = p.sub(*sum, *less));
}

fn add_changes(scheme: &Scheme, expected: &mut Each, bits: &Bits, changes: &[Each]) {
    // Which bits differ is what the client has sent.
    for (_, change) in bits.iter().zip(changes).filter(|(bit, _)| *bit) {
        *expected = std::array::from_fn(|k| scheme.p.add(expected[k], change[k]));
    }
}

fn receive_bits(channel: &mut dyn Channel, kind: lanner_wire::Kind, count: usize) -> Result<Bits> {
    let bytes = channel.receive(kind, Bits::byte_len(count))?;
    Bits::from_bytes(count, &bytes).map_err(|_| ChannelError::Malformed { what: "bits" }.into())
}
