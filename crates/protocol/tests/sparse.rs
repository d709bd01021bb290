//! Block-diagonal layers by transfers: outputs equal the convolution, samples together equal samples alone, bytes and material are those announced, and
//! messages are uniform.

use lanner_primitives::{Prg, Ring, Share, parallel};
use lanner_protocol::Protocol;
use lanner_step::{Built, Convolution, Known, Samples, Sets, Spec, ValueType};
use lanner_testkit::check_bits;
use lanner_transfers::{ComputedAhead, RingSparse};
use lanner_wire::{pack_bits, packed_len};
use rand_core::Rng;

use crate::common::laws::{Case, Model};
use crate::common::{constant, edge_share, ideal, rng, signed};

/// Blocks of some rows and columns on each pixel of an image.
fn blocks(groups: usize, rows: usize, columns: usize, image: [usize; 2]) -> Convolution {
    Convolution {
        in_channels: groups * columns,
        out_channels: groups * rows,
        image,
        groups,
        ..Convolution::fully_connected(1, 1)
    }
}

/// A layer with its weights, as both parties run it.
struct Layer {
    spec: RingSparse,
    model: Model,
    /// Whether it is computed ahead of time.
    is_ahead: bool,
}

/// What a run made, and the messages of the server offline and of the client online.
struct Outcome {
    outputs: [Share; 2],
    flips: Vec<u8>,
    corrections: Vec<u8>,
    /// What the client sent online.
    online: Vec<u8>,
}

impl Layer {
    fn new(shape: &Convolution, bits: [u32; 2], rng: &mut Prg) -> Self {
        // As on two cores, whatever the machine.
        parallel::set_threads(2);
        let [bits, weight_bits] = bits;
        let spec = RingSparse { shape: shape.clone(), bits, weight_bits, samples: Samples::ONE };
        // The ends of their range among them, and zero.
        let bound = 1_i64 << (weight_bits - 1);
        let mut weights = signed(shape.weights(), bound - 1, rng);
        for (weight, end) in weights.iter_mut().zip([-bound, bound - 1, 0]) {
            *weight = end;
        }
        let bias = signed(shape.outputs().unwrap(), 1 << (bits - 2), rng);
        Self { spec, model: Model::new(weights, bias), is_ahead: false }
    }

    fn ahead(self) -> Self {
        Self { is_ahead: true, ..self }
    }

    fn with_samples(mut self, samples: usize) -> Self {
        self.spec = self.spec.of_samples(Samples::try_from(samples).unwrap()).unwrap();
        self
    }

    fn ring(&self) -> Ring {
        Ring::Pow2(self.spec.bits)
    }

    fn inputs(&self) -> usize {
        self.spec.samples.times(self.spec.shape.inputs())
    }

    /// The step that is held against the laws: keys are written as they are held, shares in as many bits as they have.
    fn case(&self) -> Case<'_> {
        let case = if self.is_ahead {
            Case::new(ComputedAhead(self.spec.clone()), &self.model)
        } else {
            Case::new(self.spec.clone(), &self.model)
        };
        Case { words: 16, ..case }
    }

    fn built(&self) -> Box<dyn Built> {
        self.case().built()
    }

    fn run(&self, [client, server]: [&Share; 2], seed: u8) -> Outcome {
        let run = self.case().run([&[client], &[server]], seed);
        assert_eq!(run.sent[1][2], [], "the server says nothing online");
        let [corrections, online] = if self.is_ahead {
            [run.only(0, 1, 0x74), run.only(0, 2, 0x44)]
        } else {
            [run.only(0, 2, 0x74), run.only(0, 2, 0x74)]
        };
        Outcome { flips: run.only(1, 1, 0x74), outputs: run.outputs, corrections, online }
    }

    /// The layer in the clear, of each sample.
    fn expected(&self, shares: [&Share; 2]) -> Vec<i64> {
        let input = shares[0].reveal(shares[1]).unwrap();
        let RingSparse { shape, .. } = &self.spec;
        let of_sample = |input| {
            ideal::reduced_convolution(shape, &self.model.weights, &self.model.bias, self.ring(), input)
        };
        input.chunks(shape.inputs()).flat_map(of_sample).collect()
    }

    fn check(&self, shares: [&Share; 2], seed: u8) {
        let [client, server] = self.run(shares, seed).outputs;
        assert_eq!(client.ring(), self.ring());
        assert_eq!(client.reveal(&server).unwrap(), self.expected(shares), "{:?}", self.spec);
    }
}

#[test]
fn shares_add_up_to_the_layer_exactly() {
    let shapes = [
        (blocks(300, 1, 1, [1, 1]), [25, 12]),
        (blocks(5, 1, 1, [3, 4]), [22, 12]),
        // More elements than are packed together, in rows of one number and of several.
        (blocks(3, 1, 1, [70, 64]), [23, 12]),
        (blocks(90, 1, 1, [1, 64]), [23, 12]),
        (blocks(7, 3, 4, [1, 1]), [29, 15]),
        (blocks(4, 5, 2, [2, 3]), [37, 16]),
        (blocks(2, 2, 2, [1, 2]), [62, 16]),
        (blocks(6, 1, 3, [1, 1]), [4, 4]),
        (blocks(1, 1, 1, [1, 1]), [16, 2]),
    ];
    for (number, (shape, bits)) in (0..).zip(shapes) {
        let rng = &mut rng(number);
        let layer = Layer::new(&shape, bits, rng);
        let [client, server] = [0; 2].map(|_| edge_share(layer.ring(), shape.inputs(), rng));
        layer.check([&client, &server], 20 + 2 * number);
    }
}

#[test]
fn random_layers_equal_the_convolution() {
    for number in 0..10 {
        let rng = &mut rng(100 + number);
        let mut below = |most: u64| 1 + (rng.next_u64() % most) as usize;
        let shape = blocks(below(9), below(4), below(4), [below(3), below(5)]);
        let bits = 4 + below(58) as u32;
        let weight_bits = (1 + below(15) as u32).min(bits);
        let samples = 1 << (below(3) - 1);
        let layer = Layer::new(&shape, [bits, weight_bits], rng).with_samples(samples);
        let shares = [0; 2].map(|_| edge_share(layer.ring(), layer.inputs(), rng));
        let layer = if number % 2 == 1 { layer.ahead() } else { layer };
        layer.check([&shares[0], &shares[1]], 2 * number);
    }
}

#[test]
fn samples_together_are_samples_alone() {
    let shape = blocks(6, 2, 3, [2, 2]);
    let (random, samples) = (&mut rng(3), 2);
    let alone = Layer::new(&shape, [24, 12], random);
    let together = Layer::new(&shape, [24, 12], &mut rng(3)).with_samples(samples);
    let [client, server] = [0; 2].map(|_| edge_share(alone.ring(), together.inputs(), random));
    let [c, s] = together.run([&client, &server], 5).outputs;
    let part = |share: &Share, at: usize| {
        Share::new(share.ring(), share.values()[at * shape.inputs()..][..shape.inputs()].to_vec()).unwrap()
    };
    let each = (0..samples).flat_map(|at| {
        let [c, s] = alone.run([&part(&client, at), &part(&server, at)], 10 + at as u8).outputs;
        c.reveal(&s).unwrap()
    });
    assert_eq!(c.reveal(&s).unwrap(), each.collect::<Vec<_>>());
    // One transfer serves all samples.
    assert_eq!(together.built().needs().unwrap(), alone.built().needs().unwrap());
}

#[test]
fn shares_at_the_edges_add_up() {
    let layer = Layer::new(&blocks(4, 2, 2, [1, 3]), [24, 12], &mut rng(9));
    let edges = [0, -1, 1 << 23].map(|value| constant(layer.ring(), value, layer.inputs()));
    for (client, server) in edges.iter().zip(edges.iter().cycle().skip(1)) {
        layer.check([client, server], 11);
    }
}

/// Multiples of eight, so that no byte is padded.
const COUNT: usize = 4096;
const BITS: [u32; 2] = [24, 12];

/// The corrections of each bit apart, which have one bit less than those of the bit before.
fn by_bit(corrections: &[u8]) -> Vec<&[u8]> {
    let mut rest = corrections;
    let cut = |i: u32| {
        let (now, later) = rest.split_at(packed_len(COUNT, BITS[0] - i));
        rest = later;
        now
    };
    (0..BITS[1]).map(cut).collect()
}

#[test]
fn messages_are_uniform_whatever_weights_and_shares_are() {
    let shape = blocks(COUNT, 1, 1, [1, 1]);
    let seeds = [30, 32];
    for (weight, value) in [(0, 0), (-2048, 1), (2047, -1), (1, 1 << 23)] {
        let mut layer = Layer::new(&shape, BITS, &mut rng(1));
        layer.model.weights = vec![weight; COUNT];
        let input = constant(layer.ring(), value, COUNT);
        let runs = seeds.map(|seed| layer.run([&input, &input], seed));
        let flips: Vec<&[u8]> = runs.iter().map(|run| run.flips.as_slice()).collect();
        assert_eq!(check_bits(&flips, &[BITS[1] as usize]), Ok(()), "{weight}, {value}");
        // A server without random choices.
        let bare = pack_bits(&vec![(weight + 2048) as u64; 2 * COUNT], BITS[1]);
        assert!(check_bits(&[&bare], &[BITS[1] as usize]).is_err(), "{weight}");
        for i in 0..BITS[1] {
            let of_bit: Vec<&[u8]> = runs.iter().map(|run| by_bit(&run.corrections)[i as usize]).collect();
            assert_eq!(check_bits(&of_bit, &[(BITS[0] - i) as usize]), Ok(()), "{weight}, {value}, bit {i}");
            // A client whose keys are zero.
            let bare = pack_bits(&vec![(value as u64) & 0xff_ffff; 2 * COUNT], BITS[0] - i);
            assert!(check_bits(&[&bare], &[(BITS[0] - i) as usize]).is_err(), "{value}, bit {i}");
        }
        // Keys that serve two inputs.
        let other = layer.run([&constant(layer.ring(), value + 1, COUNT), &input], 30).corrections;
        let twice = [by_bit(&runs[0].corrections)[0], by_bit(&other)[0]];
        let differ = twice[0].chunks(3).zip(twice[1].chunks(3)).filter(|(a, b)| {
            let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
            word(b).wrapping_sub(word(a)) & 0xff_ffff == 1
        });
        assert_eq!(differ.count(), COUNT, "the difference shows");
    }
}

#[test]
fn what_is_left_to_send_online_is_uniform() {
    let layer = Layer::new(&blocks(COUNT, 1, 1, [1, 1]), BITS, &mut rng(1)).ahead();
    for value in [0, -1] {
        let input = constant(layer.ring(), value, COUNT);
        let runs = [40, 50].map(|seed| layer.run([&input, &input], seed));
        let messages: Vec<&[u8]> = runs.iter().map(|run| run.online.as_slice()).collect();
        assert_eq!(check_bits(&messages, &[BITS[0] as usize]), Ok(()), "{value}");
        // A client whose mask is zero, and one that takes a mask twice.
        let bare = pack_bits(constant(layer.ring(), value, 2 * COUNT).values(), BITS[0]);
        assert!(check_bits(&[&bare], &[BITS[0] as usize]).is_err(), "{value}");
        let other = layer.run([&constant(layer.ring(), value + 1, COUNT), &input], 40).online;
        assert!(check_bits(&[&messages[..], &[&other]].concat(), &[BITS[0] as usize]).is_err(), "{value}");
    }
}

#[test]
fn shares_are_uniform_whatever_weights_and_inputs_are() {
    let mut layer = Layer::new(&blocks(COUNT, 1, 1, [1, 1]), BITS, &mut rng(1));
    layer.model.bias = vec![0; COUNT];
    layer.model.weights = vec![0; COUNT];
    let input = constant(layer.ring(), 0, COUNT);
    let runs: Vec<Outcome> = [30, 32].map(|seed| layer.run([&input, &input], seed)).into();
    for party in 0..2 {
        let shares: Vec<Vec<u8>> =
            runs.iter().map(|run| pack_bits(run.outputs[party].values(), BITS[0])).collect();
        let shares: Vec<&[u8]> = shares.iter().map(Vec::as_slice).collect();
        assert_eq!(check_bits(&shares, &[BITS[0] as usize]), Ok(()));
    }
}

#[test]
fn nobody_knows_a_share_ahead_and_other_shapes_are_refused() {
    let layer = Layer::new(&blocks(4, 1, 1, [2, 2]), [24, 12], &mut rng(1));
    let of_image = Protocol::from(layer.spec.clone());
    assert_eq!(of_image.name(), "ot.sparse");
    for known in [Known::NOBODY, Known::SERVER, Known::CLIENT] {
        let input = ValueType::shared(layer.ring(), 16, known);
        assert_eq!(layer.spec.infer(&[input]).unwrap(), ValueType::shared(layer.ring(), 16, Known::NOBODY));
    }
    let ahead = ComputedAhead(layer.spec.clone());
    let input = ValueType::shared(layer.ring(), 16, Known::SERVER);
    assert_eq!(ahead.infer(&[input]).unwrap(), ValueType::shared(layer.ring(), 16, Known::CLIENT));
    assert_eq!(Protocol::from(ahead).name(), "ot.sparse_ahead");
    assert!(layer.spec.infer(&[ValueType::shared(Ring::Pow2(25), 16, Known::SERVER)]).is_err());
    assert!(layer.spec.infer(&[ValueType::shared(layer.ring(), 15, Known::SERVER)]).is_err());
    let refused = |spec: RingSparse| spec.build(&Sets::new().unwrap()).is_err();
    let of = |shape: Convolution| RingSparse { shape, ..layer.spec.clone() };
    let shape = || layer.spec.shape.clone();
    assert!(!refused(layer.spec.clone()));
    assert!(refused(of(Convolution { kernel: [2, 1], ..shape() })));
    assert!(refused(of(Convolution { strides: [1, 2], ..shape() })));
    assert!(refused(of(Convolution { pads: [0, 0, 1, 0], ..shape() })));
    assert!(refused(of(Convolution { groups: 3, ..shape() })));
    assert!(refused(of(Convolution { in_channels: usize::MAX, groups: 1, ..shape() })));
    for (bits, weight_bits) in [(1, 1), (63, 12), (24, 1), (24, 25), (40, 33)] {
        assert!(refused(RingSparse { bits, weight_bits, ..layer.spec.clone() }), "{bits}, {weight_bits}");
    }
}

#[test]
fn weights_of_more_bits_and_other_lengths_are_refused() {
    let layer = |weights: Vec<i64>, bias: Vec<i64>| {
        let layer = Layer::new(&blocks(2, 1, 1, [1, 1]), [24, 12], &mut rng(1));
        layer.built().server("layer", &Model::new(weights, bias)).is_ok()
    };
    assert!(layer(vec![-2048, 2047], vec![0; 2]));
    assert!(!layer(vec![-2049, 0], vec![0; 2]));
    assert!(!layer(vec![2048, 0], vec![0; 2]));
    assert!(!layer(vec![0; 3], vec![0; 2]));
}
