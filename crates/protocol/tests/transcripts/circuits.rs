//! Garbled circuits, the sharings that surround them, and what is opened at the end.

use lanner_local::reshare;
use lanner_primitives::{Ring, Share};
use lanner_step::{EvaluationSession, Function, GarblingSession, Windows};
use lanner_testkit::{Domain, Domains, Transcript};
use lanner_yao::softmax;
use lanner_yao::{ClientLayer, ClientRevealed, Layer, Revealed, ServerLayer, ServerRevealed};

use crate::common::{Party as End, rng, run};
use crate::transcripts::{EXTREMES, OPPOSITES, Shares, check_masks, check_uniform, kinds, transcript};

const P: u64 = 1_032_193;
const RING: Ring = Ring::Prime(P);
const COUNT: usize = 256;
/// As many places as there are classes: five bits each.
const CLASSES: usize = 32;

/// An activation into the ring modulo a prime, all classes in order, and a share that is drawn anew and then opened.
pub fn session(number: u8, shares: Shares) -> Transcript {
    let function = Function { relu: true, shift: 7, ..Function::IDENTITY };
    let layer = Layer::new(function, &Windows::each(COUNT), RING, RING).unwrap();
    let ranking = Revealed::top_k(CLASSES, CLASSES, RING).unwrap();
    let mut channels = End::pair();
    run(
        &mut channels,
        |channel| {
            let mut session = EvaluationSession::setup(channel, &mut rng(2 * number)).unwrap();
            let (layer, ranking) = (ClientLayer::new(layer.clone()), ClientRevealed::new(ranking.clone()));
            let requests = (
                layer.request(channel, &mut session).unwrap(),
                ranking.request(channel, &mut session).unwrap(),
            );
            let material = layer.receive(channel, &session, requests.0).unwrap();
            let ranked = ranking.receive(channel, requests.1).unwrap();
            layer.online(channel, material, &shares.client.share(RING, COUNT)).unwrap();
            ranking.online(channel, ranked, &shares.client.share(RING, CLASSES)).unwrap();
            let share = reshare::client(channel, &shares.client.share(RING, COUNT)).unwrap();
            reshare::learn(channel, &share).unwrap();
        },
        |channel| {
            let rng = &mut rng(2 * number + 1);
            let mut session = GarblingSession::setup(channel, rng).unwrap();
            let (layer, ranking) = (ServerLayer::new(layer.clone()), ServerRevealed::new(ranking.clone()));
            let share = shares.server.share(RING, COUNT);
            let material = layer.offline(channel, &mut session, &share, rng).unwrap();
            let scores = shares.server.share(RING, CLASSES);
            let ranked = ranking.offline(channel, &mut session, &scores, rng).unwrap();
            let fresh = Share::random(RING, COUNT, rng);
            layer.online(channel, material).unwrap();
            ranking.online(channel, ranked).unwrap();
            let share = reshare::server(channel, &share, fresh).unwrap();
            reshare::reveal(channel, &share).unwrap();
        },
    );
    transcript(&channels)
}

/// In one session: what decodes one has two bytes only.
const SOFTMAXES: usize = 4;

/// Labels with their probabilities.
fn softmax(number: u8, shares: Shares) -> Transcript {
    let softmax = || softmax::softmax(CLASSES, 4, 7.3e-5, RING).unwrap();
    let mut channels = End::pair();
    run(
        &mut channels,
        |channel| {
            let mut session = EvaluationSession::setup(channel, &mut rng(2 * number)).unwrap();
            let client = ClientRevealed::new(softmax());
            for _ in 0..SOFTMAXES {
                let request = client.request(channel, &mut session).unwrap();
                let material = client.receive(channel, request).unwrap();
                client.online(channel, material, &shares.client.share(RING, CLASSES)).unwrap();
            }
        },
        |channel| {
            let rng = &mut rng(2 * number + 1);
            let mut session = GarblingSession::setup(channel, rng).unwrap();
            let server = ServerRevealed::new(softmax());
            let scores = shares.server.share(RING, CLASSES);
            for _ in 0..SOFTMAXES {
                let material = server.offline(channel, &mut session, &scores, rng).unwrap();
                server.online(channel, material).unwrap();
            }
        },
    );
    // The last byte of bits that do not fill it has zeros.
    for (kind, payload) in channels.0.sent.iter_mut().chain(&mut channels.1.sent) {
        if matches!(kind.0, 0x17 | 0x51 | 0x52 | 0x60) {
            payload.pop();
        }
    }
    transcript(&channels)
}

/// Whether either of two numbers is zero: all are, or none.
fn zeros(number: u8, shares: Shares) -> Transcript {
    let (from, to) = (Ring::Pow2(22), Ring::Pow2(32));
    let windows = Windows { channels: COUNT, image: [1, 2], kernel: [1, 2], strides: [1, 2], pads: [0; 4] };
    let layer = || Layer::any_zero(&windows, from, to).unwrap();
    let mut channels = End::pair();
    run(
        &mut channels,
        |channel| {
            let mut session = EvaluationSession::setup(channel, &mut rng(2 * number)).unwrap();
            let client = ClientLayer::new(layer());
            let request = client.request(channel, &mut session).unwrap();
            let material = client.receive(channel, &session, request).unwrap();
            client.online(channel, material, &shares.client.share(from, 2 * COUNT)).unwrap();
        },
        |channel| {
            let rng = &mut rng(2 * number + 1);
            let mut session = GarblingSession::setup(channel, rng).unwrap();
            let server = ServerLayer::new(layer());
            let share = shares.server.share(from, 2 * COUNT);
            let material = server.offline(channel, &mut session, &share, rng).unwrap();
            server.online(channel, material).unwrap();
        },
    );
    transcript(&channels)
}

fn domains() -> Domains {
    kinds::of_circuits(&Domain::Residues { seed: 0, values: COUNT, moduli: vec![P] })
}

#[test]
fn circuits_are_uniform_whatever_the_shares() {
    check_uniform(session, &domains(), &EXTREMES);
}

#[test]
fn circuits_need_their_masks() {
    let masked = [("client", 0x52), ("client", 0x60), ("server", 0x50), ("server", 0x53), ("server", 0x61)];
    check_masks(session, &domains(), &masked);
}

#[test]
fn zeros_are_sought_by_uniform_messages_whatever_the_shares() {
    let domains = kinds::of_circuits(&kinds::bits(&[32]));
    check_uniform(zeros, &domains, &EXTREMES);
    check_masks(zeros, &domains, &[("client", 0x52), ("client", 0x60), ("server", 0x50), ("server", 0x53)]);
}

#[test]
fn a_softmax_is_uniform_on_opposite_shares() {
    check_uniform(softmax, &kinds::of_circuits(&kinds::bits(&[])), OPPOSITES);
}

#[test]
#[ignore = "takes twenty seconds"]
fn a_softmax_is_uniform_whatever_the_shares() {
    check_uniform(softmax, &kinds::of_circuits(&kinds::bits(&[])), &EXTREMES);
}
