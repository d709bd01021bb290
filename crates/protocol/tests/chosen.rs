//! The step function and the layer behind it in one: outputs equal the layer of `[x >= 1]`, bytes and material are those announced, and messages are uniform.

use lanner_primitives::{Prg, Ring, Share, parallel};
use lanner_protocol::Protocol;
use lanner_step::{Built, Convolution, Known, Samples, Sets, Spec, ValueType};
use lanner_testkit::check_bits;
use lanner_transfers::RingChosen;
use lanner_wire::pack_bits;

use crate::common::laws::{Case, Model};
use crate::common::{Party as End, edge_share, rng, signed, split};

/// A matrix for each group, of some rows and columns.
pub(crate) fn groups([groups, rows, columns]: [usize; 3]) -> Convolution {
    let whole = Convolution::fully_connected(columns, rows);
    Convolution { in_channels: groups * columns, out_channels: groups * rows, groups, ..whole }
}

/// A step with the weights of its layer, as both parties run it.
pub(crate) struct Layer {
    spec: RingChosen,
    model: Model,
}

/// What a run made, and the last messages of both: the client's choices and the server's corrections.
struct Outcome {
    outputs: [Share; 2],
    flips: Vec<u8>,
    corrections: Vec<u8>,
}

impl Layer {
    /// Of values over a ring of some bits, with outputs over another; the ends of the range of weights are among them.
    pub(crate) fn new(shape: &Convolution, [from, to]: [u32; 2], rng: &mut Prg) -> Self {
        // As on two cores, whatever the machine.
        parallel::set_threads(2);
        let spec = RingChosen { shape: shape.clone(), from, to, samples: Samples::ONE };
        let bound = (1_i64 << (to - 1)) - 1;
        let mut weights = signed(shape.weights(), bound, rng);
        for (weight, end) in weights.iter_mut().zip([bound, -bound, 0]) {
            *weight = end;
        }
        let bias = signed(shape.outputs().unwrap(), bound, rng);
        Self { spec, model: Model::new(weights, bias) }
    }

    fn with_samples(mut self, samples: usize) -> Self {
        self.spec = self.spec.of_samples(Samples::try_from(samples).unwrap()).unwrap();
        self
    }

    fn rings(&self) -> [Ring; 2] {
        [self.spec.from, self.spec.to].map(Ring::Pow2)
    }

    pub(crate) fn inputs(&self) -> usize {
        self.spec.samples.times(self.spec.shape.inputs())
    }

    /// The step that is held against the laws; most of its material is keys.
    fn case(&self) -> Case<'_> {
        Case { words: 8, ..Case::new(self.spec.clone(), &self.model) }
    }

    fn built(&self) -> Box<dyn Built> {
        self.case().built()
    }

    /// A session of its own.
    pub(crate) fn play(&self, channels: &mut (End, End), [client, server]: [&Share; 2], seed: u8) {
        self.case().run_over(channels, [&[client], &[server]], seed);
    }

    fn run(&self, [client, server]: [&Share; 2], seed: u8) -> Outcome {
        let run = self.case().run([&[client], &[server]], seed);
        let last = |party: usize| run.sent[party][2].last().unwrap().clone();
        let [flips, corrections] = [last(0), last(1)];
        assert_eq!([flips.0.0, corrections.0.0], [0x74; 2]);
        Outcome { outputs: run.outputs, flips: flips.1, corrections: corrections.1 }
    }

    /// What a trusted dealer who sees both shares would hand out.
    fn ideal(&self, secrets: &[i64]) -> Vec<i64> {
        let (shape, [_, ring]) = (&self.spec.shape, self.rings());
        let [rows, columns] = [shape.group_outputs(), shape.group_inputs()];
        let output = |(sample, output): (&[i64], usize)| {
            let bits = sample[output / rows * columns..].iter().map(|x| u64::from(*x >= 1));
            let weights = &self.model.weights[output * columns..][..columns];
            let sum = bits.zip(weights).fold(self.model.bias[output] as u64, |sum, (bit, weight)| {
                sum.wrapping_add(bit.wrapping_mul(*weight as u64))
            });
            ring.signed(ring.embed(sum as i64))
        };
        let outputs = self.model.bias.len();
        let all = secrets.chunks(shape.inputs()).flat_map(|sample| (0..outputs).map(move |k| (sample, k)));
        all.map(output).collect()
    }

    fn check(&self, secrets: &[i64], server: &Share, seed: u8) {
        let client = split(self.rings()[0], secrets, server);
        let [mine, theirs] = self.run([&client, server], seed).outputs;
        assert_eq!(mine.ring(), self.rings()[1]);
        assert_eq!(mine.reveal(&theirs).unwrap(), self.ideal(secrets), "{:?}", self.spec);
    }
}

/// Values around zero, the ends of the ring, and random ones.
fn values(bits: u32, count: usize, rng: &mut Prg) -> Vec<i64> {
    let top = (1_i64 << (bits - 1)) - 1;
    let edges = [0, 1, -1, top, -top, 2.min(top)];
    let random = signed(count, top, rng);
    random.into_iter().enumerate().map(|(i, x)| edges.get(i % 11).copied().unwrap_or(x)).collect()
}

#[test]
fn shares_add_up_to_the_layer_of_steps() {
    let cases = [
        ([1, 1, 70], [4, 32], 1),
        ([1, 5, 9], [26, 32], 4),
        ([3, 1, 7], [4, 32], 4),
        ([3, 5, 4], [5, 33], 1),
        ([3, 5, 4], [6, 8], 4),
        ([1, 1, 1], [2, 2], 1),
        ([2, 2, 3], [62, 62], 2),
        ([40, 1, 1], [3, 20], 1),
        // More products than are made together, of many comparisons and of few.
        ([1, 1, 9001], [4, 32], 1),
        ([1, 2500, 19], [7, 24], 1),
        ([7, 3, 70], [16, 30], 8),
    ];
    for (number, (sides, rings, samples)) in (0..).zip(cases) {
        let rng = &mut rng(number);
        let layer = Layer::new(&groups(sides), rings, rng).with_samples(samples);
        let secrets = values(rings[0], layer.inputs(), rng);
        let server = edge_share(layer.rings()[0], secrets.len(), rng);
        layer.check(&secrets, &server, 20 + 2 * number);
    }
}

/// Every value of a small ring but the lowest, with every share of the server's.
#[test]
fn every_sharing_of_every_value_chooses_rightly() {
    for (number, from) in (2..=8).enumerate() {
        let top = (1_i64 << (from - 1)) - 1;
        let every = (-top..=top).flat_map(|x| (0..1_u64 << from).map(move |share| (x, share)));
        let (secrets, server): (Vec<i64>, Vec<u64>) = every.unzip();
        let layer = Layer::new(&groups([secrets.len(), 1, 1]), [from, 12], &mut rng(from as u8));
        let server = Share::new(Ring::Pow2(from), server).unwrap();
        layer.check(&secrets, &server, 60 + 2 * number as u8);
    }
}

/// Multiples of eight, so that no byte is padded.
const COUNT: usize = 4096;
const RINGS: [u32; 2] = [4, 24];

fn constant(value: u64) -> Share {
    Share::new(Ring::Pow2(RINGS[0]), vec![value; COUNT]).unwrap()
}

fn uniform(messages: &[&[u8]], bits: u32) -> bool {
    check_bits(messages, &[bits as usize]).is_ok()
}

#[test]
fn messages_and_shares_are_uniform_whatever_weights_and_shares_are() {
    let mut layer = Layer::new(&groups([COUNT, 1, 1]), RINGS, &mut rng(1));
    for (weight, [client, server]) in [(0, [0, 0]), (1, [0, 1]), (-(1 << 22), [15, 15]), (7, [8, 7])] {
        layer.model = Model::new(vec![weight; COUNT], vec![0; COUNT]);
        let runs = [30, 32].map(|seed| layer.run([&constant(client), &constant(server)], seed));
        let flips: Vec<&[u8]> = runs.iter().map(|run| run.flips.as_slice()).collect();
        assert!(uniform(&flips, 1), "{weight}, {client}, {server}");
        let corrections: Vec<&[u8]> = runs.iter().map(|run| run.corrections.as_slice()).collect();
        assert!(uniform(&corrections, RINGS[1]), "{weight}, {client}, {server}");
        for party in 0..2 {
            let shares = [0, 1].map(|run| pack_bits(runs[run].outputs[party].values(), RINGS[1]));
            assert!(uniform(&[&shares[0], &shares[1]], RINGS[1]), "{weight}, {client}, {server}");
        }
        // A server whose keys are zero: what it offers is its weight, or the negative.
        let offer = |i: usize| Ring::Pow2(RINGS[1]).embed(if i.is_multiple_of(3) { -weight } else { weight });
        let bare = pack_bits(&(0..2 * COUNT).map(offer).collect::<Vec<_>>(), RINGS[1]);
        assert!(!uniform(&[&bare], RINGS[1]));
    }
}

/// Material that serves twice shows of what it serves for: the client's choices of values of one sign and the other, and two weights.
#[test]
fn material_that_is_used_twice_is_found() {
    let layer = |weight| {
        let mut layer = Layer::new(&groups([COUNT, 1, 1]), RINGS, &mut rng(1));
        layer.model.weights = vec![weight; COUNT];
        layer
    };
    let zero = constant(0);
    let once = layer(5).run([&zero, &zero], 40);
    let differing = |a: &[u8], b: &[u8]| a.iter().zip(b).map(|(a, b)| a ^ b).collect::<Vec<u8>>();
    let of_positive = layer(5).run([&constant(1), &zero], 40);
    assert!(differing(&once.flips, &of_positive.flips).iter().all(|byte| *byte == 0xff));
    let of_other = layer(6).run([&zero, &zero], 40);
    let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
    let words = once.corrections.chunks(3).zip(of_other.corrections.chunks(3));
    let apart = words.map(|(a, b)| word(b).wrapping_sub(word(a)) & 0xff_ffff);
    assert!(apart.into_iter().all(|apart| apart == 1 || apart == 0xff_ffff));
}

#[test]
fn a_row_of_weights_takes_one_transfer() {
    let needs = |rows| Layer::new(&groups([3, rows, 50]), [4, 32], &mut rng(1)).built().needs().unwrap();
    // Comparisons of four bits have a leaf of three; the client sends no transfer.
    assert_eq!(needs(1).transfers, [0, 150 * (3 + 1)]);
    assert_eq!(needs(10), needs(1));
}

#[test]
fn other_shapes_rings_and_models_are_refused() {
    let layer = Layer::new(&groups([3, 2, 4]), [4, 24], &mut rng(1));
    assert_eq!(Protocol::from(layer.spec.clone()).name(), "ot.chosen");
    for known in [Known::NOBODY, Known::SERVER, Known::CLIENT] {
        let made = layer.spec.infer(&[ValueType::shared(Ring::Pow2(4), 12, known)]).unwrap();
        assert_eq!(made, ValueType::shared(Ring::Pow2(24), 6, Known::NOBODY));
    }
    assert!(layer.spec.infer(&[ValueType::shared(Ring::Pow2(5), 12, Known::SERVER)]).is_err());
    assert!(layer.spec.infer(&[ValueType::shared(Ring::Pow2(4), 11, Known::SERVER)]).is_err());
    let refused = |spec: RingChosen| spec.build(&Sets::new().unwrap()).is_err();
    let of = |shape: Convolution| RingChosen { shape, ..layer.spec.clone() };
    let shape = || layer.spec.shape.clone();
    assert!(!refused(layer.spec.clone()));
    assert!(refused(of(Convolution { image: [1, 2], ..shape() })));
    assert!(refused(of(Convolution { kernel: [2, 1], ..shape() })));
    assert!(refused(of(Convolution { pads: [0, 0, 1, 0], ..shape() })));
    assert!(refused(of(Convolution { groups: 5, ..shape() })));
    assert!(refused(of(Convolution { in_channels: usize::MAX, groups: 1, ..shape() })));
    for (from, to) in [(1, 24), (63, 24), (4, 1), (4, 63)] {
        assert!(refused(RingChosen { from, to, ..layer.spec.clone() }), "{from}, {to}");
    }
    let with = |weights: usize, bias: usize| {
        let layer = Layer::new(&groups([3, 2, 4]), [4, 24], &mut rng(1));
        layer.built().server("layer", &Model::new(vec![1; weights], vec![0; bias])).is_ok()
    };
    assert!(with(24, 6) && !with(23, 6));
}
