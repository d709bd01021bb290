//! Products of ciphertexts are products of what they encrypt, with noise below and near its bound.

use crate::common::{self, SMALL_T, Setting, rotated, small, values};
use lanner_bfv::{
    BfvError, Ciphertext, CoefficientEncoder, EvaluationKeys, LinearCombination, NeededKey, NoiseBound,
    ParameterSet, Parameters, PlaintextModulus,
};
use proptest::prelude::*;

/// Primes `1 mod 2^15` of 31, 37 and 40 bits.
const PRIMES: [u64; 3] = [2_148_728_833, 137_438_822_401, 1_099_510_054_913];

fn set_l() -> Parameters {
    ParameterSet::L.parameters().unwrap()
}

fn zip(a: &[u64], b: &[u64], operation: impl Fn(u128, u128) -> u128, t: u64) -> Vec<u64> {
    a.iter().zip(b).map(|(x, y)| (operation(u128::from(*x), u128::from(*y)) % u128::from(t)) as u64).collect()
}

fn product(a: &[u64], b: &[u64], t: u64) -> Vec<u64> {
    zip(a, b, |x, y| x * y, t)
}

fn product_keys(setting: &mut Setting, needed: NeededKey) -> EvaluationKeys {
    EvaluationKeys::generate(&setting.secret, &[needed], &mut setting.rng).unwrap()
}

/// Whether the noise bound promises that the ciphertext decrypts.
fn decrypts(setting: &Setting, ciphertext: &Ciphertext) -> bool {
    let needed = ciphertext.noise().needed_bits(&setting.parameters, setting.t());
    needed <= setting.parameters.log2_modulus(ciphertext.limbs())
}

/// Below the bound, and the bound is not idle.
fn assert_close(setting: &Setting, ciphertext: &Ciphertext, slack: f64) {
    let measured = setting.secret.noise_bits(ciphertext, setting.encoder.modulus()).unwrap();
    let bound = ciphertext.noise().infinity(setting.parameters.degree()).log2();
    assert!(measured <= bound && bound <= measured + slack, "measured 2^{measured:.1}, bound 2^{bound:.1}");
}

#[test]
fn products_and_squares_are_those_of_the_slots_at_every_number_of_limbs() {
    for (i, t) in PRIMES.into_iter().enumerate() {
        let mut setting = Setting::new(set_l(), t, 70 + i as u8);
        let evaluator = setting.evaluator.clone();
        let modulus = setting.encoder.modulus().clone();
        let keys = product_keys(&mut setting, NeededKey::product());
        let edges = [0, 1, t / 2, t / 2 + 1, t - 1];
        let x: Vec<u64> = (0..16384).map(|i| edges[i % 5]).collect();
        let y = setting.random();
        let (xs, ys) = (setting.encrypt(&x), setting.encrypt(&y));
        for limbs in (3..=7).rev() {
            let down = |ciphertext| evaluator.mod_switch_to(ciphertext, limbs).unwrap();
            let (xs, ys) = (down(&xs), down(&ys));
            let both = evaluator.multiply(&xs, &ys, &modulus, &keys).unwrap();
            let square = evaluator.square(&xs, &modulus, &keys).unwrap();
            assert!(decrypts(&setting, &both), "t = {t} at {limbs} limbs");
            assert!(setting.decrypt(&both) == product(&x, &y, t), "t = {t} at {limbs} limbs");
            assert!(setting.decrypt(&square) == product(&x, &x, t), "t = {t} at {limbs} limbs");
            assert_close(&setting, &both, 4.0);
            assert_close(&setting, &square, 4.0);
        }
    }
}

#[test]
fn a_square_is_the_product_by_itself_and_may_have_fewer_limbs_at_once() {
    let t = PRIMES[0];
    let mut setting = Setting::new(set_l(), t, 73);
    let evaluator = setting.evaluator.clone();
    let modulus = setting.encoder.modulus().clone();
    let keys = product_keys(&mut setting, NeededKey::product().at(5));
    let x = setting.random();
    let fresh = setting.encrypt(&x);
    for limbs in 3..=5 {
        let square = evaluator.square_to(&fresh, &modulus, &keys, limbs).unwrap();
        let same = evaluator.multiply_to(&fresh, &fresh, &modulus, &keys, limbs).unwrap();
        assert_eq!((square.limbs(), square.noise()), (limbs, same.noise()));
        let expected = product(&x, &x, t);
        assert!(setting.decrypt(&square) == expected && setting.decrypt(&same) == expected, "{limbs}");
        assert_close(&setting, &square, 4.0);
    }
    let refused = evaluator.square(&fresh, &modulus, &keys).err();
    assert_eq!(refused, Some(BfvError::Limbs { got: 7, most: 5 }));
}

/// Linear, square, linear, square, linear: what a network is, with limbs dropped where the noise that they hold is rounded away.
#[test]
fn two_squares_between_linear_layers_fit_set_l() {
    for (i, t) in PRIMES.into_iter().enumerate() {
        let mut setting = Setting::new(set_l(), t, 90 + i as u8);
        let evaluator = setting.evaluator.clone();
        let modulus = setting.encoder.modulus().clone();
        let rotation = evaluator.rotation(7).unwrap();
        let needed = [rotation.into(), NeededKey::product().at(6)];
        let keys = EvaluationKeys::generate(&setting.secret, &needed, &mut setting.rng).unwrap();
        let mut clear = setting.random();
        let mut state = setting.encrypt(&clear);
        for (layer, limbs) in [7, 6, 5, 4, 3].into_iter().enumerate() {
            if layer % 2 == 1 {
                state = evaluator.square_to(&state, &modulus, &keys, limbs).unwrap();
                clear = product(&clear, &clear, t);
            } else {
                let (still, turned) = (setting.random(), setting.random());
                let factors = [&still, &turned].map(|w| setting.encoder.compact_multiplier(w).unwrap());
                state = evaluator.mod_switch_to(&state, limbs).unwrap();
                let pair = [state.clone(), evaluator.apply(&state, rotation, &keys).unwrap()];
                state = LinearCombination::of(&setting.parameters, &pair, &factors).unwrap();
                let terms = [product(&clear, &still, t), product(&rotated(&clear, 7), &turned, t)];
                clear = zip(&terms[0], &terms[1], |x, y| x + y, t);
            }
            assert!(decrypts(&setting, &state), "t = {t}, layer {layer}");
            assert!(setting.decrypt(&state) == clear, "t = {t}, layer {layer}");
            // Each layer's bound holds for the largest weights and for noises that add up.
            assert_close(&setting, &state, 10.0);
        }
    }
}

#[test]
fn coefficient_products_are_negacyclic_convolutions() {
    let mut setting = Setting::new(set_l(), PRIMES[0], 74);
    let evaluator = setting.evaluator.clone();
    let keys = product_keys(&mut setting, NeededKey::product());
    let t = 1 << 20;
    let encoder = CoefficientEncoder::new(&setting.parameters, t).unwrap();
    let (x, w) = (values(16384, t, &mut setting.rng), values(5, t, &mut setting.rng));
    let mut encrypt = |values: &[u64]| {
        setting.secret.encrypt(&encoder.encode(values).unwrap(), &mut setting.rng).unwrap().expand()
    };
    let (a, b) = (encrypt(&x), encrypt(&w));
    let both = evaluator.multiply(&a, &b, encoder.modulus(), &keys).unwrap();
    let mut expected = vec![0; x.len()];
    for (j, w) in w.iter().enumerate() {
        for (i, x) in x.iter().enumerate() {
            let place = &mut expected[(i + j) % 16384];
            *place = if i + j < 16384 { *place + w * x } else { *place + (t - w) * x } % t;
        }
    }
    let decrypted = setting.secret.decrypt(&both, encoder.modulus()).unwrap();
    assert!(decrypted.coefficients() == expected);
}

#[test]
fn noise_of_a_product_follows_the_larger_of_its_factors() {
    let t = PRIMES[0];
    let mut setting = Setting::new(set_l(), t, 75);
    let evaluator = setting.evaluator.clone();
    let modulus = setting.encoder.modulus().clone();
    let keys = product_keys(&mut setting, NeededKey::product());
    let (x, w) = (setting.random(), setting.random());
    let fresh = setting.encrypt(&x);
    let noisy = evaluator.mul_plain(&fresh, &setting.encoder.multiplier(&w).unwrap()).unwrap();
    for pair in [[&fresh, &noisy], [&noisy, &fresh], [&noisy, &noisy]] {
        let both = evaluator.multiply(pair[0], pair[1], &modulus, &keys).unwrap();
        assert_close(&setting, &both, 6.0);
        let [a, b] = pair.map(Ciphertext::noise);
        let expected = a.product(b, &setting.parameters, t, 7).switched_key(&setting.parameters);
        assert_eq!(both.noise(), expected);
    }
    // Noise near q / 2t: the product of noise by noise counts.
    let large = NoiseBound::fresh().multiplied_by_norm(2f64.powi(310));
    let alone = large.product(NoiseBound::NONE, &setting.parameters, t, 7).deviation();
    assert!(large.product(large, &setting.parameters, t, 7).deviation() > 2.0 * alone);
}

#[test]
fn what_does_not_fit_is_refused() {
    let t = PRIMES[0];
    let mut setting = Setting::new(set_l(), t, 76);
    let evaluator = setting.evaluator.clone();
    let modulus = setting.encoder.modulus().clone();
    let slots = setting.random();
    let fresh = setting.encrypt(&slots);
    let lower = evaluator.mod_switch(&fresh).unwrap();
    let rotations = setting.keys(&[evaluator.rotation(1).unwrap()]);
    let keys = product_keys(&mut setting, NeededKey::product().at(2));
    assert_eq!(evaluator.square(&fresh, &modulus, &rotations).err(), Some(BfvError::MissingProductKey));
    let too_many = Some(BfvError::Limbs { got: 7, most: 2 });
    assert_eq!(evaluator.square(&fresh, &modulus, &keys).err(), too_many);
    for (limbs, most) in [(0, 7), (8, 7)] {
        let refused = evaluator.square_to(&fresh, &modulus, &keys, limbs).err();
        assert_eq!(refused, Some(BfvError::Limbs { got: limbs, most }));
        assert_eq!(evaluator.mod_switch_to(&fresh, limbs).err(), refused);
    }
    let more = evaluator.square_to(&lower, &modulus, &keys, 7).err();
    assert_eq!(more, Some(BfvError::Limbs { got: 7, most: 6 }));
    let mismatch = |result: Result<_, BfvError>| matches!(result.map(drop), Err(BfvError::Mismatch { .. }));
    assert!(mismatch(evaluator.multiply(&fresh, &lower, &modulus, &keys)));

    let mut other = Setting::new(small(), SMALL_T, 77);
    let slots = other.random();
    let foreign = other.encrypt(&slots);
    let foreign_keys = product_keys(&mut other, NeededKey::product());
    assert!(mismatch(evaluator.square(&foreign, &modulus, &keys)));
    assert!(mismatch(evaluator.square_to(&fresh, other.encoder.modulus(), &keys, 2)));
    assert!(mismatch(evaluator.square_to(&fresh, &modulus, &foreign_keys, 2)));
    let without = ParameterSet::A2.parameters().unwrap();
    let mut plain = Setting::new(without.clone(), 114_689, 78);
    let ciphertext = plain.encrypt(&vec![1; 8192]);
    let modulus = PlaintextModulus::new(&without, 114_689).unwrap();
    let no_keys = plain.keys(&[]);
    let refused = plain.evaluator.square(&ciphertext, &modulus, &no_keys).err();
    assert_eq!(refused, Some(BfvError::NoSpecialModulus));
}

#[test]
fn a_key_of_another_secret_gives_another_result() {
    let t = PRIMES[0];
    let mut setting = Setting::new(set_l(), t, 79);
    let modulus = setting.encoder.modulus().clone();
    let slots = setting.random();
    let fresh = setting.encrypt(&slots);
    let mut stranger = Setting::new(set_l(), t, 80);
    let keys = product_keys(&mut stranger, NeededKey::product());
    let square = setting.evaluator.square(&fresh, &modulus, &keys).unwrap();
    assert!(setting.decrypt(&square) != product(&slots, &slots, t));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// `(x + y) z rotated` and `x^2 - y z`, at some number of limbs.
    #[test]
    fn small_circuits_equal_their_clear_twins(seed: u8, limbs in 2usize..=3, steps in 0isize..4096) {
        let t = 114_689;
        let mut setting = Setting::new(common::set_b(), t, seed);
        let evaluator = setting.evaluator.clone();
        let modulus = setting.encoder.modulus().clone();
        let rotation = evaluator.rotation(steps).unwrap();
        let needed = [NeededKey::product(), rotation.into()];
        let keys = EvaluationKeys::generate(&setting.secret, &needed, &mut setting.rng).unwrap();
        let clear: Vec<Vec<u64>> = (0..3).map(|_| setting.random()).collect();
        let down = |fresh| evaluator.mod_switch_to(&fresh, limbs).unwrap();
        let [x, y, z] = [0, 1, 2].map(|i| down(setting.encrypt(&clear[i])));
        let multiply = |a: &Ciphertext, b: &Ciphertext| evaluator.multiply(a, b, &modulus, &keys).unwrap();
        let first = evaluator.rotate(&multiply(&evaluator.add(&x, &y).unwrap(), &z), steps, &keys).unwrap();
        let square = evaluator.square(&x, &modulus, &keys).unwrap();
        let second = evaluator.sub(&square, &multiply(&y, &z)).unwrap();
        let sum = zip(&clear[0], &clear[1], |x, y| x + y, t);
        let squares = product(&clear[0], &clear[0], t);
        let difference = zip(&squares, &product(&clear[1], &clear[2], t), |x, y| x + u128::from(t) - y, t);
        for (result, expected) in [(first, rotated(&product(&sum, &clear[2], t), steps)), (second, difference)] {
            prop_assert!(decrypts(&setting, &result));
            prop_assert!(setting.decrypt(&result) == expected);
            setting.assert_noise(&result);
        }
    }
}
