//! Both parties on small networks, and clients that deviate.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

use lanner_bfv::halves::C0;
use lanner_bfv::{CoefficientEncoder, ParameterSet, Parameters};
use lanner_primitives::{Bits, Block, Prg, Ring, Share};
use lanner_ring::Modulus;
use lanner_step::{
    Convolution, EvaluationSession, Function, GarblingSession, Likely, Outcome, ProtocolError, Result,
    Windows, kind,
};
use lanner_testkit::{Domain, Domains, Party, Transcript};
use lanner_wire::{DecodeError, Kind, Reader, Writer};
use lanner_yao::softmax::{Probability, likeliest};
use rand_core::{Rng, SeedableRng};
use zeroize::Zeroizing;

use crate::checks::Each;
use crate::{
    Activation, Client, ClientMaterial, Item, Layer, Map, Network, Scheme, Server, ServerMaterial, Sum, Term,
    Told,
};

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
    /// Adds so much to its share of a layer's output, in every sum.
    Output {
        layer: usize,
        element: usize,
        plus: u64,
    },
    /// Adds so much to an element of a sum that circuits read, and nowhere else.
    Sum {
        stage: usize,
        element: usize,
        plus: u64,
    },
    /// Adds so much to its share of an element that circuits made, for all that read it.
    Element {
        stage: usize,
        element: usize,
        plus: u64,
    },
    /// Flips a bit that it commits.
    Committed {
        stage: usize,
        bit: usize,
    },
    /// Flips a bit of its input, and not in the ciphertext.
    Input(usize),
    /// Uses another label of an output.
    Label {
        stage: usize,
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

    pub(crate) fn sum(self, mut sum: Zeroizing<Vec<u64>>, number: usize, p: &Modulus) -> Zeroizing<Vec<u64>> {
        if let Self::Sum { stage, element, plus } = self
            && stage == number
        {
            sum[element] = p.add(sum[element], plus);
        }
        sum
    }

    pub(crate) fn elements(self, elements: &mut [u64], number: usize, p: &Modulus) {
        if let Self::Element { stage, element, plus } = self
            && stage == number
        {
            elements[element] = p.add(elements[element], plus);
        }
    }

    pub(crate) fn committed(self, bits: Bits, number: usize) -> Bits {
        match self {
            Self::Committed { stage, bit } if stage == number => flipped(&bits, bit),
            _ => bits,
        }
    }

    pub(crate) fn input(self, bits: Bits) -> Bits {
        if let Self::Input(bit) = self { flipped(&bits, bit) } else { bits }
    }

    pub(crate) fn results(self, labels: &mut [Block], number: usize) {
        if let Self::Label { stage, bit } = self
            && stage == number
        {
            labels[bit] ^= Block(1 << 77);
        }
    }

    pub(crate) fn difference(self, mut all: Each) -> Each {
        all[0] ^= u64::from(self == Self::Hash);
        all
    }
}

/// What a server does otherwise, so that its check is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wrong {
    Nothing,
    /// `eta` lacks what sums take of elements.
    ForgetsShortcuts,
    /// `chi` of a stage is zero.
    LacksChi(usize),
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
        let layer = |(number, (shape, activation)): (usize, &(Convolution, Option<Activation>))| {
            Item::Layer(Layer {
                node: format!("layer{number}"),
                summed: None,
                reads: Vec::new(),
                shape: shape.clone(),
                activation: activation.clone(),
            })
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
        let Item::Layer(last) = &mut model.network.layers[2] else { panic!("a layer") };
        last.summed = Some(summed);
        model
    }

    /// A network whose items are said one by one, with weights drawn for its layers.
    fn of(items: Vec<Item>, told: Told) -> Self {
        let shapes = items.iter().filter_map(|item| match item {
            Item::Layer(layer) => Some((layer.shape.clone(), None)),
            Item::Sum(_) => None,
        });
        let mut model = Self::new(&shapes.collect::<Vec<_>>(), told);
        model.network.layers = items;
        model
    }

    /// A block with a shortcut: `relu(3 relu(A x) + B relu(A x))`, and a layer.
    fn residual(told: Told) -> Self {
        let sum = vec![Term::of(2), Term { factor: 3, ..Term::of(1) }];
        let items = vec![
            layer(Vec::new(), [6, 5], Some(relu(4))),
            layer(vec![Term::of(1)], [5, 5], None),
            summed(sum, Some((relu(4), 5))),
            layer(Vec::new(), [5, 3], None),
        ];
        Self::of(items, told)
    }

    /// All that may be added and read, with shortcuts of the input, of sums, of parts of them and of layers.
    fn branching(told: Told) -> Self {
        let times = |factor, of| Term { factor, ..Term::of(of) };
        let moved = |of, node: &str, from, to| Term {
            maps: vec![Map::Moved { node: node.to_owned(), place: 0, from, to }],
            ..Term::of(of)
        };
        let pooled = Windows { channels: 1, image: [2, 3], kernel: [2, 2], strides: [1, 1], pads: [0; 4] };
        let items = vec![
            // 1: a layer whose outputs two sums take.
            layer(Vec::new(), [6, 6], None),
            // 2: with a shortcut that is the input.
            summed(vec![Term::of(1), times(-5, 0)], Some((relu(4), 6))),
            // 3, 4, 5: two layers, one of which reads a sum of elements, and a shortcut.
            layer(vec![Term::of(2), times(2, 0)], [6, 6], None),
            layer(vec![Term::of(0)], [6, 6], None),
            summed(vec![Term::of(3), times(-1, 4), times(7, 2)], Some((relu(5), 6))),
            // 6: a sum of a sum's parts, without a layer of its own, as bits of their own.
            summed(
                vec![Term::of(1), times(2, 5), times(3, 0)],
                Some((Function { relu: false, ..relu(3) }, 6)),
            ),
            // 7: elements alone.
            summed(vec![times(-1, 6), Term::of(5)], Some((relu(0), 6))),
            // 8: sums of windows of what is moved, and a value that is moved with zeros around.
            layer(
                vec![Term {
                    maps: vec![
                        Map::Moved { node: "turn".to_owned(), place: 0, from: 6, to: 6 },
                        Map::Summed(pooled),
                    ],
                    ..times(-2, 7)
                }],
                [2, 4],
                None,
            ),
            summed(vec![moved(8, "pad", 4, 6), moved(5, "turn", 6, 6)], Some((relu(4), 6))),
            // 10, 11: what is told.
            layer(vec![Term::of(9)], [6, 4], None),
            summed(vec![times(2, 10), moved(9, "cut", 6, 4)], None),
        ];
        Self::of(items, told)
    }

    fn reference(&self, input: &[i64]) -> Vec<i64> {
        let (mut values, mut weights) = (vec![input.to_vec()], self.layers.iter());
        for (number, item) in self.network.layers.iter().enumerate() {
            let sums = match item {
                Item::Layer(layer) => {
                    let (weights, bias) = weights.next().unwrap();
                    let mut sums = layer.shape.apply(weights, &total(&layer.terms(number), &values)).unwrap();
                    sums.iter_mut().zip(bias).for_each(|(sum, bias)| *sum += bias);
                    sums
                }
                Item::Sum(sum) => total(&sum.terms, &values),
            };
            assert!(sums.iter().all(|sum| sum.abs() < 491_458), "{sums:?}");
            values.push(match item.activation() {
                Some(Activation { function, windows }) => {
                    let rescaled = |value: i64| (value + ((1 << function.shift) >> 1)) >> function.shift;
                    let groups = windows.groups().unwrap();
                    let largest = |group: &Vec<usize>| group.iter().map(|i| sums[*i]).max().unwrap();
                    let function = |value: i64| rescaled(if function.relu { value.max(0) } else { value });
                    groups.iter().map(|group| function(largest(group))).collect()
                }
                None => sums,
            });
        }
        values.pop().unwrap()
    }

    fn scheme(&self) -> Scheme {
        let mut scheme = Scheme::new(&self.network).unwrap();
        scheme.resolve_by(&|node| Ok(sources(node))).unwrap();
        scheme
    }
}

/// A fully connected layer, without windows.
fn layer(reads: Vec<Term>, [inputs, outputs]: [usize; 2], function: Option<Function>) -> Item {
    let activation = function.map(|function| Activation { function, windows: Windows::each(outputs) });
    let shape = Convolution::fully_connected(inputs, outputs);
    Item::Layer(Layer { node: "layer".to_owned(), summed: None, reads, shape, activation })
}

fn summed(terms: Vec<Term>, function: Option<(Function, usize)>) -> Item {
    let activation = function.map(|(function, len)| Activation { function, windows: Windows::each(len) });
    Item::Sum(Sum { node: "sum".to_owned(), terms, activation })
}

/// How nodes move elements.
fn sources(node: &str) -> Vec<Option<(usize, usize)>> {
    let places: &[i32] = match node {
        "turn" => &[5, 4, 3, 2, 1, 0],
        "pad" => &[-1, 0, 1, 2, 3, -1],
        _ => &[1, 3, 0, 0],
    };
    places.iter().map(|place| usize::try_from(*place).ok().map(|element| (0, element))).collect()
}

/// A sum of terms, in integers.
fn total(terms: &[Term], values: &[Vec<i64>]) -> Vec<i64> {
    let mut all = Vec::new();
    for term in terms {
        let mut value = values[term.of].clone();
        for map in &term.maps {
            value = match map {
                Map::Summed(windows) => {
                    let groups = windows.groups().unwrap();
                    groups.iter().map(|group| group.iter().map(|i| value[*i]).sum()).collect()
                }
                Map::Moved { node, .. } => {
                    let moved = sources(node);
                    moved.iter().map(|source| source.map_or(0, |(_, element)| value[element])).collect()
                }
            };
        }
        all.resize(value.len(), 0);
        all.iter_mut().zip(value).for_each(|(sum, element)| *sum += term.factor * element);
    }
    all
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

/// The largest of three scores and its probability, each unit of which stands for so much, and labels at two places.
#[test]
fn probabilities_and_labels_at_places_are_those_of_the_reference() {
    let (input, probability) = ([7, 3, -2, 20, 11, -8], Probability { digits: 4, scale: 0.002 });
    let model = Model::dense(Told::Probability(probability));
    let scores = model.reference(&input);
    let told = run(&model, with_masks(&model, 4), &input, Cheat::Nothing, 21);
    told.server.unwrap();
    let bits = Ring::Prime(P).bits();
    let Likely { label, parts, digits } =
        likeliest(&scores, probability.digits, probability.scale, bits).unwrap();
    assert!(parts > 3_400 && parts < 10_000, "{parts}");
    assert_eq!(told.client.unwrap(), Outcome::Probability(Likely { label, parts, digits }));

    let places = [layer(Vec::new(), [6, 5], Some(relu(4))), layer(Vec::new(), [5, 6], None)];
    let model = Model::of(places.to_vec(), Told::LabelAt(2));
    let scores = model.reference(&input);
    let largest = |scores: &[i64]| (0..scores.len()).rev().max_by_key(|i| scores[*i]).unwrap();
    let told = run(&model, with_masks(&model, 4), &input, Cheat::Nothing, 22);
    told.server.unwrap();
    assert_eq!(told.client.unwrap(), Outcome::LabelMap(scores.chunks(3).map(largest).collect()));
    for places in [0, 4, usize::MAX] {
        assert!(Scheme::new(&Network { told: Told::LabelAt(places), ..model.network.clone() }).is_err());
    }
}

#[test]
fn cheats_against_probabilities_and_labels_at_places_are_caught() {
    let cheats = [
        half(1, 3, 33, 99),
        Cheat::Output { layer: 1, element: 2, plus: P - (1 << 18) },
        Cheat::Committed { stage: 1, bit: 59 },
        Cheat::Label { stage: 0, bit: 3 },
        Cheat::Hash,
    ];
    all_caught(&Model::dense(Told::Probability(Probability { digits: 3, scale: 0.002 })), &cheats, 23);
    all_caught(&Model::dense(Told::LabelAt(1)), &cheats[1..3], 28);
}

/// Predictions of one session, none of which a check may end: `LANNER_HONEST_RUNS` says how many, with few masks and a small network.
#[test]
#[ignore = "takes minutes for a thousand predictions"]
fn honest_clients_are_never_convicted() {
    let runs: usize = std::env::var("LANNER_HONEST_RUNS").map_or(1000, |runs| runs.parse().unwrap());
    let model = Model::dense(Told::Scores);
    let (mut to_server, mut to_client) = Party::pair();
    let scheme = Arc::new(with_masks(&model, 2));
    let layers: Vec<(&[i64], Vec<i64>)> =
        model.layers.iter().map(|(weights, bias)| (weights.as_slice(), bias.clone())).collect();
    let server = Server::new(Arc::clone(&scheme), &layers).unwrap();
    let serving = thread::spawn(move || {
        let mut rng = Prg::from_entropy().unwrap();
        let mut session = GarblingSession::setup(&mut to_client, &mut rng).unwrap();
        for run in 0..runs {
            let material = server.offline(&mut to_client, &mut session, &mut rng).unwrap();
            server.online(&mut to_client, material).unwrap_or_else(|error| panic!("{error} in run {run}"));
            to_client.sent.clear();
        }
    });
    let mut rng = Prg::from_entropy().unwrap();
    let client = Client { scheme, cheat: Cheat::Nothing };
    let mut session = EvaluationSession::setup(&mut to_server, &mut rng).unwrap();
    for run in 0..runs {
        let input: Vec<i64> = (0..6).map(|place| ((run * 7 + place * 11) % 32) as i64 - 8).collect();
        let material = client.offline(&mut to_server, &mut session, &mut rng).unwrap();
        let share = Share::embed(Ring::Prime(P), &input);
        let outcome = client.online(&mut to_server, material, &share).unwrap();
        assert_eq!(outcome, logits(&model.reference(&input)), "run {run}");
        to_server.sent.clear();
    }
    serving.join().unwrap();
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

#[test]
fn sums_of_all_kinds_give_the_reference_s_scores() {
    let (residual, branching) = (Model::residual(Told::Scores), Model::branching(Told::Scores));
    for (model, number) in [(&residual, 0), (&branching, 1)] {
        for (input, seed) in [([-8; 6], 0), ([23; 6], 1), ([5, -8, 23, 11, -1, 2], 2)] {
            let seed = 150 + 3 * number + seed;
            let run = run(model, with_masks(model, 4), &input, Cheat::Nothing, seed);
            run.server.unwrap();
            assert_eq!(run.client.unwrap(), logits(&model.reference(&input)), "{input:?}");
        }
    }
}

#[test]
fn sums_give_the_reference_s_labels() {
    let input = [7, 3, -2, 20, 11, -8];
    for (model, seed) in [(Model::residual(Told::Label), 160), (Model::branching(Told::Label), 161)] {
        let scores = model.reference(&input);
        let largest = (0..scores.len()).rev().max_by_key(|i| scores[*i]).unwrap();
        let run = run(&model, with_masks(&model, 4), &input, Cheat::Nothing, seed);
        run.server.unwrap();
        assert_eq!(run.client.unwrap(), Outcome::Label(largest));
    }
}

/// An honest client fails where what multiplies elements lacks what sums take of them; where a sum has no equation, one that shifts it passes.
#[test]
fn a_check_that_lacks_a_shortcut_or_a_sum_is_noticed() {
    let model = Model::residual(Told::Label);
    let input = [5, 17, 20, 2, -8, 0];
    let wrong = |wrong| Scheme { wrong, ..with_masks(&model, 4) };
    let forgetful = run(&model, wrong(Wrong::ForgetsShortcuts), &input, Cheat::Nothing, 170);
    assert!(matches!(forgetful.server, Err(ProtocolError::Cheating)), "{:?}", forgetful.server);
    let shifted = Cheat::Sum { stage: 1, element: 2, plus: 1 };
    run(&model, wrong(Wrong::LacksChi(1)), &input, shifted, 171).server.unwrap();
    let other = run(&model, wrong(Wrong::LacksChi(0)), &input, shifted, 172);
    assert!(matches!(other.server, Err(ProtocolError::Cheating)), "{:?}", other.server);
}

/// The cheats of a chain, on a network with shortcuts: in the layer beside one, in what is added, in what is both added and read.
#[test]
fn cheats_beside_shortcuts_are_caught() {
    let model = Model::residual(Told::Label);
    let cheats = [
        // The layer beside the shortcut: a wrong message, a torsion, noise; a wrong output.
        half(1, 2, 1, P),
        half(1, 3, 32, 64),
        half(1, 4, 1, 2 * P),
        Cheat::Output { layer: 1, element: 1, plus: 1 },
        // The sum alone; bits of it; the elements of both branches; a label that both take.
        Cheat::Sum { stage: 1, element: 0, plus: P - 3 },
        Cheat::Committed { stage: 1, bit: 19 },
        Cheat::Element { stage: 0, element: 3, plus: 1 },
        Cheat::Label { stage: 0, bit: 5 },
        Cheat::Hash,
    ];
    all_caught(&model, &cheats, 180);
}

/// As above where the client's input is a shortcut, two sums take one layer's outputs, and elements are moved.
#[test]
fn cheats_in_networks_of_many_sums_are_caught() {
    let model = Model::branching(Told::Scores);
    let cheats = [
        Cheat::Input(7),
        Cheat::Output { layer: 0, element: 4, plus: 2 },
        Cheat::Element { stage: 1, element: 0, plus: 1 },
        Cheat::Sum { stage: 3, element: 5, plus: 1 },
        half(3, 1, 1, P),
        half(4, 7000, 33, 99),
    ];
    all_caught(&model, &cheats, 200);
}

#[test]
fn items_that_do_not_fit_are_refused() {
    let refused = |items: Vec<Item>| Scheme::new(&Model::of(items, Told::Scores).network).err();
    let two = || vec![layer(Vec::new(), [6, 5], None), layer(vec![Term::of(0)], [6, 5], None)];
    let with = |terms: Vec<Term>| {
        let mut items = two();
        items.push(summed(terms, None));
        refused(items)
    };
    assert!(with(vec![Term::of(1), Term::of(2)]).is_none());
    for terms in [
        Vec::new(),
        vec![Term::of(1), Term::of(3)],
        vec![Term::of(1), Term::of(0)],
        vec![Term { factor: 0, ..Term::of(1) }],
        vec![Term { factor: P as i64 / 2, ..Term::of(1) }],
        vec![Term::of(usize::MAX)],
    ] {
        assert!(with(terms.clone()).is_some(), "{terms:?}");
    }
    // A layer behind a layer, a sum without circuits in the middle, circuits in the end, no layers, and no reader of the input.
    let behind = |items: Vec<Item>, last: Item| refused([items, vec![last]].concat()).is_some();
    assert!(behind(two(), layer(vec![Term::of(2)], [5, 2], None)));
    let early = [two(), vec![summed(vec![Term::of(1)], None)]].concat();
    assert!(behind(early, layer(vec![Term::of(0)], [6, 2], None)));
    assert!(behind(two(), summed(vec![Term::of(1)], Some((relu(0), 5)))));
    let sums =
        |terms: Vec<Term>| vec![summed(terms.clone(), Some((relu(0), 6))), summed(vec![Term::of(1)], None)];
    assert!(refused(sums(vec![Term::of(0)])).is_some());
    assert!(refused(sums(vec![Term::of(1)])).is_some());
    assert!(refused(Vec::new()).is_some());
}

/// Cheats against a network with a label, each of which has to end with what everybody hears.
fn caught(cheats: &[Cheat], seed: u8) {
    all_caught(&Model::dense(Told::Label), cheats, seed);
}

fn all_caught(model: &Model, cheats: &[Cheat], seed: u8) {
    for (number, cheat) in cheats.iter().enumerate() {
        let run = run(model, with_masks(model, 24), &[5, 17, 20, 2, -8, 0], *cheat, seed + number as u8);
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
    let committed = |stage, bit| Cheat::Committed { stage, bit };
    caught(&[committed(0, 0), committed(1, 59), Cheat::Input(7), Cheat::Label { stage: 0, bit: 3 }], 70);
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
    answers >= model.layers.len()
        && after(kind::LINEAR_OUTPUT, values)
        && after(kind::INPUT_LABELS, factors)
        && values < factors
}

#[test]
fn what_joins_the_checks_is_told_when_nothing_is_left_to_choose() {
    let models = [
        (Model::dense(Told::Label), 90),
        (Model::dense(Told::Probability(Probability { digits: 2, scale: 0.01 })), 93),
        (Model::dense(Told::Scores), 91),
        (Model::residual(Told::Label), 92),
    ];
    for (model, seed) in models {
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

/// Layers of as many outputs as fill bytes and a sum, with weights and an input of choice.
fn constant(weight: i64) -> Model {
    let items = vec![
        layer(Vec::new(), [64, 32], Some(relu(9))),
        layer(vec![Term::of(1)], [32, 32], None),
        summed(vec![Term::of(2), Term { factor: 3, ..Term::of(1) }], Some((relu(9), 32))),
        layer(Vec::new(), [32, 16], None),
    ];
    let mut model = Model::of(items, Told::Scores);
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
