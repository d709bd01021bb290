//! Softmax against its integer twin and the ideal one in floating point, its cost, its transcripts, and what it opens.

use lanner_primitives::{Prg, Ring, Share};
use lanner_step::{Cost, EvaluationSession, GarblingSession, Likely, Outcome, ProtocolError, garbling_cost};
use lanner_testkit::{chi_square_limit, uniform_chi_square};
use lanner_wire::{ChannelError, Kind};
use lanner_yao::softmax::{Precision, likeliest, softmax};
use lanner_yao::{ClientRevealed, Revealed, ServerRevealed};

use crate::common::{Party, edge_share, ideal, rng, run, signed, split};

const P: u64 = 1_032_193;

/// What a softmax gives the client for each pair of shares in one session, all asked for before the first is answered.
fn run_all(
    softmax: &Revealed,
    cases: &[(Share, Share)],
    channels: &mut (Party, Party),
    seed: u8,
) -> Vec<Result<Likely, ProtocolError>> {
    let (likely, ()) = run(
        channels,
        |channel| {
            let mut session = EvaluationSession::setup(channel, &mut rng(1)).unwrap();
            let client = ClientRevealed::new(softmax.clone());
            let requests: Vec<_> =
                cases.iter().map(|_| client.request(channel, &mut session).unwrap()).collect();
            let materials: Vec<_> =
                requests.into_iter().map(|request| client.receive(channel, request).unwrap()).collect();
            let online = materials.into_iter().zip(cases);
            online
                .map(|(material, (share, _))| {
                    client.online(channel, material, share).map(|outcome| likely(&outcome))
                })
                .collect()
        },
        |channel| {
            let mut rng = rng(seed);
            let mut session = GarblingSession::setup(channel, &mut rng).unwrap();
            let server = ServerRevealed::new(softmax.clone());
            let prepare =
                |(_, share): &(Share, Share)| server.offline(channel, &mut session, share, &mut rng).unwrap();
            let materials: Vec<_> = cases.iter().map(prepare).collect();
            for material in materials {
                server.online(channel, material).unwrap();
            }
        },
    );
    likely
}

fn likely(outcome: &Outcome) -> Likely {
    match outcome {
        Outcome::Probability(likely) => *likely,
        _ => unreachable!("a probability is asked for"),
    }
}

/// Shares of scores, with edges of the ring among them.
fn shared(scores: &[i64], ring: Ring, rng: &mut Prg) -> (Share, Share) {
    let server = edge_share(ring, scores.len(), rng);
    (split(ring, scores, &server), server)
}

/// One softmax of scores modulo [`P`] in units of `scale`.
fn run_one(
    scores: &[i64],
    digits: u32,
    scale: f64,
    channels: &mut (Party, Party),
    seed: u8,
) -> Result<Likely, ProtocolError> {
    let softmax = softmax(scores.len(), digits, scale, Ring::Prime(P)).unwrap();
    let case = shared(scores, Ring::Prime(P), &mut rng(seed + 50));
    run_all(&softmax, &[case], channels, seed).remove(0)
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

/// Every result is the integer twin's, which is within its bound of the exact softmax; of many classes few are run.
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
    let softmax = softmax(classes, digits, scale, ring).unwrap();
    let precision = Precision::new(classes, digits, scale, ring.bits()).unwrap();
    let (limit, proved) = (10_f64.powi(-(digits as i32)), precision.error_bound());
    let cases: Vec<_> = scores.iter().map(|x| shared(x, ring, &mut rng)).collect();
    let twin = |scores: &[i64]| likeliest(scores, digits, scale, ring.bits()).unwrap();
    for (case, scores) in cases.iter().zip(&scores) {
        let ((label, probability), likely) = (ideal::softmax((&case.0, &case.1), scale), twin(scores));
        assert_eq!((likely.label, likely.digits), (label, digits));
        let error = (likely.probability() - probability).abs();
        assert!(error <= proved && proved <= limit, "{classes} {digits} {scale} {error} {proved} {scores:?}");
    }
    let run = cases.len().min(2000 / classes);
    let results = run_all(&softmax, &cases[cases.len() - run..], &mut Party::pair(), 2);
    for (result, scores) in results.into_iter().zip(&scores[cases.len() - run..]) {
        assert_eq!(result.unwrap(), twin(scores), "{classes} {digits} {scale} {scores:?}");
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

/// The bound holds of the twin for random scores of any scale.
#[test]
fn the_twin_is_within_its_bound() {
    let mut rng = rng(9);
    for run in 0..3000_usize {
        let (classes, digits) = ([2, 3, 10, 40][run % 4], 1 + (run / 4 % 6) as u32);
        let scale = f64::exp2(signed(1, 1 << 20, &mut rng)[0] as f64 / f64::from(1 << 16));
        let spread = (f64::exp2((run % 7) as f64) / scale).clamp(1.0, 4e8) as i64;
        let scores = signed(classes, spread, &mut rng);
        let likely = likeliest(&scores, digits, scale, 30).unwrap();
        let terms = scores.iter().map(|x| ((x - scores[likely.label]) as f64 * scale).exp());
        let error = (likely.probability() - 1.0 / terms.sum::<f64>()).abs();
        assert!(error <= 10_f64.powi(-(digits as i32)), "{digits} {scale} {scores:?}: {error}");
    }
}

/// Scores of which the probability is next to the edge between two digits, asked for again and again: the client's share is another each time,
/// the result is not.
#[test]
fn repeated_queries_give_one_result() {
    let (digits, scale, ring) = (2, 7.3e-5, Ring::Prime(P));
    let parts = |score: i64| likeliest(&[0, score, -9000], digits, scale, ring.bits()).unwrap().parts;
    let edges = (10_000..30_000).filter(|score| parts(*score) != parts(*score + 1));
    let edges: Vec<i64> = edges.flat_map(|score| [score, score + 1]).collect();
    assert!(edges.len() > 40);
    let mut rng = rng(8);
    let softmax = softmax(3, digits, scale, ring).unwrap();
    let repeated = edges.iter().flat_map(|score| [[0, *score, -9000]; 12]);
    let cases: Vec<_> = repeated
        .map(|scores| {
            let server = Share::random(ring, 3, &mut rng);
            (split(ring, &scores, &server), server)
        })
        .collect();
    let results = run_all(&softmax, &cases, &mut Party::pair(), 2);
    for (score, repeats) in edges.iter().zip(results.chunks(12)) {
        let expected = likeliest(&[0, *score, -9000], digits, scale, ring.bits()).unwrap();
        assert!(repeats.iter().all(|result| *result.as_ref().unwrap() == expected), "{score}");
    }
}

#[test]
fn cost_is_what_is_sent() {
    for (classes, digits, scale) in [(10, 2, 7.3e-5), (3, 6, 1.0), (300, 4, 1e-4)] {
        let softmax = softmax(classes, digits, scale, Ring::Prime(P)).unwrap();
        let mut channels = Party::pair();
        run_one(&signed(classes, 400_000, &mut rng(4)), digits, scale, &mut channels, 2).unwrap();
        let sent = |party: &Party| party.sent.iter().map(|(_, body)| body.len() as u64 + 6).sum::<u64>();
        let offline = softmax.offline_cost();
        let cost = garbling_cost().then(offline.request).then(offline.answer).then(softmax.online_cost());
        assert_eq!((cost.client_bytes(), cost.server_bytes()), (sent(&channels.0), sent(&channels.1)));
        // One wait online, for the labels of the scores.
        assert_eq!(softmax.online_cost().rounds(), 1);
        let alone: Cost = offline.request.then(offline.answer);
        assert_eq!(alone.rounds(), 1);
    }
}

#[test]
fn transcripts_are_alike_whatever_the_scores() {
    let transcript = |scores: &[i64]| {
        let mut channels = Party::pair();
        run_one(scores, 2, 1e-4, &mut channels, 2).unwrap();
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
        for seed in 0..12 {
            let mut channels = Party::pair();
            run_one(&scores, 2, 1e-4, &mut channels, seed).unwrap();
            for body in channels.0.sent_of(0x52) {
                // The last byte may be padded with zeros.
                for byte in &body[..body.len() - 1] {
                    counts[1] += u64::from(byte.count_ones());
                    counts[0] += u64::from(byte.count_zeros());
                }
            }
        }
        assert!(uniform_chi_square(&counts) < chi_square_limit(1), "{counts:?}");
    }
}

#[test]
fn outputs_that_cannot_be_are_malformed() {
    const DECODING: Kind = Kind(0x51);
    // Three classes and two bits of an index, which turns into 3; the bits behind turn 100 into what 7 bits may hold above it.
    let tampers: [fn(&mut Vec<u8>); 2] = [|bytes| bytes[0] ^= 3, |bytes| bytes[0] ^= 0x1b << 2];
    for tamper in tampers {
        let mut channels = Party::pair();
        channels.1.tamper = Some((DECODING, tamper));
        let error = run_one(&[500_000, -500_000, -500_000], 2, 1e-3, &mut channels, 2).unwrap_err();
        assert!(matches!(error.channel(), Some(ChannelError::Malformed { .. })), "{error}");
    }
}

#[test]
fn parameters_without_a_softmax_are_refused() {
    let ring = Ring::Prime(P);
    assert!(softmax(1, 2, 0.1, ring).is_err());
    assert!(softmax(10, 0, 0.1, ring).is_err());
    assert!(softmax(10, 7, 0.1, ring).is_err());
    assert!(softmax(10, 2, f64::NAN, ring).is_err());
}
