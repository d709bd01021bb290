//! Garbled layers equal their ideal twins at the edges of their rings.

use lanner_gc::library::signed_bound;
use lanner_primitives::{Prg, Ring, Share, parallel};
use lanner_step::{
    EvaluationSession, Function, GarblingSession, Outcome, ProtocolError, Slope, Windows, garbling_cost,
};
use lanner_wire::{ChannelError, Kind};
use lanner_yao::{ClientLayer, ClientRevealed, Layer, Revealed, ServerLayer, ServerRevealed};

use crate::common::{Party, edge_share, ideal, rng, run, signed, split};

/// 20, 23, 30 and 37 bits.
const RINGS: [Ring; 5] = [
    Ring::Prime(1_032_193),
    Ring::Pow2(22),
    Ring::Prime(1_073_692_673),
    Ring::Prime(137_438_822_401),
    Ring::Pow2(37),
];

/// A layer with its shares.
struct Case {
    layer: Layer,
    client: Share,
    server: Share,
}

/// Runs layers in one session, all asked for before the first is answered; returns the shares of the outputs.
fn run_all(cases: &[Case]) -> Vec<(Share, Share)> {
    // As on two cores, whatever the machine.
    parallel::set_threads(2);
    let (client, server) = run(
        &mut Party::pair(),
        |channel| {
            let mut session = EvaluationSession::setup(channel, &mut rng(1)).unwrap();
            let layers: Vec<_> = cases.iter().map(|case| ClientLayer::new(case.layer.clone())).collect();
            let requests: Vec<_> =
                layers.iter().map(|layer| layer.request(channel, &mut session).unwrap()).collect();
            let received = layers.iter().zip(requests);
            let materials: Vec<_> =
                received.map(|(layer, request)| layer.receive(channel, &session, request).unwrap()).collect();
            let online = layers.iter().zip(materials).zip(cases);
            online
                .map(|((layer, material), case)| layer.online(channel, material, &case.client).unwrap())
                .collect::<Vec<_>>()
        },
        |channel| {
            let mut rng = rng(2);
            let mut session = GarblingSession::setup(channel, &mut rng).unwrap();
            let layers: Vec<_> = cases.iter().map(|case| ServerLayer::new(case.layer.clone())).collect();
            let prepared = layers.iter().zip(cases);
            let materials: Vec<_> = prepared
                .map(|(layer, case)| layer.offline(channel, &mut session, &case.server, &mut rng).unwrap())
                .collect();
            let online = layers.iter().zip(materials);
            online.map(|(layer, material)| layer.online(channel, material).unwrap()).collect::<Vec<_>>()
        },
    );
    client.into_iter().zip(server).collect()
}

/// The largest value that a circuit takes.
fn largest(ring: Ring, shift: u32) -> i64 {
    signed_bound(ring, shift).unwrap() as i64 - 1
}

/// Values at the edges of what a circuit takes, rounding edges among them, and some random ones.
fn edge_values(ring: Ring, shift: u32, length: usize, rng: &mut Prg) -> Vec<i64> {
    let largest = largest(ring, shift);
    let half = (1_i64 << shift) / 2;
    let edges = [0, 1, -1, half, half - 1, -half, -half - 1, largest, -largest, largest - 1, 1 - largest];
    let random = signed(length, largest, rng);
    (0..length).map(|i| if i % 13 < edges.len() { edges[i % 13] } else { random[i] }).collect()
}

fn check(function: Function, windows: Windows) {
    let mut rng = rng(3);
    let mut cases = Vec::new();
    for from in RINGS {
        for to in RINGS {
            let secrets = edge_values(from, function.shift, windows.inputs(), &mut rng);
            let server = edge_share(from, secrets.len(), &mut rng);
            let client = split(from, &secrets, &server);
            // What the circuit gives must fit the next ring.
            let layer = Layer::new(function, &windows, from, to).unwrap();
            if layer.encoding().bits + 1 < to.bits() as usize {
                cases.push((Case { layer, client, server }, to));
            }
        }
    }
    assert!(cases.len() >= RINGS.len(), "{function:?}");
    let (cases, rings): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
    for ((case, (c, s)), to) in cases.iter().zip(run_all(&cases)).zip(rings) {
        let (a, b) = ideal::activation(function, &windows, to, (&case.client, &case.server), &mut rng);
        assert!(c.ring() == to && c.reveal(&s).unwrap() == a.reveal(&b).unwrap(), "{function:?} {to:?}");
    }
}

fn function(relu: bool, high: Option<i64>, shift: u32) -> Function {
    Function { relu, high, shift, ..Function::IDENTITY }
}

/// A slope below zero, then rescaling.
fn leaky(numerator: u64, bits: u32, shift: u32) -> Function {
    Function { slope: Some(Slope { numerator, shift: bits }), ..function(false, None, shift) }
}

#[test]
fn functions_of_single_values_equal_their_twin() {
    // Neither a multiple of the sixteen instances of a batch.
    for (count, shift) in [(1, 3), (103, 7), (33, 12)] {
        let windows = Windows::each(count);
        check(function(false, None, shift), windows);
        check(function(true, None, shift), windows);
        check(function(true, Some(100), shift), windows);
        check(function(true, Some(63), shift), windows);
        check(function(true, Some(1), shift), windows);
    }
}

#[test]
fn slopes_below_zero_equal_their_twin() {
    for (count, shift) in [(1, 3), (103, 7), (33, 12)] {
        for (numerator, bits) in [(0, 4), (1, 0), (1, 4), (16, 4), (51, 9), (65_535, 16)] {
            check(leaky(numerator, bits, shift), Windows::each(count));
        }
    }
}

#[test]
fn functions_without_rescaling_equal_their_twin() {
    check(function(true, Some(1000), 0), Windows::each(17));
    let windows = Windows::each(40);
    let mut rng = rng(4);
    for (function, from, to) in [
        (function(true, None, 0), RINGS[0], RINGS[1]),
        (function(false, None, 0), RINGS[0], RINGS[3]),
        (function(false, None, 0), RINGS[2], RINGS[2]),
        (leaky(51, 9, 0), RINGS[0], RINGS[0]),
        (leaky(0, 3, 0), RINGS[2], RINGS[3]),
    ] {
        let secrets = edge_values(from, 0, 40, &mut rng);
        let server = edge_share(from, 40, &mut rng);
        let client = split(from, &secrets, &server);
        let case = Case { layer: Layer::new(function, &windows, from, to).unwrap(), client, server };
        let (c, s) = &run_all(std::slice::from_ref(&case))[0];
        let truth: Vec<_> = secrets.iter().map(|x| ideal::apply(function, *x)).collect();
        assert_eq!(c.reveal(s).unwrap(), truth);
    }
}

#[test]
fn pooled_functions_equal_their_twin_at_borders_too() {
    let plain = Windows { channels: 3, image: [4, 6], kernel: [2, 2], strides: [2, 2], pads: [0; 4] };
    let bordered =
        Windows { channels: 2, image: [5, 4], kernel: [3, 3], strides: [2, 1], pads: [1, 2, 1, 0] };
    for windows in [plain, bordered] {
        check(function(true, None, 7), windows);
        check(function(false, None, 7), windows);
        check(function(true, Some(300), 7), windows);
    }
}

#[test]
fn functions_that_have_no_circuit_are_refused() {
    let new = |function, windows| Layer::new(function, &windows, RINGS[0], RINGS[1]).map(drop);
    assert!(new(function(false, Some(3), 1), Windows::each(1)).is_err(), "a bound without ReLU");
    assert!(new(function(true, Some(-3), 1), Windows::each(1)).is_err(), "a negative bound");
    assert!(new(function(true, Some(0), 1), Windows::each(1)).is_err(), "nothing but zero");
    assert!(new(function(true, None, 19), Windows::each(1)).is_err(), "no bits left");
    let pool = Windows { channels: 1, image: [2, 2], kernel: [2, 2], strides: [2, 2], pads: [0; 4] };
    assert!(new(leaky(1, 2, 1), pool).is_err(), "a slope with a pool");
    assert!(new(Function { relu: true, ..leaky(1, 2, 1) }, Windows::each(1)).is_err(), "a slope with ReLU");
    assert!(
        new(Function { high: Some(3), ..leaky(1, 2, 1) }, Windows::each(1)).is_err(),
        "a slope and a bound"
    );
    assert!(new(leaky(5, 2, 1), Windows::each(1)).is_err(), "a slope above one");
    let outside = Windows { pads: [2, 0, 0, 0], ..Windows::each(1) };
    assert!(new(function(true, None, 1), outside).is_err(), "windows in padding alone");
}

/// The label that the client gets, or its error.
fn argmax(
    client: &Share,
    server: &Share,
    from: Ring,
    channels: &mut (Party, Party),
) -> Result<usize, ProtocolError> {
    let layer = Revealed::label(client.len(), from).unwrap();
    rank(&layer, client, server, channels).map(|indices| indices[0])
}

/// The indices that the client gets, or its error.
fn rank(
    layer: &Revealed,
    client: &Share,
    server: &Share,
    channels: &mut (Party, Party),
) -> Result<Vec<usize>, ProtocolError> {
    let labels = run(
        channels,
        |channel| {
            let mut session = EvaluationSession::setup(channel, &mut rng(1))?;
            let layer = ClientRevealed::new(layer.clone());
            let request = layer.request(channel, &mut session)?;
            let material = layer.receive(channel, request)?;
            Ok(match layer.online(channel, material, client)? {
                Outcome::Label(label) => vec![label],
                Outcome::TopK(indices) | Outcome::Labels(indices) => indices,
                _ => unreachable!("indices are asked for"),
            })
        },
        |channel| {
            let mut session = GarblingSession::setup(channel, &mut rng(2))?;
            let layer = ServerRevealed::new(layer.clone());
            let material = layer.offline(channel, &mut session, server, &mut rng(3))?;
            layer.online(channel, material)
        },
    );
    labels.0
}

fn check_argmax(scores: &[i64], from: Ring) {
    let mut rng = rng(5);
    let server = edge_share(from, scores.len(), &mut rng);
    let client = split(from, scores, &server);
    let label = argmax(&client, &server, from, &mut Party::pair()).unwrap();
    assert_eq!(label, ideal::argmax((&client, &server)), "{from:?} {}", scores.len());
}

#[test]
fn argmax_equals_its_twin_and_ties_go_to_the_lowest_index() {
    for from in RINGS {
        let top = largest(from, 0);
        for scores in [
            vec![top, top],
            vec![-top, top],
            vec![-top, -top],
            vec![0, -1],
            vec![-1, 0, 0],
            vec![top, -top, top],
            vec![-5; 10],
            vec![3, 7, 7, -7, 7, 0, 1, 2, 3, 4],
        ] {
            check_argmax(&scores, from);
        }
    }
}

#[test]
fn argmax_of_many_classes_equals_its_twin() {
    let top = largest(RINGS[0], 0);
    for length in [10, 100, 1000] {
        let mut scores = signed(length, top, &mut rng(6));
        check_argmax(&scores, RINGS[0]);
        scores[length - 1] = top;
        check_argmax(&scores, RINGS[0]);
        scores[length / 2] = top;
        check_argmax(&scores, RINGS[0]);
    }
    check_argmax(&signed(10, 1 << 30, &mut rng(7)), RINGS[3]);
}

#[test]
fn the_best_in_order_equal_their_twin() {
    for from in RINGS {
        let (top, mut rng) = (largest(from, 0), rng(9));
        for (scores, best) in [
            (vec![top, -top, top], 3),
            (vec![-5; 10], 4),
            (vec![3, 7, 7, -7, 7, 0, 1, 2, 3, 4], 5),
            (signed(10, top, &mut rng), 1),
            (signed(100, top, &mut rng), 5),
        ] {
            let server = edge_share(from, scores.len(), &mut rng);
            let client = split(from, &scores, &server);
            let layer = Revealed::top_k(scores.len(), best, from).unwrap();
            let mut channels = Party::pair();
            let indices = rank(&layer, &client, &server, &mut channels).unwrap();
            assert_eq!(indices, ideal::top((&client, &server), best), "{from:?} {best}");
            let sent = |party: &Party| party.sent.iter().map(|(_, body)| body.len() as u64 + 6).sum::<u64>();
            let (offline, setup) = (layer.offline_cost(), garbling_cost());
            let cost = setup.then(offline.request).then(offline.answer).then(layer.online_cost());
            assert_eq!((cost.client_bytes(), cost.server_bytes()), (sent(&channels.0), sent(&channels.1)));
        }
    }
    assert!(Revealed::top_k(10, 0, RINGS[0]).is_err() && Revealed::top_k(10, 11, RINGS[0]).is_err());
}

#[test]
fn the_positive_scores_equal_their_twin() {
    for from in RINGS {
        let (top, mut rng) = (largest(from, 0), rng(10));
        for scores in [vec![0], vec![1, 0, -1], vec![-top, top], vec![-3; 9], signed(100, top, &mut rng)] {
            let server = edge_share(from, scores.len(), &mut rng);
            let client = split(from, &scores, &server);
            let layer = Revealed::positive(scores.len(), from).unwrap();
            let found = rank(&layer, &client, &server, &mut Party::pair()).unwrap();
            assert_eq!(found, ideal::positive((&client, &server)), "{from:?} {}", scores.len());
        }
    }
    assert!(Revealed::positive(0, RINGS[0]).is_err());
}

#[test]
fn an_index_that_comes_twice_is_malformed() {
    // Two of two: the permute bits of the second index flipped, it is the first again.
    const DECODING: Kind = Kind(0x51);
    let ring = RINGS[0];
    let (client, server) = ideal::deal(ring, &[5, 1], &mut rng(8));
    let mut channels = Party::pair();
    channels.1.tamper = Some((DECODING, |bytes| bytes[0] ^= 2));
    let error = rank(&Revealed::top_k(2, 2, RINGS[0]).unwrap(), &client, &server, &mut channels).unwrap_err();
    assert!(matches!(error.channel(), Some(ChannelError::Malformed { .. })), "{error}");
}

#[test]
fn an_index_that_is_no_class_is_malformed() {
    // Three classes and two output bits: flipped permute bits turn index 0 into 3.
    const DECODING: Kind = Kind(0x51);
    let ring = RINGS[0];
    let (client, server) = ideal::deal(ring, &[5, 1, 2], &mut rng(8));
    let mut channels = Party::pair();
    channels.1.tamper = Some((DECODING, |bytes| bytes[0] ^= 3));
    let error = argmax(&client, &server, RINGS[0], &mut channels).unwrap_err();
    assert!(matches!(error.channel(), Some(ChannelError::Malformed { .. })), "{error}");
}

#[test]
fn shares_of_another_length_or_ring_are_refused() {
    let ring = RINGS[0];
    let wrong = [Share::zero(ring, 2), Share::zero(RINGS[1], 3)];
    for share in wrong {
        let error = run(
            &mut Party::pair(),
            |channel| {
                let mut session = EvaluationSession::setup(channel, &mut rng(1))?;
                let layer = ClientLayer::new(layer_of_three());
                let request = layer.request(channel, &mut session)?;
                layer.receive(channel, &session, request).map(drop)
            },
            |channel| {
                let mut session = GarblingSession::setup(channel, &mut rng(2)).unwrap();
                let layer = ServerLayer::new(layer_of_three());
                layer.offline(channel, &mut session, &share, &mut rng(3)).map(drop)
            },
        );
        assert!(matches!(error.1, Err(ProtocolError::WrongRing { .. } | ProtocolError::Length { .. })));
        assert!(error.0.is_err());
    }
}

fn layer_of_three() -> Layer {
    Layer::new(function(true, None, 7), &Windows::each(3), RINGS[0], RINGS[0]).unwrap()
}
