//! Softmax against its ideal twin in floating point, its cost, its transcripts, and what it opens.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Party, edge_share, ideal, rng, run, signed, split};
use lanner_primitives::Prg;
use lanner_protocol::nonlinear::softmax::{ClientSoftmax, Likely, ServerSoftmax, Softmax};
use lanner_protocol::nonlinear::yao::{EvaluationSession, GarblingSession, setup_cost};
use lanner_protocol::{Cost, ProtocolError};
use lanner_share::{Ring, Share};
use lanner_testkit::{chi_square_limit, uniform_chi_square};
use lanner_wire::{ChannelError, Kind};

const P: u64 = 1_032_193;

/// What each softmax of one session gives the client, all asked for before the first is answered.
fn run_all(
    cases: &[(Softmax, Share, Share)],
    channels: &mut (Party, Party),
    seed: u8,
) -> Vec<Result<Likely, ProtocolError>> {
    let (likely, ()) = run(
        channels,
        |channel| {
            let mut session = EvaluationSession::setup(channel, &mut rng(1)).unwrap();
            let clients: Vec<_> = cases.iter().map(|case| ClientSoftmax::new(case.0.clone())).collect();
            let requests: Vec<_> =
                clients.iter().map(|client| client.request(channel, &mut session).unwrap()).collect();
            let received = clients.iter().zip(requests);
            let materials: Vec<_> = received
                .map(|(client, request)| client.receive(channel, &session, request).unwrap())
                .collect();
            let online = clients.iter().zip(materials).zip(cases);
            online.map(|((client, material), case)| client.online(channel, material, &case.1)).collect()
        },
        |channel| {
            let mut rng = rng(seed);
            let mut session = GarblingSession::setup(channel, &mut rng).unwrap();
            let servers: Vec<_> = cases.iter().map(|case| ServerSoftmax::new(case.0.clone())).collect();
            let prepared = servers.iter().zip(cases);
            let materials: Vec<_> = prepared
                .map(|(server, case)| server.offline(channel, &mut session, &case.2, &mut rng).unwrap())
                .collect();
            for (server, material) in servers.iter().zip(materials) {
                server.online(channel, material).unwrap();
            }
        },
    );
    likely
}

/// The softmax of scores in units of `scale`, with edges of the ring among the shares.
fn case(scores: &[i64], digits: u32, scale: f64, ring: Ring, rng: &mut Prg) -> (Softmax, Share, Share) {
    let server = edge_share(ring, scores.len(), rng);
    let client = split(ring, scores, &server);
    (Softmax::new(scores.len(), digits, scale, ring).unwrap(), client, server)
}

/// Logits that a softmax may stumble over, in reals: ties, all equal, one dominant, large, just inside and outside of what counts.
fn adversarial(classes: usize, digits: u32, rng: &mut Prg) -> Vec<Vec<f64>> {
    let last = classes - 1;
    let m = (4.0 * 10_f64.powi(digits as i32) * last as f64).ln();
    let with = |index: usize, value: f64, rest: f64| {
        let mut logits = vec![rest; classes];
        logits[index] = value;
        logits
    };
    let uniform = |bound: f64, rng: &mut Prg| -> Vec<f64> {
        signed(classes, 1 << 40, rng).iter().map(|x| *x as f64 / f64::exp2(40.0) * bound).collect()
    };
    let mut ties = uniform(1.0, rng);
    (ties[0], ties[last]) = (1.5, 1.5);
    vec![
        vec![0.0; classes],
        with(last, 20.0, -20.0),
        with(0, 0.0, -m),
        with(0, 0.0, -m * 1.0001),
        with(0, 0.0, -m * 0.9999),
        with(last / 2, (last as f64).ln(), 0.0),
        with(0, 1e-6, 0.0),
        ties,
        uniform(0.001, rng),
        uniform(1.0, rng),
        uniform(5.0, rng),
        uniform(30.0, rng),
    ]
}

fn check(classes: usize, digits: u32, scale: f64, ring: Ring) {
    let mut rng = rng(3);
    let half = (1_i64 << (ring.bits() - 1)) - 1;
    let bound = match ring {
        Ring::Prime(p) => half.min((p - (1 << (ring.bits() - 1))) as i64 - 1),
        Ring::Pow2(_) => half,
    };
    let mut scores: Vec<Vec<i64>> = adversarial(classes, digits, &mut rng)
        .iter()
        .map(|logits| logits.iter().map(|x| ((x / scale) as i64).clamp(-bound, bound)).collect())
        .collect();
    scores.push((0..classes as i64).map(|i| if i % 2 == 0 { bound } else { -bound }).collect());
    let cases: Vec<_> = scores.iter().map(|x| case(x, digits, scale, ring, &mut rng)).collect();
    let results = run_all(&cases, &mut Party::pair(), 2);
    let limit = 10_f64.powi(-(digits as i32));
    for ((case, result), scores) in cases.iter().zip(results).zip(&scores) {
        let (label, probability) = ideal::softmax((&case.1, &case.2), scale);
        let likely = result.unwrap();
        assert_eq!((likely.label, likely.digits), (label, digits));
        let error = (likely.probability() - probability).abs();
        let proved = case.0.precision().error_bound();
        assert!(error <= proved && proved <= limit, "{classes} {digits} {scale} {error} {proved} {scores:?}");
    }
}

#[test]
fn probabilities_are_right_to_their_last_digit() {
    for digits in [1, 2, 4, 6] {
        check(10, digits, 7.3e-5, Ring::Prime(P));
        check(2, digits, 1.0 / 1024.0, Ring::Prime(8_273_921));
        check(3, digits, 0.04, Ring::Prime(P));
        check(10, digits, 3e-10, Ring::Prime(137_438_822_401));
        check(7, digits, 1e-4, Ring::Pow2(32));
    }
    // Units so small that all scores are alike, and so large that two differ either not at all or by everything.
    check(5, 3, 1e-12, Ring::Prime(P));
    check(5, 3, 6.0, Ring::Prime(P));
    check(5, 6, 100.0, Ring::Pow2(20));
}

#[test]
fn probabilities_of_many_classes_are_right_to_their_last_digit() {
    check(100, 3, 1e-4, Ring::Prime(8_273_921));
    check(1000, 5, 7.3e-5, Ring::Prime(P));
}

#[test]
fn cost_is_what_is_sent() {
    for (classes, digits, scale) in [(10, 2, 7.3e-5), (3, 6, 1.0), (300, 4, 1e-4)] {
        let mut rng = rng(4);
        let case = case(&signed(classes, 400_000, &mut rng), digits, scale, Ring::Prime(P), &mut rng);
        let mut channels = Party::pair();
        run_all(std::slice::from_ref(&case), &mut channels, 2).remove(0).unwrap();
        let sent = |party: &Party| party.sent.iter().map(|(_, body)| body.len() as u64 + 6).sum::<u64>();
        let offline = case.0.offline_cost();
        let cost = setup_cost().then(offline.request).then(offline.answer).then(case.0.online_cost());
        assert_eq!((cost.client_bytes(), cost.server_bytes()), (sent(&channels.0), sent(&channels.1)));
        // Two waits online: for the labels of the scores, and for those of the sum.
        assert_eq!(case.0.online_cost().rounds(), 2);
        let alone: Cost = offline.request.then(offline.answer);
        assert_eq!(alone.rounds(), 1);
    }
}

#[test]
fn transcripts_are_alike_whatever_the_scores() {
    let mut rng = rng(5);
    let mut transcript = |scores: &[i64]| {
        let case = case(scores, 2, 1e-4, Ring::Prime(P), &mut rng);
        let mut channels = Party::pair();
        run_all(&[case], &mut channels, 2).remove(0).unwrap();
        let lengths =
            |party: &Party| party.sent.iter().map(|(kind, body)| (kind.0, body.len())).collect::<Vec<_>>();
        (lengths(&channels.0), lengths(&channels.1))
    };
    let reference = transcript(&[0; 10]);
    for scores in [[500_000; 10], [-500_000; 10], [1, 2, 3, 4, 5, -6, -7, -8, 400_000, 10]] {
        assert_eq!(transcript(&scores), reference);
    }
}

/// What the server sees are masked bits: as many ones as zeros, whatever the scores.
#[test]
fn what_the_server_receives_is_uniform() {
    for scores in [[0_i64; 10], [500_000, 0, 0, 0, 0, 0, 0, 0, 0, 0]] {
        let mut counts = [0_u64; 2];
        for seed in 0..4 {
            let mut rng = rng(seed + 10);
            let case = case(&scores, 2, 1e-4, Ring::Prime(P), &mut rng);
            let mut channels = Party::pair();
            run_all(std::slice::from_ref(&case), &mut channels, seed).remove(0).unwrap();
            for kind in [0x52, 0x60] {
                for body in channels.0.sent_of(kind) {
                    // The last byte may be padded with zeros.
                    for byte in &body[..body.len() - 1] {
                        counts[1] += u64::from(byte.count_ones());
                        counts[0] += u64::from(byte.count_zeros());
                    }
                }
            }
        }
        assert!(uniform_chi_square(&counts) < chi_square_limit(1), "{counts:?}");
    }
}

#[test]
fn outputs_that_cannot_be_are_malformed() {
    const DECODING: Kind = Kind(0x51);
    let mut rng = rng(6);
    // Three classes and two bits of an index; the second decoding turns 100 into what 7 bits may hold above it.
    let tampers: [fn(&mut Vec<u8>); 2] = [
        |bytes| {
            if bytes.len() > 1 {
                bytes[0] ^= 3;
            }
        },
        |bytes| {
            if bytes.len() == 1 {
                bytes[0] ^= 0x1b;
            }
        },
    ];
    for tamper in tampers {
        let case = case(&[500_000, -500_000, -500_000], 2, 1e-3, Ring::Prime(P), &mut rng);
        let mut channels = Party::pair();
        channels.1.tamper = Some((DECODING, tamper));
        let error = run_all(&[case], &mut channels, 2).remove(0).unwrap_err();
        assert!(matches!(error.channel(), Some(ChannelError::Malformed { .. })), "{error}");
    }
}

#[test]
fn parameters_without_a_softmax_are_refused() {
    let ring = Ring::Prime(P);
    assert!(Softmax::new(1, 2, 0.1, ring).is_err());
    assert!(Softmax::new(10, 0, 0.1, ring).is_err());
    assert!(Softmax::new(10, 7, 0.1, ring).is_err());
    assert!(Softmax::new(10, 2, f64::NAN, ring).is_err());
}
