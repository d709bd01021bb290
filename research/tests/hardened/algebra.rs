//! Honest clients pass, and no wrong message, commitment or unused coefficient does.

use lanner_primitives::Prg;
use rand_core::SeedableRng;

use super::model::{Cheat, Joins, Model, Q};

fn layer() -> Model {
    // Ten inputs, six outputs: coefficients beyond them are unused.
    let mut model = Model::new(24, vec![3, -7, 0, 11, 2, -5, 0, 1, 0, 0, -2, 4, 0, 0, 9, 6]);
    model.places = (0..10).collect();
    model.outputs = vec![1, 4, 5, 9, 13, 15];
    model
}

const INPUT: [u64; 10] = [0, 256, 128, 129, 1, 17, 99, 255, 2, 77];

#[test]
fn an_honest_client_passes_and_its_result_is_right() {
    let mut rng = Prg::from_seed([1; 16]);
    let model = layer();
    for _ in 0..300 {
        let outcome = model.predict(&INPUT, &Cheat::default(), &mut rng);
        assert!(outcome.passed && outcome.right);
    }
    // With all masks of the protocol.
    let outcome = Model { masks: 128, ..model }.predict(&INPUT, &Cheat::default(), &mut rng);
    assert!(outcome.passed && outcome.right);
}

#[test]
fn a_wrong_message_or_commitment_is_caught() {
    let mut rng = Prg::from_seed([2; 16]);
    let model = layer();
    // A message that is one more, at any coefficient: inputs', and unused ones.
    for place in 0..model.degree {
        for steps in [1, 128, 256] {
            let added = (u128::from(Q) * steps / 257) as u64;
            let cheat = Cheat { halves: vec![(place, added)], ..Cheat::default() };
            assert!(!model.predict(&INPUT, &cheat, &mut rng).passed, "coefficient {place}, {steps} more");
        }
    }
    for output in 0..model.outputs.len() {
        let cheat = Cheat { commitments: vec![(output, 1)], ..Cheat::default() };
        let outcome = model.predict(&INPUT, &cheat, &mut rng);
        assert!(!outcome.passed && !outcome.right);
    }
}

#[test]
fn one_equation_modulo_a_small_prime_lets_one_in_p_through() {
    let mut rng = Prg::from_seed([3; 16]);
    let mut model = Model::new(1, vec![1, 2, 3, 4]);
    (model.p, model.side, model.joins) = (17, 17 << 16, Joins::Random(1));
    let cheat = Cheat { commitments: vec![(2, 5)], ..Cheat::default() };
    let runs = 20_000;
    let passed = (0..runs).filter(|_| model.predict(&[1, 2, 3, 4], &cheat, &mut rng).passed).count();
    // Six deviations of a binomial.
    let expected = f64::from(runs) / 17.0;
    assert!((passed as f64 - expected).abs() < 6.0 * expected.sqrt(), "{passed} of {runs}");
}

/// The twin that leaves a coefficient without masks: whoever knows the weights changes the input there.
#[test]
fn a_coefficient_without_masks_passes_for_who_knows_its_weights() {
    let mut rng = Prg::from_seed([4; 16]);
    let (whole, place) = (layer(), 12);
    let mut twin = whole.clone();
    twin.uncovered = vec![place];
    let message = vec![(place, Q / 257)];
    // The commitment that honest decryption makes is wrong by the weights; taking them off makes it fit.
    let guess = |wrong: u64| {
        let of = |o: &usize| (257 * 64 - whole.weight(*o, place)) as u64 % 257;
        let mut commitments: Vec<_> = whole.outputs.iter().map(of).enumerate().collect();
        commitments[3].1 += wrong;
        Cheat { halves: message.clone(), commitments, no_key: false }
    };
    for _ in 0..20 {
        assert!(twin.predict(&INPUT, &guess(0), &mut rng).passed);
        assert!(!twin.predict(&INPUT, &guess(1), &mut rng).passed);
        assert!(!whole.predict(&INPUT, &guess(0), &mut rng).passed);
    }
}
