//! Coefficient-encoded layers: outputs equal the convolution, bytes are those announced, shares are uniform.

use lanner_bfv::ParameterSet;
use lanner_coefficient::cheetah::{Accuracy, ClientLayer, Linear, Scheme, ServerLayer, Stacked};
use lanner_primitives::{Ring, Share, parallel};
use lanner_step::{Answering, Client, Convolution, Samples, Server, SetUp, Sets, Spec, Step};
use lanner_testkit::{chi_square_limit, uniform_chi_square};

use crate::common::{Party as End, bytes, edge_share, inputs, rng, run, share, signed, split, unknown};

struct Outcome {
    off: Vec<i64>,
    client: Share,
    transcript: Vec<(u16, usize)>,
}

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

/// One run of a layer on random weights and inputs; checks what was sent against the costs.
fn outcome(shape: &Convolution, bits: u32, accuracy: Accuracy, seed: u8) -> Outcome {
    let sets = Sets::new().unwrap();
    let made = Scheme::cheapest(&Stacked::try_from(shape).unwrap(), bits, accuracy, &sets).unwrap();
    outcome_of(made, shape, bits, accuracy, seed)
}

fn outcome_of(
    (set, scheme): (ParameterSet, Scheme),
    shape: &Convolution,
    bits: u32,
    accuracy: Accuracy,
    seed: u8,
) -> Outcome {
    // As on two cores, whatever the machine.
    parallel::set_threads(2);
    let sets = Sets::new().unwrap();
    let spec = Linear { shape: shape.clone(), bits, set, accuracy, samples: Samples::ONE };
    let needs = spec.build(&sets).unwrap().needs().unwrap();
    let set_up = SetUp::of(&[needs], [0; 2], &sets).unwrap();
    let (offline, online) = (scheme.offline_cost(), scheme.online_cost());
    let ring = Ring::Pow2(bits);
    let outputs = shape.outputs().unwrap();
    let weights = signed(shape.weights(), 2047, &mut rng(seed));
    let bias = signed(outputs, 1000, &mut rng(seed + 1));
    let input = signed(shape.inputs(), 255, &mut rng(seed + 2));
    let server_input = edge_share(ring, input.len(), &mut rng(seed + 3));
    let client_input = split(ring, &input, &server_input);
    let mut channels = End::pair();
    let client_layer = ClientLayer::new(scheme.clone()).unwrap();
    let server_layer = Answering(ServerLayer::new(scheme, &weights, &bias).unwrap());
    let (client, server) = run(
        &mut channels,
        |end| {
            let mut client = Client::set_up(end, &set_up, rng(seed + 4)).unwrap();
            let request = client_layer.request(end, &mut client).unwrap();
            let (material, _) = client_layer.prepare(end, &mut client, request, &unknown(1)).unwrap();
            let before = bytes(&end.sent);
            let made = client_layer.online(end, material, &inputs(&[&client_input])).unwrap();
            assert_eq!(bytes(&end.sent) - before, online.client_bytes());
            share(made)
        },
        |end| {
            let mut server = Server::set_up(end, &set_up, rng(seed + 5)).unwrap();
            let (material, known) = server_layer.prepare(end, &mut server, (), &unknown(1)).unwrap();
            assert_eq!(bytes(&end.sent), offline.answer.server_bytes());
            let before = bytes(&end.sent);
            let made = share(server_layer.online(end, material, &inputs(&[&server_input])).unwrap());
            assert_eq!(bytes(&end.sent) - before, online.server_bytes());
            assert_eq!(made.values(), share(known.unwrap()).values(), "the server's share is known ahead");
            made
        },
    );
    let expected = shape.apply(&weights, &input).unwrap();
    let (guard, ring) = (accuracy.guard(), client.ring());
    assert_eq!(ring, Ring::Pow2(bits + guard));
    let off = |(i, got): (usize, i64)| ring.signed(ring.embed(got - ((expected[i] + bias[i]) << guard)));
    let off = client.reveal(&server).unwrap().into_iter().enumerate().map(off).collect();
    let lengths =
        |end: &End| end.sent.iter().map(|(kind, payload)| (kind.0, payload.len())).collect::<Vec<_>>();
    let transcript = [lengths(&channels.0), lengths(&channels.1)].concat();
    Outcome { off, client, transcript }
}

#[test]
fn exact_layers_equal_the_convolution() {
    let shapes = [
        conv([3, 8], [12, 11], 3, 1, 1),
        conv([5, 4], [9, 9], 5, 2, 2),
        conv([1, 5], [28, 28], 5, 1, 0),
        conv([2, 2], [80, 70], 3, 1, 1),
        Convolution { groups: 6, ..conv([6, 6], [10, 10], 3, 1, 1) },
        Convolution::fully_connected(2048, 1),
        Convolution::fully_connected(300, 40),
    ];
    let wide = [(&shapes[0], 41), (&shapes[5], 37)];
    for (number, (shape, bits)) in shapes.iter().map(|shape| (shape, 28)).chain(wide).enumerate() {
        let outcome = outcome(shape, bits, Accuracy::Exact, 10 * number as u8);
        assert!(outcome.off.iter().all(|off| *off == 0), "{shape:?}, {bits} bits");
    }
}

#[test]
fn guarded_layers_give_the_convolution_or_one_more_below_its_bits() {
    let shapes = [
        (conv([3, 8], [12, 11], 3, 1, 1), 20, 1),
        (conv([5, 4], [9, 9], 5, 2, 2), 26, 2),
        (conv([64, 3], [32, 32], 3, 1, 1), 26, 1),
        (conv([16, 16], [8, 8], 3, 1, 1), 27, 1),
        (conv([2, 2], [80, 70], 3, 1, 1), 30, 1),
        (Convolution { groups: 6, ..conv([6, 6], [10, 10], 3, 1, 1) }, 24, 3),
        (Convolution::fully_connected(2048, 1), 28, 1),
        (Convolution::fully_connected(300, 40), 37, 1),
    ];
    for (number, (shape, bits, guard)) in shapes.into_iter().enumerate() {
        let outcome = outcome(&shape, bits, Accuracy::Guarded(guard), 10 * number as u8);
        assert!(outcome.off.iter().all(|off| (0..=1).contains(off)), "{shape:?}, {bits} bits");
    }
}

#[test]
fn packed_answers_give_the_convolution_or_one_more_below_its_bits() {
    let shapes = [
        (Convolution { image: [128, 1], ..Convolution::fully_connected(64, 40) }, 25, 1),
        (conv([8, 6], [13, 11], 3, 1, 1), 22, 2),
    ];
    for (number, (shape, bits, guard)) in shapes.into_iter().enumerate() {
        let sets = Sets::new().unwrap();
        let layer = Stacked::try_from(&shape).unwrap();
        let packed = Scheme::packed(&layer, bits, guard, &sets).unwrap().unwrap();
        let outcome = outcome_of(packed, &shape, bits, Accuracy::Guarded(guard), 10 * number as u8);
        assert!(outcome.off.iter().all(|off| (0..=1).contains(off)), "{shape:?}, {bits} bits");
    }
}

/// 128 rows of the widths of a small encoder: what packed answers save.
#[test]
fn packed_answers_send_two_thirds_of_what_others_send_or_less() {
    let sets = Sets::new().unwrap();
    for (inputs, outputs) in [(128, 128), (128, 512), (512, 128), (384, 384)] {
        let shape = Convolution { image: [128, 1], ..Convolution::fully_connected(inputs, outputs) };
        let layer = Stacked::try_from(&shape).unwrap();
        let (_, apart) = Scheme::cheapest(&layer, 25, Accuracy::Guarded(1), &sets).unwrap();
        let (_, packed) = Scheme::packed(&layer, 25, 1, &sets).unwrap().unwrap();
        let bytes = |scheme: &Scheme| scheme.offline_cost().answer.bytes() + scheme.online_cost().bytes();
        assert!(3 * bytes(&packed) < 2 * bytes(&apart), "{} of {}", bytes(&packed), bytes(&apart));
        assert!(packed.price() < apart.price(), "{} of {}", packed.price(), apart.price());
    }
}

/// Bytes up, bytes ahead and bytes down of layers of the networks that are measured.
#[test]
fn guarded_layers_send_a_quarter_of_what_exact_ones_send() {
    let sets = Sets::new().unwrap();
    for (shape, bits) in [
        (conv([64, 64], [32, 32], 3, 1, 1), 26),
        (conv([64, 64], [16, 16], 3, 1, 1), 27),
        (conv([16, 16], [32, 32], 3, 1, 1), 26),
        (conv([64, 64], [8, 8], 1, 1, 0), 26),
    ] {
        let bytes = |accuracy| {
            let (_, scheme) =
                Scheme::cheapest(&Stacked::try_from(&shape).unwrap(), bits, accuracy, &sets).unwrap();
            scheme.offline_cost().answer.bytes() + scheme.online_cost().bytes()
        };
        let [exact, guarded] = [Accuracy::Exact, Accuracy::Guarded(1)].map(bytes);
        assert!(4 * guarded < exact, "{shape:?}: {guarded} of {exact}");
    }
}

#[test]
fn other_layers_are_off_by_one_at_most_and_rarely() {
    for (shape, bits) in [
        (conv([3, 8], [12, 11], 3, 1, 1), 24),
        (Convolution::fully_connected(1024, 16), 22),
        (conv([16, 16], [34, 34], 3, 1, 0), 20),
    ] {
        let outcome = outcome(&shape, bits, Accuracy::OffByOne, 3);
        assert!(outcome.off.iter().all(|off| off.abs() <= 1), "{shape:?}");
        let wrong = outcome.off.iter().filter(|off| **off != 0).count();
        assert!(wrong <= outcome.off.len() / 20 + 2, "{wrong} of {}", outcome.off.len());
    }
}

#[test]
fn messages_have_one_length_and_shares_are_uniform_whatever_is_computed() {
    let shape = conv([2, 3], [20, 20], 3, 1, 1);
    let (a, b) = (outcome(&shape, 20, Accuracy::OffByOne, 50), outcome(&shape, 20, Accuracy::OffByOne, 60));
    assert_eq!(a.transcript, b.transcript);
    let mut counts = [0_u64; 16];
    for value in a.client.values().iter().chain(b.client.values()) {
        counts[(value >> 16) as usize] += 1;
    }
    assert!(uniform_chi_square(&counts) < chi_square_limit(15), "{counts:?}");
}

#[test]
fn weights_of_more_bits_and_other_lengths_are_refused() {
    let parameters = Sets::new().unwrap().get(ParameterSet::A0).unwrap().clone();
    let shape = Convolution::fully_connected(4, 2);
    let scheme =
        || Scheme::new(&Stacked::try_from(&shape).unwrap(), 20, Accuracy::OffByOne, &parameters).unwrap();
    assert!(ServerLayer::new(scheme(), &[1; 8], &[0; 2]).is_ok());
    assert!(ServerLayer::new(scheme(), &[1; 7], &[0; 2]).is_err());
    assert!(ServerLayer::new(scheme(), &[1; 8], &[0; 3]).is_err());
    assert!(ServerLayer::new(scheme(), &[2049; 8], &[0; 2]).is_err());
    assert!(Scheme::new(&Stacked::try_from(&shape).unwrap(), 40, Accuracy::OffByOne, &parameters).is_err());
    let small = Sets::new().unwrap().get(ParameterSet::C1).unwrap().clone();
    assert!(Scheme::new(&Stacked::try_from(&shape).unwrap(), 20, Accuracy::Guarded(1), &small).is_ok());
    assert!(Scheme::new(&Stacked::try_from(&shape).unwrap(), 40, Accuracy::Guarded(1), &small).is_err());
}
