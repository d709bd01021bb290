//! Attacks by the client. Each must work on a sealing that lacks a protection, and fail on the real one.

use lanner_ring::Poly;
use lanner_testkit::{chi_square_limit, mean_and_variance, sum_of_three_uniform, uniform_chi_square};

use super::*;
use crate::function_privacy::Defect;

/// Weights of the attacked layer lie in `[-LIMIT, LIMIT)`.
const LIMIT: i64 = 8;

const T: u64 = 1_073_692_673;

/// Seals `sum_i w_i x_i` with scalar weights; returns it with the first limbs of the uploads' second halves.
fn scalar_layer(
    setting: &mut Setting,
    weights: [i64; 4],
    defect: Option<Defect>,
) -> (SealedCiphertext, Vec<Poly<Coeff>>) {
    let mut sum = LinearCombination::new(setting.parameters());
    let mut uploads = Vec::new();
    for weight in weights {
        let x = setting.random();
        let upload = setting.encrypt(&x);
        let slots = vec![weight.rem_euclid(T as i64) as u64; setting.encoder.slots()];
        sum.add(&upload, &setting.encoder.multiplier(&slots).unwrap()).unwrap();
        let mut c1 = upload.c1.into_coeff();
        shrink(&mut c1, 1);
        uploads.push(c1);
    }
    let mut blinding = setting.prepare(setting.product_noise(4));
    if let Some(defect) = defect {
        blinding = blinding.broken(defect);
    }
    let r = setting.random();
    let mask = setting.encoder.encode(&r).unwrap();
    (seal(&sum.finish(), blinding, &mask).unwrap(), uploads)
}

/// Solves `c1 = sum_i a_i w_i` for small weights, up to the rounding of the modulus switch: every solution there is.
fn solve(setting: &Setting, c1: &Poly<Coeff>, uploads: &[Poly<Coeff>]) -> Vec<[i64; 4]> {
    let modulus = setting.parameters().moduli()[0];
    let product =
        |upload: &Poly<Coeff>, k: usize, w: i64| modulus.mul(upload.limb(0)[k], modulus.reduce_signed(w));
    // Each upload's rounding enters times its weight.
    let slack = 4 * LIMIT;
    let explains = |weights: &[i64; 4], k: usize| {
        let terms = uploads.iter().zip(weights).map(|(upload, w)| product(upload, k, *w));
        let rest = terms.fold(c1.limb(0)[k], |rest, term| modulus.sub(rest, term));
        modulus.center(rest).abs() <= slack
    };
    let range = |_| -LIMIT..LIMIT;
    let candidates = range(0).flat_map(|a| range(1).map(move |b| (a, b)));
    let all = candidates.flat_map(|(a, b)| range(2).flat_map(move |c| range(3).map(move |d| [a, b, c, d])));
    all.filter(|weights| (0..16).all(|k| explains(weights, k))).collect()
}

#[test]
fn weights_solve_from_c1_without_the_encryption_of_zero_and_not_with_it() {
    let weights = [3, -8, 7, -1];
    let mut setting = Setting::new(T, 30);
    let (broken, uploads) = scalar_layer(&mut setting, weights, Some(Defect::NoEncryptionOfZero));
    assert_eq!(solve(&setting, &broken.c1, &uploads), [weights], "the attack works on the broken sealing");
    let (sealed, uploads) = scalar_layer(&mut setting, weights, None);
    assert!(solve(&setting, &sealed.c1, &uploads).is_empty(), "the attack works on the real sealing");
}

/// The second half of what was sent is uniform, whatever the weights; without the encryption of zero and with zero
/// weights it is constant.
#[test]
fn second_half_is_uniform_whatever_the_weights() {
    let mut setting = Setting::new(T, 31);
    for weights in [[0; 4], [LIMIT - 1; 4]] {
        let (sealed, _) = scalar_layer(&mut setting, weights, None);
        let q = setting.parameters().moduli()[0].value();
        assert!(
            chi_square_of(sealed.c1.limb(0).iter().map(|x| *x as f64 / q as f64))
                < chi_square_limit(BINS - 1)
        );
    }
    let (broken, _) = scalar_layer(&mut setting, [0; 4], Some(Defect::NoEncryptionOfZero));
    assert!(broken.c1.limb(0).iter().all(|x| *x == 0));
}

const BINS: usize = 64;

/// The statistic of values in `[0, 1)` against the uniform distribution.
fn chi_square_of(values: impl Iterator<Item = f64>) -> f64 {
    let mut counts = [0; BINS];
    for value in values {
        counts[((value * BINS as f64) as usize).min(BINS - 1)] += 1;
    }
    uniform_chi_square(&counts)
}

/// The noise that a client finds after step 4 and after step 5, in units of the flooding width, for weights that are all
/// zero or all as large as can be.
fn residuals(setting: &mut Setting, large: bool, defect: Option<Defect>) -> [Vec<f64>; 2] {
    let x = setting.random();
    let w = if large { setting.random() } else { vec![0; setting.encoder.slots()] };
    let mut product = setting.encrypt(&x);
    product = setting.evaluator.mul_plain(&product, &setting.encoder.multiplier(&w).unwrap()).unwrap();
    for _ in 0..DOUBLINGS {
        product = setting.evaluator.add(&product, &product).unwrap();
    }
    let r = setting.random();
    let mask = setting.encoder.encode(&r).unwrap();
    let mut blinding = setting.prepare(product.noise());
    if let Some(defect) = defect {
        blinding = blinding.broken(defect);
    }
    let budget = blinding.budget();
    let [mut c0, mut c1] = blind(&product, &blinding, &mask).unwrap();
    let flooded = residual(setting, &c0, &c1);
    let dropped =
        setting.parameters().log2_modulus(budget.flood_limbs()) - setting.parameters().log2_modulus(1);
    shrink(&mut c0, budget.wire_limbs());
    shrink(&mut c1, budget.wire_limbs());
    let width = f64::from(budget.flood_bits()).exp2();
    let sent = residual(setting, &c0, &c1);
    [flooded.iter().map(|e| e / width).collect(), sent.iter().map(|e| e / width * dropped.exp2()).collect()]
}

/// So many doublings that the noise of large weights stands above the rounding of the modulus switch.
const DOUBLINGS: usize = 22;

/// Phase minus the scaled message it decodes to.
fn residual(setting: &Setting, c0: &Poly<Coeff>, c1: &Poly<Coeff>) -> Vec<f64> {
    let modulus = setting.encoder.modulus();
    let sealed = SealedCiphertext { modulus: modulus.clone(), c0: c0.clone(), c1: c1.clone() };
    let mut phase = setting.secret.sealed_phase(&sealed).unwrap();
    phase.sub_assign(&modulus.scale(&modulus.unscale(&phase), phase.basis().len()));
    (0..setting.encoder.slots()).map(|k| phase.coefficient(k).to_i128().unwrap() as f64).collect()
}

#[test]
fn residual_noise_is_alike_under_two_weight_sets_and_tells_them_apart_without_flooding() {
    let mut setting = Setting::of(ParameterSet::W, T, 32);
    let spread = |values: &[f64]| mean_and_variance(values).1;
    let limit = chi_square_limit(BINS - 1);
    for large in [false, true] {
        let [flooded, sent] = residuals(&mut setting, large, None);
        // The flooding's own distribution: nothing of what is below it shows.
        let fit = |residual: &[f64]| chi_square_of(residual.iter().map(|e| sum_of_three_uniform(*e)));
        assert!(fit(&flooded) < limit, "flooded, large weights: {large}");
        assert!(fit(&sent) < limit, "sent, large weights: {large}");
    }
    let [zero, _] = residuals(&mut setting, false, Some(Defect::NoFlooding));
    let [large, _] = residuals(&mut setting, true, Some(Defect::NoFlooding));
    let ratio = spread(&large) / spread(&zero);
    assert!(ratio > 100.0, "without flooding the spread grows by {ratio}");
}

#[test]
fn what_the_client_decrypts_is_uniform_in_used_and_unused_slots() {
    let mut setting = Setting::new(T, 33);
    // A product that is zero in the upper half of the slots, and a small constant in the lower.
    let mut w = vec![5; setting.encoder.slots()];
    w[setting.encoder.slots() / 2..].fill(0);
    let fresh = setting.encrypt(&vec![1; 8192]);
    let product = setting.evaluator.mul_plain(&fresh, &setting.encoder.multiplier(&w).unwrap()).unwrap();
    let r = setting.random();
    let mask = setting.encoder.encode(&r).unwrap();
    let blinding = setting.prepare(product.noise());
    let sealed = seal(&product, blinding, &mask).unwrap();
    let share = setting.encoder.decode(&setting.secret.decrypt_sealed(&sealed).unwrap()).unwrap();
    for half in share.chunks(share.len() / 2) {
        assert!(chi_square_of(half.iter().map(|c| *c as f64 / T as f64)) < chi_square_limit(BINS - 1));
    }
}
