//! Measured noise stays below the carried bound under worst-case weights, and noise past the bound makes decryption fail.

use crate::common::{Setting, set_b};
use lanner_bfv::{
    Ciphertext, CoefficientEncoder, ExtendedCombination, LinearCombination, NoiseBound, ParameterSet,
    SecretKey,
};

const T: u64 = 1_073_692_673;

/// Every coefficient as large as can be, with signs that vary: the largest 2-norm there is.
fn worst_case(encoder: &CoefficientEncoder) -> Vec<u64> {
    let t = encoder.modulus().value();
    let sign = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63;
    (0..8192).map(|i| if sign(i) == 0 { t / 2 } else { t - t / 2 }).collect()
}

fn measured(setting: &Setting, ciphertext: &Ciphertext) -> f64 {
    setting.secret.noise_bits(ciphertext, setting.encoder.modulus()).unwrap()
}

fn bound(ciphertext: &Ciphertext) -> f64 {
    ciphertext.noise().infinity(8192).log2()
}

/// Below the bound, and the bound is not idle: at most `slack` bits above.
fn assert_close(setting: &Setting, ciphertext: &Ciphertext, slack: f64) {
    let (measured, bound) = (measured(setting, ciphertext), bound(ciphertext));
    assert!(measured <= bound && bound <= measured + slack, "measured 2^{measured:.1}, bound 2^{bound:.1}");
}

#[test]
fn fresh_rotated_and_switched_noise_is_below_its_bound() {
    let mut setting = Setting::new(set_b(), T, 50);
    let slots = setting.random();
    let fresh = setting.encrypt(&slots);
    assert_close(&setting, &fresh, 3.0);
    let keys = setting.keys(&[setting.evaluator.rotation(5).unwrap(), setting.evaluator.row_swap().unwrap()]);
    let rotated = setting.evaluator.rotate(&fresh, 5, &keys).unwrap();
    assert_close(&setting, &rotated, 4.0);
    let mut many = rotated;
    for _ in 0..10 {
        many = setting.evaluator.swap_rows(&many, &keys).unwrap();
    }
    assert_close(&setting, &many, 5.0);
    assert_close(&setting, &setting.evaluator.mod_switch(&fresh).unwrap(), 3.0);
}

#[test]
fn products_with_the_largest_weights_are_below_their_bound() {
    let mut setting = Setting::new(set_b(), T, 51);
    let coefficients = CoefficientEncoder::new(&setting.parameters, T).unwrap();
    let factor = coefficients.multiplier(&worst_case(&coefficients)).unwrap();
    let slots = setting.random();
    let fresh = setting.encrypt(&slots);
    let product = setting.evaluator.mul_plain(&fresh, &factor).unwrap();
    assert_close(&setting, &product, 3.0);

    // The same ciphertext again and again: noise that is fully dependent, for which bounds add.
    let mut sum = LinearCombination::new(&setting.parameters);
    for _ in 0..64 {
        sum.add(&fresh, &factor).unwrap();
    }
    let sum = sum.finish();
    assert_close(&setting, &sum, 3.0);
    assert!((bound(&sum) - bound(&product) - 6.0).abs() < 1e-6);
}

#[test]
fn extended_combinations_are_below_their_bound() {
    let mut setting = Setting::new(set_b(), T, 52);
    let slots = setting.random();
    let fresh = setting.encrypt(&slots);
    let evaluator = setting.evaluator.clone();
    let hoisted = evaluator.hoist(&fresh).unwrap();
    let weights = setting.random();
    let factor = setting.encoder.multiplier(&weights).unwrap();
    let mut sum = ExtendedCombination::new(&setting.parameters).unwrap();
    for steps in 0..8 {
        let element = setting.evaluator.rotation(steps).unwrap();
        let keys = setting.keys(&[element]);
        sum.add(&hoisted.apply_extended(element, &keys).unwrap(), &factor).unwrap();
    }
    assert_close(&setting, &sum.finish(), 6.0);
}

#[test]
fn analytic_bounds_equal_the_carried_ones() {
    let mut setting = Setting::new(set_b(), T, 53);
    let parameters = setting.parameters.clone();
    let (x, w) = (setting.random(), setting.random());
    let keys = setting.keys(&[setting.evaluator.rotation(3).unwrap()]);
    let fresh = setting.encrypt(&x);
    let factor = setting.encoder.multiplier(&w).unwrap();
    let rotated = setting.evaluator.rotate(&fresh, 3, &keys).unwrap();
    let product = setting.evaluator.mul_plain(&rotated, &factor).unwrap();
    let shifted = setting.evaluator.add_plain(&product, &setting.encoder.encode(&x).unwrap()).unwrap();
    let switched = setting.evaluator.mod_switch(&shifted).unwrap();
    let expected = NoiseBound::fresh().switched_key(&parameters).multiplied(&parameters, T).plus_plaintext();
    assert_eq!(shifted.noise(), expected);
    assert_eq!(switched.noise(), expected.switched_modulus(&parameters, 3, 2));
}

/// `N = 4096` with three limbs of 35 bits has room for one product modulo `2^41` and not for two.
#[test]
fn decryption_holds_within_the_bound_and_fails_past_it() {
    let parameters = ParameterSet::A1.parameters().unwrap();
    let mut setting = Setting::new(parameters.clone(), 65_537, 54);
    let t = 1_u64 << 41;
    let encoder = CoefficientEncoder::new(&parameters, t).unwrap();
    let secret = SecretKey::generate(&parameters, &mut setting.rng);
    let ones = encoder.encode(&[1]).unwrap();
    // The factor of largest norm whose products with the message 1 are known.
    let weights: Vec<u64> = (0..4096).map(|i| if i % 3 == 0 { t / 2 } else { t / 2 + 1 }).collect();
    let factor = encoder.multiplier(&weights).unwrap();
    let fresh = secret.encrypt(&ones, &mut setting.rng).unwrap().expand();
    let once = setting.evaluator.mul_plain(&fresh, &factor).unwrap();
    let decrypted = secret.decrypt(&once, encoder.modulus()).unwrap();
    assert!(once.noise().needed_bits(&parameters, t) < parameters.log2_modulus(3));
    assert_eq!(decrypted.coefficients(), weights);

    let twice = setting.evaluator.mul_plain(&once, &factor).unwrap();
    assert!(twice.noise().needed_bits(&parameters, t) > parameters.log2_modulus(3));
    let mut square = 0_u64;
    for i in 0..4096 {
        // The constant coefficient of the square modulo X^N + 1 and 2^41.
        let product = weights[i].wrapping_mul(weights[(4096 - i) % 4096]);
        square = if i == 0 { square.wrapping_add(product) } else { square.wrapping_sub(product) };
    }
    let decrypted = secret.decrypt(&twice, encoder.modulus()).unwrap();
    assert_ne!(decrypted.coefficients()[0], square % t, "noise past the bound must not go unnoticed here");
}
