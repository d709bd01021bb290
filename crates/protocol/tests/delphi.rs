//! Layers that are encrypted ahead of time: outputs equal the convolution, bytes are those announced, offline is one round, material comes back from
//! its bytes, and what the client sends online is uniform.

use lanner_bfv::ParameterSet;
use lanner_coefficient::cheetah::{self, Accuracy, Scheme, Stacked};
use lanner_coefficient::delphi::{self, Product, ServerLayer};
use lanner_primitives::{Ring, Share, parallel};
use lanner_protocol::Protocol;
use lanner_step::{Built, Convolution, Known, Samples, Sets, Spec, ValueType};
use lanner_testkit::check_bits;
use lanner_wire::pack_bits;

use crate::common::laws::{Case, Model};
use crate::common::{constant, edge_share, ideal, rng, signed};

fn conv(channels: [usize; 2], image: [usize; 2], kernel: usize, strides: usize, pad: usize) -> Convolution {
    Convolution {
        in_channels: channels[0],
        out_channels: channels[1],
        image,
        kernel: [kernel; 2],
        strides: [strides; 2],
        pads: [pad; 4],
        dilations: [1, 1],
        groups: 1,
    }
}

/// A layer with its weights, as both parties run it.
struct Layer {
    spec: delphi::Linear,
    model: Model,
    sets: Sets,
}

/// What was made of an input, and what was sent for it.
struct Outcome {
    outputs: [Share; 2],
    /// What the client sent online.
    difference: Vec<u8>,
}

impl Layer {
    fn new(shape: &Convolution, bits: u32, accuracy: Accuracy, seed: u8) -> Self {
        let (layer, sets) = (Stacked::try_from(shape).unwrap(), Sets::new().unwrap());
        let (set, _) = Scheme::cheapest(&layer, bits, accuracy, &sets).unwrap();
        Self::in_set(set, shape, bits, accuracy, seed)
    }

    /// With packed answers.
    fn packed(shape: &Convolution, bits: u32, guard: u32, seed: u8) -> Self {
        let (layer, sets) = (Stacked::try_from(shape).unwrap(), Sets::new().unwrap());
        let (set, scheme) = Scheme::packed(&layer, bits, guard, &sets).unwrap().unwrap();
        assert!(scheme.packing().packed() > 1);
        Self::in_set(set, shape, bits, Accuracy::Guarded(guard), seed)
    }

    fn in_set(set: ParameterSet, shape: &Convolution, bits: u32, accuracy: Accuracy, seed: u8) -> Self {
        // As on two cores, whatever the machine.
        parallel::set_threads(2);
        let sets = Sets::new().unwrap();
        let spec = delphi::Linear(cheetah::Linear {
            shape: shape.clone(),
            bits,
            set,
            accuracy,
            samples: Samples::ONE,
        });
        // The largest and the least weight among them.
        let bound = (1 << (Scheme::weight_bits(bits) - 1)) - 1;
        let mut weights = signed(shape.weights(), bound, &mut rng(seed));
        weights[0] = bound;
        *weights.last_mut().unwrap() = -bound;
        let bias = signed(shape.outputs().unwrap(), 1000, &mut rng(seed + 1));
        Self { spec, model: Model::new(weights, bias), sets }
    }

    fn ring(&self) -> Ring {
        Ring::Pow2(self.spec.0.bits)
    }

    fn guard(&self) -> u32 {
        self.spec.0.accuracy.guard()
    }

    fn built(&self) -> Box<dyn Built> {
        self.spec.build(&self.sets).unwrap()
    }

    /// One run, which keeps to the laws: the client sends one message online, and the server none.
    fn run(&self, client: &Share, server: &Share, seed: u8) -> Outcome {
        let run = Case::new(self.spec.clone(), &self.model).run([&[client], &[server]], seed + 2);
        assert_eq!(run.sent[1][2], []);
        Outcome { difference: run.only(0, 2, 0x44), outputs: run.outputs }
    }

    /// How far the sum of the outputs is from the layer's value, below its bits.
    fn off(&self, client_input: &Share, server_input: &Share, seed: u8) -> Vec<i64> {
        let input = client_input.reveal(server_input).unwrap();
        let cheetah::Linear { shape, .. } = &self.spec.0;
        let expected =
            ideal::reduced_convolution(shape, &self.model.weights, &self.model.bias, self.ring(), &input);
        let [client, server] = self.run(client_input, server_input, seed).outputs;
        let ring = client.ring();
        assert_eq!(ring, Ring::Pow2(self.ring().bits() + self.guard()));
        let off = |(got, expected): (i64, i64)| {
            ring.signed(ring.sub(ring.embed(got), ring.embed(expected << self.guard())))
        };
        client.reveal(&server).unwrap().into_iter().zip(expected).map(off).collect()
    }
}

#[test]
fn shares_add_up_to_the_layer_whatever_they_are() {
    let exact = [
        (conv([3, 8], [12, 11], 3, 1, 1), 28),
        (conv([5, 4], [9, 9], 5, 2, 2), 28),
        (conv([3, 8], [12, 11], 3, 1, 1), 41),
        (Convolution::fully_connected(300, 40), 37),
    ];
    let guarded = [
        (conv([3, 8], [12, 11], 3, 1, 1), 20, 1),
        (conv([5, 4], [9, 9], 5, 2, 2), 26, 2),
        (conv([16, 16], [8, 8], 1, 1, 0), 27, 1),
        (Convolution { groups: 6, dilations: [2, 1], ..conv([6, 6], [10, 10], 3, 1, 1) }, 24, 3),
        (Convolution::fully_connected(2048, 1), 28, 1),
        (Convolution::fully_connected(300, 40), 37, 1),
    ];
    let exact = exact.into_iter().map(|(shape, bits)| (shape, bits, Accuracy::Exact));
    let guarded = guarded.into_iter().map(|(shape, bits, guard)| (shape, bits, Accuracy::Guarded(guard)));
    for (number, (shape, bits, accuracy)) in exact.chain(guarded).enumerate() {
        let seed = 10 * number as u8;
        let layer = Layer::new(&shape, bits, accuracy, seed);
        let [client, server] =
            [4, 5].map(|more| edge_share(layer.ring(), shape.inputs(), &mut rng(seed + more)));
        let most = i64::from(layer.guard() > 0);
        for off in layer.off(&client, &server, seed) {
            assert!((0..=most).contains(&off), "{off}: {shape:?}, {bits} bits");
        }
    }
}

/// Tokens, some that fill ciphertexts and some that do not; several tiles, groups, and a kernel of more than one pixel.
#[test]
fn packed_answers_add_up_to_the_layer() {
    let tokens = |tokens, inputs, outputs| Convolution {
        image: [tokens, 1],
        ..Convolution::fully_connected(inputs, outputs)
    };
    let shapes = [
        (tokens(128, 64, 48), 25, 1),
        (tokens(50, 96, 33), 30, 2),
        (tokens(300, 16, 5), 20, 1),
        (conv([8, 12], [13, 11], 3, 1, 1), 24, 1),
        (Convolution { groups: 2, ..conv([16, 8], [9, 10], 1, 2, 0) }, 33, 3),
    ];
    for (number, (shape, bits, guard)) in shapes.into_iter().enumerate() {
        let seed = 10 * number as u8;
        let layer = Layer::packed(&shape, bits, guard, seed);
        let [client, server] =
            [4, 5].map(|more| edge_share(layer.ring(), shape.inputs(), &mut rng(seed + more)));
        for off in layer.off(&client, &server, seed) {
            assert!((0..=1).contains(&off), "{off}: {shape:?}, {bits} bits");
        }
    }
}

#[test]
fn packed_answers_add_up_at_the_edges() {
    let shape = Convolution { image: [17, 1], ..Convolution::fully_connected(16, 4) };
    let layer = Layer::packed(&shape, 24, 1, 20);
    let edges = [0, -1, 1 << 23].map(|value| constant(layer.ring(), value, shape.inputs()));
    for (client, server) in edges.iter().flat_map(|client| edges.iter().map(move |server| (client, server))) {
        assert!(layer.off(client, server, 21).iter().all(|off| (0..=1).contains(off)));
    }
}

#[test]
fn shares_at_the_edges_add_up() {
    let shape = conv([2, 3], [7, 6], 3, 2, 1);
    for (bits, accuracy) in [(24, Accuracy::Guarded(1)), (33, Accuracy::Exact)] {
        let layer = Layer::new(&shape, bits, accuracy, 20);
        let edges = [0, -1, 1 << (bits - 1)].map(|value| constant(layer.ring(), value, shape.inputs()));
        for (client, server) in
            edges.iter().flat_map(|client| edges.iter().map(move |server| (client, server)))
        {
            let most = i64::from(layer.guard() > 0);
            assert!(layer.off(client, server, 21).iter().all(|off| (0..=most).contains(off)), "{bits} bits");
        }
    }
}

#[test]
fn other_layers_are_off_by_one_at_most() {
    let layer = Layer::new(&conv([3, 8], [12, 11], 3, 1, 1), 24, Accuracy::OffByOne, 3);
    let [client, server] = [7, 8].map(|seed| edge_share(layer.ring(), 3 * 12 * 11, &mut rng(seed)));
    assert!(layer.off(&client, &server, 9).iter().all(|off| off.abs() <= 1));
}

/// A multiple of eight, so that no byte is padded.
const INPUTS: usize = 1024;
const BITS: u32 = 24;

#[test]
fn a_difference_is_uniform_whatever_the_share() {
    let layer = Layer::new(&Convolution::fully_connected(INPUTS, 2), BITS, Accuracy::Guarded(1), 30);
    for value in [0, 1, -1, 1 << (BITS - 1)] {
        let input = constant(layer.ring(), value, INPUTS);
        let runs = [40, 50, 60, 70].map(|seed| layer.run(&input, &input, seed));
        let messages: Vec<&[u8]> = runs.iter().map(|run| run.difference.as_slice()).collect();
        assert_eq!(check_bits(&messages, &[BITS as usize]), Ok(()), "{value}");
        // Clients whose masks are zero, and one that takes a mask twice.
        let bare = pack_bits(constant(layer.ring(), value, 4 * INPUTS).values(), BITS);
        assert!(check_bits(&[&bare], &[BITS as usize]).is_err(), "{value}");
        let other = layer.run(&constant(layer.ring(), value + 1, INPUTS), &input, 40).difference;
        assert!(check_bits(&[&messages[..], &[&other]].concat(), &[BITS as usize]).is_err(), "{value}");
    }
}

#[test]
fn the_client_alone_knows_its_share_ahead() {
    let layer = Layer::new(&conv([2, 3], [8, 8], 3, 1, 1), BITS, Accuracy::Guarded(2), 30);
    assert_eq!(Protocol::from(layer.spec.clone()).name(), "delphi.conv");
    let fully_connected = Layer::new(&Convolution::fully_connected(4, 2), BITS, Accuracy::Exact, 30);
    assert_eq!(Protocol::from(fully_connected.spec.clone()).name(), "delphi.fc");
    for known in [Known::NOBODY, Known::SERVER, Known::CLIENT] {
        let input = ValueType::shared(layer.ring(), 128, known);
        let output = ValueType::shared(Ring::Pow2(BITS + 2), 192, Known::CLIENT);
        assert_eq!(layer.spec.infer(&[input]).unwrap(), output);
    }
    let other = ValueType::shared(Ring::Pow2(BITS + 1), 128, Known::SERVER);
    assert!(layer.spec.infer(&[other]).is_err());
}

#[test]
fn weights_of_more_bits_and_other_lengths_are_refused() {
    let shape = Convolution::fully_connected(4, 2);
    let scheme = || {
        Scheme::cheapest(&Stacked::try_from(&shape).unwrap(), 20, Accuracy::Exact, &Sets::new().unwrap())
            .unwrap()
            .1
    };
    assert!(ServerLayer::new(scheme(), &[1; 8], &[0; 2]).is_ok());
    assert!(ServerLayer::new(scheme(), &[1; 7], &[0; 2]).is_err());
    assert!(ServerLayer::new(scheme(), &[1; 8], &[0; 3]).is_err());
    assert!(ServerLayer::new(scheme(), &[2049; 8], &[0; 2]).is_err());
}

#[test]
fn the_server_keeps_a_word_for_each_weight_beside_the_encrypted_layer() {
    let layer = Layer::new(&conv([16, 16], [8, 8], 3, 1, 1), BITS, Accuracy::Guarded(1), 30);
    let encrypted = layer.spec.0.build(&layer.sets).unwrap().memory().unwrap();
    let memory = layer.built().memory().unwrap();
    let product = Product::bytes(&layer.spec.0.shape, BITS).unwrap();
    assert!(product >= 4 * 16 * 16 * 9);
    assert_eq!(memory.model, encrypted.model + product);
    assert!(10 * memory.client_material < encrypted.client_material);
    assert!(10 * memory.server_material < encrypted.server_material);
}
