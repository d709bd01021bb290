//! What a party sees is uniform, whatever the secrets are: chi-square tests with fixed seeds, at a level of 10^-6.

use std::collections::BTreeSet;

use lanner_bfv::SlotEncoder;
use lanner_bfv::function_privacy::{SealedC0, SealedC1};
use lanner_local::reshare;
use lanner_packed::gazelle::packing::Packing;
use lanner_packed::gazelle::{ClientLayer, ServerLayer};
use lanner_primitives::{Prg, Ring, Share};
use lanner_step::{Answering, Convolution, EvaluationSession, Function, GarblingSession, Step, Windows};
use lanner_testkit::{chi_square_limit, uniform_chi_square};
use lanner_wire::unpack_bits;
use lanner_yao::{self as yao, Layer};

use crate::common::{self, Party, Session, ideal, rng, run, unknown};

const P: u64 = 1_032_193;
const BINS: usize = 64;

/// Whether values below `modulus` fall evenly into bins.
fn is_uniform(values: impl Iterator<Item = u64>, modulus: u64) -> bool {
    let mut counts = [0; BINS];
    for value in values {
        counts[(u128::from(value) * BINS as u128 / u128::from(modulus)) as usize] += 1;
    }
    assert!(counts.iter().sum::<u64>() >= 20 * BINS as u64, "too few values to judge");
    uniform_chi_square(&counts) < chi_square_limit(BINS - 1)
}

/// Whether bytes are uniform.
fn bytes_are_uniform<'b>(bytes: impl Iterator<Item = &'b u8>) -> bool {
    let mut counts = [0; 256];
    bytes.for_each(|byte| counts[usize::from(*byte)] += 1);
    assert!(counts.iter().sum::<u64>() >= 20 * 256, "too few bytes to judge");
    uniform_chi_square(&counts) < chi_square_limit(255)
}

/// All slots that a client with its key finds in the outputs of a layer, in several runs; and the slots that are outputs.
fn slots_seen(weight: i64, input: i64) -> (Vec<Vec<u64>>, BTreeSet<usize>) {
    let shape = Convolution {
        in_channels: 2,
        out_channels: 3,
        image: [6, 6],
        kernel: [3, 3],
        strides: [1, 1],
        pads: [1; 4],
        dilations: [1, 1],
        groups: 1,
    };
    let packing = Packing::new(&shape, 8192, 1).unwrap();
    let mut session = Session::new([&packing]);
    let encoder = SlotEncoder::new(&session.parameters, P).unwrap();
    let client = ClientLayer::new(&packing, &session.parameters, P).unwrap();
    let weights = vec![weight; shape.weights()];
    let server = Answering(
        ServerLayer::new(packing.clone(), &session.parameters, P, &weights, &vec![0; 3 * 36]).unwrap(),
    );
    let share = Share::embed(Ring::Prime(P), &vec![input; shape.inputs()]);
    let nothing = Share::zero(Ring::Prime(P), shape.inputs());
    let mut run = |number: u8| {
        let mut channels = Party::pair();
        let numbers = [2 * number, 2 * number + 1];
        session.run(&mut channels, (&client, &server), (&share, &nothing), numbers, false);
        let half = |kind| channels.1.sent_of(kind)[0];
        let second = SealedC1::from_bytes(encoder.modulus(), half(0x43)).unwrap();
        let first = SealedC0::from_bytes(encoder.modulus(), half(0x41)).unwrap();
        let prepared = session.secret().prepare_decryption(second).unwrap();
        encoder.decode(&prepared.decrypt(&first).unwrap()).unwrap()
    };
    let used = packing.output_slots().into_iter().map(|(_, slot)| slot).collect();
    ((0..20).map(&mut run).collect(), used)
}

#[test]
fn every_slot_of_a_masked_output_is_uniform() {
    for (weight, input) in [(0, 0), (1, 0), (127, 255), (-127, 255)] {
        let (slots, used) = slots_seen(weight, input);
        let of = |wanted: bool| -> Vec<u64> {
            let slots = slots.iter().flat_map(|slots| slots.iter().enumerate());
            slots.filter(|(slot, _)| used.contains(slot) == wanted).map(|(_, value)| *value).collect()
        };
        assert!(is_uniform(of(true).into_iter(), P), "outputs, weights {weight}, inputs {input}");
        assert!(is_uniform(of(false).into_iter(), P), "slots between, weights {weight}, inputs {input}");
        // No two runs share a mask.
        let differ = |a: &Vec<u64>, b: &Vec<u64>| a.iter().zip(b).filter(|(a, b)| a == b).count() < 20;
        assert!(slots.windows(2).all(|pair| differ(&pair[0], &pair[1])));
    }
}

#[test]
fn an_encrypted_share_is_uniform_to_the_server() {
    let shape = Convolution::fully_connected(16, 1);
    let packing = Packing::new(&shape, 8192, 1).unwrap();
    let mut session = Session::new([&packing]);
    let client = ClientLayer::new(&packing, &session.parameters, P).unwrap();
    let server = Answering(ServerLayer::new(packing, &session.parameters, P, &[0; 16], &[0]).unwrap());
    let (mut at_client, mut at_server) = Party::pair();
    let request = client.request(&mut at_client, &mut session.client).unwrap();
    server.prepare(&mut at_server, &mut session.server, (), &unknown(1)).unwrap();
    let (material, _) = client.prepare(&mut at_client, &mut session.client, request, &unknown(1)).unwrap();
    drop(client.send(&mut at_client, material, &Share::zero(Ring::Prime(P), 16)).unwrap());
    let payload = at_client.sent_of(0x40)[0];
    let bytes = payload.len() / 3;
    for (limb, modulus) in payload.chunks(bytes).zip(session.parameters.moduli()) {
        let values = unpack_bits(limb, 8192, modulus.bits()).unwrap();
        assert!(is_uniform(values.into_iter(), modulus.value()));
    }
}

/// What the client sends in an activation layer, and the shares of its output.
fn activation(secret: i64, server: impl Fn(&mut Prg) -> Share) -> (Party, Share, Share) {
    let function = Function { relu: true, shift: 7, ..Function::IDENTITY };
    let layer = Layer::new(function, &Windows::each(COUNT), Ring::Prime(P), Ring::Prime(P)).unwrap();
    let server = server(&mut rng(5));
    let client = common::split(Ring::Prime(P), &vec![secret; COUNT], &server);
    let mut channels = Party::pair();
    let (c, s) = run(
        &mut channels,
        |channel| {
            let mut session = EvaluationSession::setup(channel, &mut rng(1)).unwrap();
            let layer = yao::ClientLayer::new(layer.clone());
            let request = layer.request(channel, &mut session).unwrap();
            let material = layer.receive(channel, &session, request).unwrap();
            layer.online(channel, material, &client).unwrap()
        },
        |channel| {
            let mut rng = rng(2);
            let mut session = GarblingSession::setup(channel, &mut rng).unwrap();
            let layer = yao::ServerLayer::new(layer.clone());
            let material = layer.offline(channel, &mut session, &server, &mut rng).unwrap();
            layer.online(channel, material).unwrap()
        },
    );
    (channels.0, c, s)
}

/// A multiple of eight, so that no byte is padded.
const COUNT: usize = 4000;

#[test]
fn masked_bits_and_output_shares_are_uniform_for_constant_secrets() {
    for secret in [0, -500_000, 500_000] {
        let (client, c, s) = activation(secret, |_| Share::zero(Ring::Prime(P), COUNT));
        assert!(bytes_are_uniform(client.sent_of(0x52).concat().iter()), "d, secret {secret}");
        assert!(bytes_are_uniform(client.sent_of(0x60).concat().iter()), "e, secret {secret}");
        assert!(is_uniform(c.values().iter().copied(), P), "the client's share, secret {secret}");
        assert!(is_uniform(s.values().iter().copied(), P), "the server's share, secret {secret}");
        let (client, c, _) = activation(secret, |rng| Share::random(Ring::Prime(P), COUNT, rng));
        assert!(bytes_are_uniform(client.sent_of(0x52).concat().iter()));
        assert!(is_uniform(c.values().iter().copied(), P));
    }
}

#[test]
fn a_fresh_sharing_is_uniform_and_equals_its_twin() {
    let ring = Ring::Prime(P);
    for secret in [0, 1, -1, 516_096] {
        let (client, server) = ideal::deal(ring, &vec![secret; COUNT], &mut rng(7));
        // The worst server share: a constant.
        for server in [server, Share::zero(ring, COUNT)] {
            let client = if server.values()[0] == 0 {
                Share::embed(ring, &vec![secret; COUNT])
            } else {
                client.clone()
            };
            let fresh = Share::random(ring, COUNT, &mut rng(8));
            let mut channels = Party::pair();
            let (c, s) = run(
                &mut channels,
                |channel| reshare::client(channel, &client).unwrap(),
                |channel| reshare::server(channel, &server, fresh.clone()).unwrap(),
            );
            let (a, b) = ideal::reshare((&client, &server), &mut rng(9));
            assert!(c.reveal(&s).unwrap() == a.reveal(&b).unwrap());
            assert!(s.values() == fresh.values(), "known ahead of time");
            let message = unpack_bits(channels.1.sent_of(0x61)[0], COUNT, ring.bits()).unwrap();
            assert!(is_uniform(message.into_iter(), P), "secret {secret}");
            assert!(is_uniform(c.values().iter().copied(), P));
        }
    }
}

#[test]
fn a_revealed_value_is_the_secret() {
    let ring = Ring::Prime(P);
    let secrets = [0, 1, -1, 516_096, -516_096, 77];
    let (client, server) = ideal::deal(ring, &secrets, &mut rng(7));
    let (learned, ()) = run(
        &mut Party::pair(),
        |channel| reshare::learn(channel, &client).unwrap(),
        |channel| reshare::reveal(channel, &server).unwrap(),
    );
    assert_eq!(learned, secrets);
}
