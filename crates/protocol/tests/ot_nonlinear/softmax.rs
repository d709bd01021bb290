//! The label and its probability by transfers are those that the circuit gives, whatever the shares.

use lanner_primitives::Ring;
use lanner_step::{Likely, Party};
use lanner_transfers::Layer;
use lanner_yao::softmax::{Precision, likeliest};

use crate::common::{rng, signed};
use crate::ot_nonlinear::{Case, outputs};

/// The layer of scores of `bits` bits, each unit of which stands for `scale`.
fn layer(classes: usize, digits: u32, scale: f64, bits: u32) -> Layer {
    let precision = Precision::new(classes, digits, scale, bits).unwrap();
    let exponential = precision.exponential().unwrap();
    Layer::softmax(classes, bits, precision.dropped(), &exponential, digits).unwrap()
}

/// Scores below a quarter of their ring that a tournament, an exponential and a division may stumble over.
fn adversarial(classes: usize, scale: f64, bits: u32, number: u8) -> Vec<Vec<i64>> {
    let most = (1_i64 << (bits - 2)) - 3;
    let last = classes - 1;
    let real = |x: f64| ((x / scale) as i64).clamp(-most, most);
    let with = |changes: &[(usize, f64)]| {
        let mut scores = vec![real(-3.0); classes];
        for (index, value) in changes {
            scores[*index] = real(*value);
        }
        scores
    };
    let mut rng = rng(number);
    let mut uniform = |bound: i64| signed(classes, bound.clamp(1, most), &mut rng);
    vec![
        vec![0; classes],
        vec![most; classes],
        (0..classes as i64).map(|i| if i % 2 == 0 { -most } else { most }).collect(),
        (0..classes as i64).collect(),
        (0..classes as i64).rev().collect(),
        with(&[(last, 1e9)]),
        with(&[(0, 1e9), (last, 1e9)]),
        with(&[(last / 2, 0.0), (last, 0.0)]),
        with(&[(0, (last as f64).ln() - 3.0)]),
        with(&[(last, (9.0 * last as f64).ln())]),
        uniform(2),
        uniform(real(0.01).abs()),
        uniform(real(1.0).abs()),
        uniform(real(5.0).abs()),
        uniform(real(30.0).abs()),
        uniform(most),
    ]
}

fn check(cases: &[(usize, u32, f64, u32)]) {
    let (mut all, mut expected) = (Vec::new(), Vec::new());
    for (number, (classes, digits, scale, bits)) in cases.iter().copied().enumerate() {
        let layer = layer(classes, digits, scale, bits);
        for scores in adversarial(classes, scale, bits, number as u8) {
            let Likely { label, parts, .. } = likeliest(&scores, digits, scale, bits).unwrap();
            expected.push((vec![label as i64, parts as i64], (classes, digits, scale, bits)));
            all.push(Case::new(layer.clone(), scores, bits));
        }
    }
    for ((got, (expected, of)), case) in outputs(&all).iter().zip(expected).zip(&all) {
        assert_eq!(*got, expected, "{of:?} {:?}", case.secrets);
    }
}

#[test]
fn labels_and_probabilities_are_the_circuits() {
    check(&[
        (2, 1, 0.01, 16),
        (2, 2, 1.0 / 1024.0, 23),
        (3, 2, 0.04, 20),
        (10, 1, 7.3e-5, 22),
        (10, 2, 7.3e-5, 24),
        (10, 3, 7.3e-5, 24),
        (10, 4, 3e-10, 37),
        (7, 5, 1e-4, 32),
        (12, 6, 1e-4, 26),
        (13, 2, 1e-3, 24),
        (35, 2, 1e-5, 30),
        (100, 3, 1e-4, 23),
    ]);
}

/// Units so small that all scores are alike, so large that two differ by everything, and exponents that a ring ends.
#[test]
fn scales_at_both_ends_do() {
    check(&[
        (5, 2, 1e-5, 10),
        (5, 3, 1e-6, 12),
        (5, 3, 6.0, 20),
        (5, 2, 100.0, 20),
        (4, 2, 0.5, 5),
        (4, 2, 0.003, 10),
        (9, 4, 0.2, 8),
    ]);
}

#[test]
fn a_thousand_classes_do() {
    check(&[(1000, 2, 7.3e-5, 24)]);
}

/// Next to the edge between two digits the result is one, whatever the shares.
#[test]
fn repeated_queries_give_one_result() {
    let (digits, scale, bits) = (2, 7.3e-5, 20);
    let parts = |score: i64| likeliest(&[0, score, -9000], digits, scale, bits).unwrap().parts;
    let edges: Vec<i64> = (10_000..16_000).filter(|score| parts(*score) != parts(*score + 1)).collect();
    assert!(edges.len() > 6);
    let layer = layer(3, digits, scale, bits);
    let ring = Ring::Pow2(bits);
    let (mut cases, mut expected) = (Vec::new(), Vec::new());
    for score in edges.iter().flat_map(|score| [*score, score + 1]) {
        for repeat in 0..6_u64 {
            let server = (1..4).map(|i| ring.embed((repeat * 0x9_3c1d + i * 0x4_f02b) as i64)).collect();
            let case = Case::new(layer.clone(), vec![0, score, -9000], bits);
            cases.push(Case { server: Some(server), ..case });
            expected.push(parts(score) as i64);
        }
    }
    let got: Vec<i64> = outputs(&cases).iter().map(|both| both[1]).collect();
    assert_eq!(got, expected);
}

#[test]
fn it_sends_little_and_few_rounds() {
    for (classes, digits, rounds, kilobytes) in [(10, 2, 40, 20), (1000, 2, 60, 1500)] {
        let layer = layer(classes, digits, 7.3e-5, 24);
        let cost = layer.online_cost();
        assert!(cost.rounds() <= rounds && cost.bytes() <= 1000 * kilobytes, "{classes} {digits}: {cost:?}");
        assert!(layer.transfers(Party::Client) > 0);
    }
}

#[test]
fn what_has_no_room_is_refused() {
    let refused = |classes, digits, scale, bits, at_bits| {
        let precision = Precision::new(classes, digits, scale, bits).unwrap();
        let exponential = precision.exponential().unwrap();
        Layer::softmax(classes, at_bits, precision.dropped(), &exponential, digits).is_err()
    };
    assert!(!refused(10, 2, 1e-4, 24, 24));
    assert!(refused(10, 2, 1e-4, 24, 2) && refused(10, 2, 1e-4, 24, 63));
    assert!(refused(1000, 6, 1e-4, 24, 24));
}
