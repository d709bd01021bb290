//! Both parties on small networks, and clients that deviate.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

use lanner_bfv::halves::C0;
use lanner_bfv::{CoefficientEncoder, ParameterSet, Parameters};
use lanner_primitives::{Bits, Block, Prg, Ring, Share};
use lanner_ring::Modulus;
use lanner_step::{
    Convolution, EvaluationSession, Function, GarblingSession, Outcome, ProtocolError, Result, Windows, kind,
};
use lanner_testkit::{Domain, Domains, Party, Transcript};
use lanner_wire::{DecodeError, Kind, Reader, Writer};
use rand_core::{Rng, SeedableRng};

use crate::checks::Each;
use crate::{Activation, Client, ClientMaterial, Layer, Network, Scheme, Server, ServerMaterial, Told};

const P: u64 = 1_032_193;

/// What a client does otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cheat {
    Nothing,
    /// Adds `part / of` of q to a coefficient of a layer's ciphertext.
    Half {
        layer: usize,
        place: usize,
        part: u64,
        of: u64,
    },
    /// Adds so much to its share of a layer's output before the circuit.
    Output {
        layer: usize,
        element: usize,
        plus: u64,
    },
    /// Flips a bit that it commits.
    Committed {
        layer: usize,
        bit: usize,
    },
    /// Flips a bit of its input, and not in the ciphertext.
    Input(usize),
    /// Uses another label of an output.
    Label {
        layer: usize,
        bit: usize,
    },
    /// Sends another hash.
    Hash,
}

impl Cheat {
    pub(crate) fn half(self, mut half: C0, number: usize, at: usize, parameters: &Parameters) -> C0 {
        if let Self::Half { layer, place, part, of } = self
            && (layer, 0) == (number, at)
        {
            let mut message = vec![0; place + 1];
            message[place] = part;
            let encoder = CoefficientEncoder::new(parameters, of).unwrap();
            half.add_plain(&encoder.encode(&message).unwrap()).unwrap();
        }
        half
    }

    pub(crate) fn outputs(self, outputs: &mut [u64], number: usize, p: &Modulus) {
        if let Self::Output { layer, element, plus } = self
            && layer == number
        {
            outputs[element] = p.add(outputs[element], plus);
        }
    }

    pub(crate) fn committed(self, bits: Bits, number: usize) -> Bits {
        match self {
            Self::Committed { layer, bit } if layer == number => flipped(&bits, bit),
            _ => bits,
        }
    }

    pub(crate) fn input(self, bits: Bits) -> Bits {
        if let Self::Input(bit) = self { flipped(&bits, bit) } else { bits }
    }

    pub(crate) fn results(self, labels: &mut [Block], number: usize) {
        if let Self::Label { layer, bit } = self
            && layer == number
        {
            labels[bit] ^= Block(1 << 77);
        }
    }

    pub(crate) fn difference(self, mut all: Each) -> Each {
        all[0] ^= u64::from(self == Self::Hash);
        all
    }
}

fn flipped(bits: &Bits, at: usize) -> Bits {
    (0..bits.len()).map(|i| bits.get(i) ^ (i == at)).collect()
}

/// A network with its weights, and what it computes in integers.
struct Model {
    network: Network,
    layers: Vec<(Vec<i64>, Vec<i64>)>,
}

fn relu(shift: u32) -> Function {
    Function { relu: true, slope: None, high: None, shift }
}

impl Model {
    fn new(shapes: &[(Convolution, Option<Activation>)], told: Told) -> Self {
        let mut rng = Prg::from_seed([9; 16]);
        let layers = shapes.iter().map(|(shape, _)| {
            let weights = (0..shape.weights()).map(|_| (rng.next_u64() % 61) as i64 - 30).collect();
            let bias = (0..shape.outputs().unwrap()).map(|_| (rng.next_u64() % 999) as i64 - 500).collect();
            (weights, bias)
        });
        let layers = layers.collect();
        let layer = |(number, (shape, activation)): (usize, &(Convolution, Option<Activation>))| Layer {
            node: format!("layer{number}"),
            summed: None,
            shape: shape.clone(),
            activation: activation.clone(),
        };
        let network = Network {
            set: ParameterSet::B,
            prime: P,
            low: -8,
            bits: 5,
            layers: shapes.iter().enumerate().map(layer).collect(),
            told,
        };
        Self { network, layers }
    }

    /// Two fully connected layers.
    fn dense(told: Told) -> Self {
        let activation = Activation { function: relu(4), windows: Windows::each(5) };
        let shapes = [
            (Convolution::fully_connected(6, 5), Some(activation)),
            (Convolution::fully_connected(5, 3), None),
        ];
        Self::new(&shapes, told)
    }

    /// Convolutions, one with strides and one whose pool's windows overlap, and a fully connected layer that reads sums of windows that overlap.
    fn convolutional() -> Self {
        let first = Convolution {
            in_channels: 2,
            out_channels: 3,
            image: [6, 7],
            kernel: [3, 3],
            strides: [1, 1],
            pads: [1, 1, 1, 1],
            dilations: [1, 1],
            groups: 1,
        };
        let second = Convolution {
            in_channels: 3,
            out_channels: 2,
            image: [5, 6],
            kernel: [3, 2],
            strides: [2, 1],
            pads: [0; 4],
            ..first.clone()
        };
        let pool = Windows { channels: 3, image: [6, 7], kernel: [2, 2], strides: [1, 1], pads: [0; 4] };
        let shapes = [
            (first, Some(Activation { function: relu(3), windows: pool })),
            (
                second,
                Some(Activation {
                    function: Function { relu: false, ..relu(6) },
                    windows: Windows::each(20),
                }),
            ),
            (Convolution::fully_connected(8, 4), None),
        ];
        let mut model = Self::new(&shapes, Told::Scores);
        let summed = Windows { channels: 2, image: [2, 5], kernel: [2, 2], strides: [1, 1], pads: [0; 4] };
        model.network.layers[2].summed = Some(summed);
        model
    }

    fn reference(&self, input: &[i64]) -> Vec<i64> {
        let mut values = input.to_vec();
        for (layer, (weights, bias)) in self.network.layers.iter().zip(&self.layers) {
            if let Some(summed) = &layer.summed {
                let groups = summed.groups().unwrap();
                values = groups.iter().map(|group| group.iter().map(|i| values[*i]).sum()).collect();
            }
            let mut sums = layer.shape.apply(weights, &values).unwrap();
            sums.iter_mut().zip(bias).for_each(|(sum, bias)| *sum += bias);
            assert!(sums.iter().all(|sum| sum.abs() < 491_458), "{sums:?}");
            let Some(Activation { function, windows }) = &layer.activation else { return sums };
            let rescaled = |value: i64| (value + ((1 << function.shift) >> 1)) >> function.shift;
            let groups = windows.groups().unwrap();
            let largest = |group: &Vec<usize>| group.iter().map(|i| sums[*i]).max().unwrap();
            values = groups
                .iter()
                .map(|group| rescaled(if function.relu { largest(group).max(0) } else { largest(group) }))
                .collect();
        }
        values
    }

    fn scheme(&self) -> Scheme {
        Scheme::new(&self.network).unwrap()
    }
}

/// Material that was kept in between, as bytes.
fn again<M>(
    material: &M,
    encode: impl Fn(&M, &Scheme, &mut Writer),
    decode: impl Fn(&Scheme, &mut Reader<'_>) -> Result<M, DecodeError>,
    scheme: &Scheme,
) -> M {
    let mut writer = Writer::new();
    encode(material, scheme, &mut writer);
    let bytes = writer.into_bytes();
    assert!(decode(scheme, &mut Reader::new(&bytes[..bytes.len() - 1])).is_err());
    let mut reader = Reader::new(&bytes);
    let decoded = decode(scheme, &mut reader).unwrap();
    reader.finish().unwrap();
    decoded
}

/// Both parties' results, and what they sent.
struct Run {
    client: Result<Outcome>,
    server: Result<()>,
    sent: [Vec<(Kind, Vec<u8>)>; 2],
}

fn run(model: &Model, scheme: Scheme, input: &[i64], cheat: Cheat, seed: u8) -> Run {
    let (mut to_server, mut to_client) = Party::pair();
    let scheme = Arc::new(scheme);
    let layers: Vec<(&[i64], Vec<i64>)> =
        model.layers.iter().map(|(weights, bias)| (weights.as_slice(), bias.clone())).collect();
    let server = Server::new(Arc::clone(&scheme), &layers).unwrap();
    let share = Share::embed(Ring::Prime(P), input);
    let serving = thread::spawn(move || {
        let mut rng = Prg::from_seed([seed; 16]);
        let result = (|| {
            let mut session = GarblingSession::setup(&mut to_client, &mut rng)?;
            let material = server.offline(&mut to_client, &mut session, &mut rng)?;
            let material = again(&material, ServerMaterial::encode, ServerMaterial::decode, &server.scheme);
            server.online(&mut to_client, material)
        })();
        (result, std::mem::take(&mut to_client.sent))
    });
    let mut rng = Prg::from_seed([seed ^ 0x80; 16]);
    let client = Client { scheme, cheat };
    let result = (|| {
        let mut session = EvaluationSession::setup(&mut to_server, &mut rng)?;
        let material = client.offline(&mut to_server, &mut session, &mut rng)?;
        let material = again(&material, ClientMaterial::encode, ClientMaterial::decode, &client.scheme);
        client.online(&mut to_server, material, &share)
    })();
    let of_client = std::mem::take(&mut to_server.sent);
    drop(to_server);
    let (server, of_server) = serving.join().unwrap();
    Run { client: result, server, sent: [of_client, of_server] }
}

/// Fewer masks, which is faster and proves nothing.
fn with_masks(model: &Model, masks: usize) -> Scheme {
    Scheme { masks, ..model.scheme() }
}

fn logits(values: &[i64]) -> Outcome {
    Outcome::Logits(values.iter().map(|value| (*value).into()).collect())
}

#[test]
fn dense_layers_give_the_reference_s_scores() {
    let model = Model::dense(Told::Scores);
    for (number, input) in [[-8; 6], [23; 6], [0; 6], [5, -8, 23, 11, -1, 2]].into_iter().enumerate() {
        let run = run(&model, with_masks(&model, 4), &input, Cheat::Nothing, number as u8);
        run.server.unwrap();
        assert_eq!(run.client.unwrap(), logits(&model.reference(&input)), "{input:?}");
    }
}

#[test]
fn the_whole_check_passes_an_honest_client_that_is_told_a_label() {
    let model = Model::dense(Told::Label);
    let input = [7, 3, -2, 20, 11, -8];
    let scores = model.reference(&input);
    let largest = (0..3).rev().max_by_key(|i| scores[*i]).unwrap();
    let run = run(&model, model.scheme(), &input, Cheat::Nothing, 20);
    run.server.unwrap();
    assert_eq!(run.client.unwrap(), Outcome::Label(largest));
    assert_eq!(run.sent[1].iter().filter(|(sent, _)| *sent == kind::CHECK_SECOND_HALF).count(), 128);
    let said: BTreeSet<u16> = run.sent.iter().flatten().map(|(sent, _)| sent.0).collect();
    let own = kind::KEY_HALF.0..=kind::CHECK_HASH.0;
    assert!(own.clone().all(|kind| said.contains(&kind)), "{:?}", own.filter(|kind| !said.contains(kind)));
}

#[test]
fn convolutions_and_pools_give_the_reference_s_scores() {
    let model = Model::convolutional();
    let mut rng = Prg::from_seed([30; 16]);
    for seed in 0..3 {
        let input: Vec<i64> = (0..84).map(|_| (rng.next_u64() % 32) as i64 - 8).collect();
        let run = run(&model, with_masks(&model, 3), &input, Cheat::Nothing, 30 + seed);
        run.server.unwrap();
        assert_eq!(run.client.unwrap(), logits(&model.reference(&input)));
    }
}

/// Cheats against a network with a label, each of which has to end with what everybody hears.
fn caught(cheats: &[Cheat], seed: u8) {
    let model = Model::dense(Told::Label);
    for (number, cheat) in cheats.iter().enumerate() {
        let run = run(&model, with_masks(&model, 24), &[5, 17, 20, 2, -8, 0], *cheat, seed + number as u8);
        assert!(matches!(run.server, Err(ProtocolError::Cheating)), "{cheat:?}: {:?}", run.server);
        assert!(run.server.unwrap_err().is_dishonest());
        assert!(run.client.is_err());
        let (last, _) = run.sent[1].last().unwrap();
        assert_eq!(*last, kind::CHECK_FACTORS, "{cheat:?}");
    }
}

const fn half(layer: usize, place: usize, part: u64, of: u64) -> Cheat {
    Cheat::Half { layer, place, part, of }
}

#[test]
fn a_wrong_message_is_caught_where_inputs_lie_and_where_nothing_does() {
    caught(&[half(0, 2, 1, P), half(0, 5000, 1, P), half(1, 8191, P - 1, P)], 40);
}

/// Halves and thirds of q, which weights may swallow, and half a unit of a message.
#[test]
fn oversized_noise_is_caught() {
    caught(&[half(0, 1, 32, 64), half(1, 3, 33, 99), half(0, 0, 1, 2 * P)], 50);
}

#[test]
fn shifted_shares_are_caught() {
    let shifted = |layer, plus| Cheat::Output { layer, element: 1, plus };
    caught(&[shifted(0, 1), shifted(1, P - (1 << 18)), Cheat::Hash], 60);
}

#[test]
fn other_bits_than_those_committed_are_caught() {
    let committed = |layer, bit| Cheat::Committed { layer, bit };
    caught(&[committed(0, 0), committed(1, 59), Cheat::Input(7), Cheat::Label { layer: 0, bit: 3 }], 70);
}

/// A half of q passes a mask whose coefficient there is even: one mask in half of all runs. The bounds are Wilson's, at three deviations.
#[test]
fn one_mask_lets_half_of_all_torsions_pass_and_more_let_fewer() {
    let model = Model::new(&[(Convolution::fully_connected(2, 2), None)], Told::Scores);
    // Nothing lies there, and no output meets it.
    let torsion = half(0, 4000, 32, 64);
    let runs = 8;
    let model = &model;
    let passes = |masks: usize| {
        move |seed: &u8| run(model, with_masks(model, masks), &[1, 2], torsion, *seed).server.is_ok()
    };
    let few = (0..runs).filter(passes(1)).count();
    let [low, high] = wilson(few, runs.into(), 3.0);
    assert!(low < 0.5 && 0.5 < high && (1..8).contains(&few), "{few} of {runs}");
    assert!(!(0..2).any(|seed| passes(16)(&seed)));
}

/// The interval of a probability by how often of `runs` it came, at so many deviations.
fn wilson(count: usize, runs: usize, deviations: f64) -> [f64; 2] {
    let (n, z) = (runs as f64, deviations);
    let share = count as f64 / n;
    let middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let reach = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    [middle - reach, middle + reach]
}

/// Whether the server says nothing of the checks' values before every first half is in, and nothing of what joins them before every bit is.
fn says_late(model: &Model, sent: &[(Kind, Vec<u8>)]) -> bool {
    let place = |wanted| sent.iter().position(|(kind, _)| *kind == wanted).unwrap();
    let after = |wanted: Kind, earlier: usize| {
        sent.iter().enumerate().filter(|(_, (kind, _))| *kind == wanted).all(|(at, _)| at < earlier)
    };
    let [values, factors] = [place(kind::CHECK_VALUES), place(kind::CHECK_FACTORS)];
    let answers = sent.iter().filter(|(kind, _)| *kind == kind::LINEAR_OUTPUT).count();
    // Each answer is of a layer whose first halves are in, each label of committed bits.
    answers >= model.network.layers.len()
        && after(kind::LINEAR_OUTPUT, values)
        && after(kind::INPUT_LABELS, factors)
        && values < factors
}

#[test]
fn what_joins_the_checks_is_told_when_nothing_is_left_to_choose() {
    for (model, seed) in [(Model::dense(Told::Label), 90), (Model::dense(Told::Scores), 91)] {
        let input = [1, 2, 3, 4, 5, 6];
        let honest = run(&model, with_masks(&model, 2), &input, Cheat::Nothing, seed);
        honest.client.unwrap();
        assert!(says_late(&model, &honest.sent[1]));
        // A server that tells it early is noticed. Its client does not expect that, and ends.
        let early = Scheme { early_factors: true, ..with_masks(&model, 2) };
        let early = run(&model, early, &input, Cheat::Nothing, seed);
        assert!(early.client.is_err());
        let kinds: Vec<u16> = early.sent[1].iter().map(|(kind, _)| kind.0).collect();
        let [told, value] =
            [kind::CHECK_FACTORS, kind::LINEAR_OUTPUT].map(|kind| kinds.iter().position(|k| *k == kind.0));
        assert!(told > value && !kinds.contains(&kind::CHECK_VALUES.0));
    }
}

/// Layers of as many outputs as fill bytes, with weights and an input of choice.
fn constant(weight: i64) -> Model {
    let activation = Activation { function: relu(9), windows: Windows::each(32) };
    let shapes = [
        (Convolution::fully_connected(64, 32), Some(activation)),
        (Convolution::fully_connected(32, 16), None),
    ];
    let mut model = Model::new(&shapes, Told::Scores);
    for (weights, _) in &mut model.layers {
        weights.fill(weight);
    }
    model
}

/// What messages of these kinds are drawn from. Of the checks' values the last byte has padding: it is left out.
fn domains() -> Domains {
    let bits = |widths: &[usize]| Domain::Bits(widths.to_vec());
    let parameters = ParameterSet::B.parameters().unwrap();
    let moduli = parameters.moduli().iter().map(Modulus::value).collect();
    [
        (kind::LINEAR_INPUT, Domain::Residues { seed: 0, values: parameters.degree(), moduli }),
        (kind::LINEAR_SECOND_HALF, bits(&[])),
        (kind::CHECK_SECOND_HALF, bits(&[])),
        (kind::LINEAR_OUTPUT, bits(&[])),
        (kind::CHECK_VALUES, bits(&[])),
        (kind::TABLES, bits(&[128])),
        (kind::CORRECTIONS, Domain::Residues { seed: 0, values: usize::MAX / 64, moduli: vec![P] }),
        (kind::COMMITTED_BITS, bits(&[5])),
        (kind::MASKED_INPUT, bits(&[20])),
        (kind::INPUT_LABELS, bits(&[128])),
    ]
    .map(|(kind, domain)| (kind.0, domain))
    .into()
}

fn transcript(weight: i64, input: i64, seed: u8) -> Transcript {
    let model = constant(weight);
    let run = run(&model, with_masks(&model, 8), &[input; 64], Cheat::Nothing, seed);
    run.client.unwrap();
    let mut transcript = Transcript::default();
    for (party, sent) in ["client", "server"].into_iter().zip(&run.sent) {
        for (kind, payload) in sent.iter().filter(|(kind, _)| domains().contains_key(&kind.0)) {
            let whole = if *kind == kind::CHECK_VALUES {
                payload.chunks(11).flat_map(|value| value[..10].to_vec()).collect()
            } else {
                payload.clone()
            };
            transcript.note(party, kind.0, &whole);
        }
    }
    transcript
}

#[test]
fn what_parties_say_is_uniform_and_would_not_be_without_masks() {
    for (weight, input, seed) in [(30, 23, 100), (-30, -8, 110)] {
        let mut all = transcript(weight, input, seed);
        all.extend(transcript(weight, input, seed + 1));
        all.extend(transcript(weight, input, seed + 2));
        assert_eq!(all.kinds().len(), domains().len());
        assert_eq!(all.faults(&domains()), [], "weights {weight}");
    }
    // The same masks twice: what is told of two inputs and of two models, where no carry hides it.
    let unmasked = transcript(30, 23, 120).unmasked_by(&transcript(-30, -8, 120));
    let told: Vec<u16> = unmasked.faults(&domains()).iter().map(|fault| fault.kind).collect();
    for kind in [kind::COMMITTED_BITS, kind::MASKED_INPUT, kind::INPUT_LABELS, kind::CORRECTIONS] {
        assert!(told.contains(&kind.0), "{kind:?}: {told:02x?}");
    }
}
