//! The scheme acts on encrypted slots as arithmetic modulo `t` does on clear ones.

use crate::common::{self, SMALL_T, Setting, rotated, set_b, small, swapped};
use lanner_bfv::{
    BfvError, CoefficientEncoder, ExtendedCombination, ExtendedCombinations, Factor, HoistedTerms,
    LinearCombination, Multiplier, PeriodicMultiplier, PlaintextModulus, Product,
};

fn zip(a: &[u64], b: &[u64], operation: impl Fn(u128, u128) -> u128, t: u64) -> Vec<u64> {
    a.iter().zip(b).map(|(x, y)| (operation(u128::from(*x), u128::from(*y)) % u128::from(t)) as u64).collect()
}

#[test]
fn encode_then_decode_is_identity() {
    for t in [114_689, 1_032_193, 1_073_692_673, 137_438_822_401] {
        let mut setting = Setting::new(set_b(), t, 1);
        let slots = setting.random();
        let message = setting.encoder.encode(&slots).unwrap();
        assert_eq!(setting.encoder.decode(&message).unwrap(), slots);
    }
}

#[test]
fn encrypt_then_decrypt_is_identity_at_edge_values_for_any_t_under_one_key() {
    let mut setting = Setting::new(set_b(), 114_689, 2);
    for t in [64, 114_689, 1 << 20, 1_073_692_673, 137_438_822_401, 1 << 41] {
        let encoder = CoefficientEncoder::new(&setting.parameters, t).unwrap();
        let edges = [0, 1, t / 2 - 1, t / 2, t / 2 + 1, t - 1];
        let values: Vec<_> = (0..8192).map(|i| edges[i % edges.len()]).collect();
        let message = encoder.encode(&values).unwrap();
        let ciphertext = setting.secret.encrypt(&message, &mut setting.rng).unwrap().expand();
        let decrypted = setting.secret.decrypt(&ciphertext, encoder.modulus()).unwrap();
        assert_eq!(decrypted.coefficients(), values, "t = {t}");
    }
}

#[test]
fn add_then_decrypt_is_sum() {
    for t in [114_689, 1_073_692_673, 137_438_822_401] {
        let mut setting = Setting::new(set_b(), t, 3);
        let (x, y) = (setting.random(), setting.random());
        let (a, b) = (setting.encrypt(&x), setting.encrypt(&y));
        let message = setting.encoder.encode(&y).unwrap();
        let sum = zip(&x, &y, |x, y| x + y, t);
        let difference = zip(&x, &y, |x, y| x + u128::from(t) - y, t);
        let evaluator = setting.evaluator.clone();
        assert_eq!(setting.decrypt(&evaluator.add(&a, &b).unwrap()), sum);
        assert_eq!(setting.decrypt(&evaluator.sub(&a, &b).unwrap()), difference);
        assert_eq!(setting.decrypt(&evaluator.add_plain(&a, &message).unwrap()), sum);
        assert_eq!(setting.decrypt(&evaluator.sub_plain(&a, &message).unwrap()), difference);
    }
}

#[test]
fn mul_plain_is_product_slot_by_slot() {
    for t in [114_689, 1_073_692_673, 137_438_822_401] {
        let mut setting = Setting::new(set_b(), t, 4);
        let (x, w) = (setting.random(), setting.random());
        let a = setting.encrypt(&x);
        let factor = setting.encoder.multiplier(&w).unwrap();
        let product = setting.evaluator.mul_plain(&a, &factor).unwrap();
        assert_eq!(setting.decrypt(&product), zip(&x, &w, |x, w| x * w, t));
        setting.assert_noise(&product);
    }
}

#[test]
fn every_rotation_rotates_each_row() {
    let mut setting = Setting::new(small(), SMALL_T, 5);
    let slots = setting.random();
    let a = setting.encrypt(&slots);
    let evaluator = setting.evaluator.clone();
    let hoisted = evaluator.hoist(&a).unwrap();
    for steps in 0..1024 {
        let element = setting.evaluator.rotation(steps).unwrap();
        let keys = setting.keys(&[element]);
        let result = hoisted.rotate(steps, &keys).unwrap();
        assert_eq!(setting.decrypt(&result), rotated(&slots, steps), "{steps}");
        setting.assert_noise(&result);
    }
}

#[test]
fn rotations_by_negative_and_large_steps_wrap() {
    let mut setting = Setting::new(set_b(), 1_032_193, 6);
    let slots = setting.random();
    let a = setting.encrypt(&slots);
    let evaluator = setting.evaluator.clone();
    for steps in [-4096, -4095, -1, 0, 1, 7, 2048, 4095, 4096, 5000] {
        let keys = setting.keys(&[evaluator.rotation(steps).unwrap()]);
        let result = evaluator.rotate(&a, steps, &keys).unwrap();
        assert_eq!(setting.decrypt(&result), rotated(&slots, steps), "{steps}");
        setting.assert_noise(&result);
    }
}

#[test]
fn swap_rows_swaps_and_twice_is_identity() {
    let mut setting = Setting::new(set_b(), 1_032_193, 7);
    let slots = setting.random();
    let a = setting.encrypt(&slots);
    let evaluator = setting.evaluator.clone();
    let keys = setting.keys(&[evaluator.row_swap().unwrap()]);
    let once = evaluator.swap_rows(&a, &keys).unwrap();
    assert_eq!(setting.decrypt(&once), swapped(&slots));
    let twice = evaluator.swap_rows(&once, &keys).unwrap();
    assert_eq!(setting.decrypt(&twice), slots);
    setting.assert_noise(&twice);
}

#[test]
fn linear_combination_is_sum_of_products() {
    let t = 1_073_692_673;
    let mut setting = Setting::new(set_b(), t, 8);
    let mut sum = LinearCombination::new(&setting.parameters);
    let mut expected = vec![0; 8192];
    let (mut inputs, mut factors) = (Vec::new(), Vec::new());
    for k in 0..5 {
        let (x, w) = (setting.random(), setting.random());
        let factor = setting.encoder.compact_multiplier(&w).unwrap();
        factors.push(if k % 2 == 0 { factor.prepare() } else { factor });
        inputs.push(setting.encrypt(&x));
        sum.add(&inputs[k], &factors[k]).unwrap();
        expected = zip(&expected, &zip(&x, &w, |x, w| x * w, t), |x, y| x + y, t);
    }
    let at_once = LinearCombination::of(&setting.parameters, &inputs, &factors).unwrap();
    for result in [sum.finish(), at_once] {
        assert_eq!(setting.decrypt(&result), expected);
        setting.assert_noise(&result);
    }
    let few = LinearCombination::of(&setting.parameters, &inputs, &factors[1..]);
    assert_eq!(few.err(), Some(BfvError::Length { expected: 5, got: 4 }));
}

#[test]
fn extended_combination_is_sum_of_rotated_products() {
    let t = 1_073_692_673;
    let mut setting = Setting::new(set_b(), t, 9);
    let evaluator = setting.evaluator.clone();
    let x = setting.random();
    let fresh = setting.encrypt(&x);
    let hoisted = evaluator.hoist(&fresh).unwrap();
    let mut sum = ExtendedCombination::new(&setting.parameters).unwrap();
    let mut expected = vec![0; 8192];
    for steps in [0, 1, 2, 100, 4095] {
        let element = evaluator.rotation(steps).unwrap();
        let keys = setting.keys(&[element]);
        let w = setting.random();
        let factor = setting.encoder.multiplier(&w).unwrap();
        sum.add(&hoisted.apply_extended(element, &keys).unwrap(), &factor).unwrap();
        expected = zip(&expected, &zip(&rotated(&x, steps), &w, |x, w| x * w, t), |x, y| x + y, t);
    }
    let result = sum.finish();
    assert_eq!(setting.decrypt(&result), expected);
    setting.assert_noise(&result);
}

#[test]
fn extended_combinations_of_many_rows_equal_those_of_one() {
    let t = 1_032_193;
    let mut setting = Setting::new(set_b(), t, 15);
    let evaluator = setting.evaluator.clone();
    let slots = setting.random();
    let fresh = setting.encrypt(&slots);
    let hoisted = evaluator.hoist(&fresh).unwrap();
    let (mut rotated, mut factors) = (Vec::new(), Vec::new());
    for steps in 0..5 {
        let element = evaluator.rotation(steps).unwrap();
        let keys = setting.keys(&[element]);
        rotated.push(hoisted.apply_extended(element, &keys).unwrap());
        for _ in 0..3 {
            let weights = setting.random();
            factors.push(setting.encoder.multiplier(&weights).unwrap());
        }
    }
    let mut many = ExtendedCombinations::new(&setting.parameters, 3).unwrap();
    many.add(&rotated[..2], &factors[..6]).unwrap();
    many.add(&rotated[2..], &factors[6..]).unwrap();
    assert!(matches!(many.add(&rotated, &factors[1..]), Err(BfvError::Length { expected: 15, got: 14 })));
    for (j, together) in many.finish().into_iter().enumerate() {
        let mut one = ExtendedCombination::new(&setting.parameters).unwrap();
        for (ciphertext, factors) in rotated.iter().zip(factors.chunks(3)) {
            one.add(ciphertext, &factors[j]).unwrap();
        }
        let alone = one.finish();
        assert!(setting.decrypt(&together) == setting.decrypt(&alone));
        assert_eq!(together.noise(), alone.noise());
        setting.assert_noise(&together);
    }
}

#[test]
fn mod_switch_keeps_the_message_and_divides_the_noise() {
    let mut setting = Setting::new(set_b(), 1_032_193, 10);
    let (x, w) = (setting.random(), setting.random());
    let factor = setting.encoder.multiplier(&w).unwrap();
    let fresh = setting.encrypt(&x);
    let product = setting.evaluator.mul_plain(&fresh, &factor).unwrap();
    let before = setting.secret.noise_bits(&product, setting.encoder.modulus()).unwrap();
    let once = setting.evaluator.mod_switch(&product).unwrap();
    let after = setting.secret.noise_bits(&once, setting.encoder.modulus()).unwrap();
    assert!(before > 20.0 && after < 10.0, "2^{before} to 2^{after}");
    setting.assert_noise(&once);
    let twice = setting.evaluator.mod_switch(&once).unwrap();
    let expected = zip(&x, &w, |x, w| x * w, 1_032_193);
    assert_eq!(setting.decrypt(&once), expected);
    assert_eq!(setting.decrypt(&twice), expected);
    assert!(matches!(setting.evaluator.mod_switch(&twice), Err(BfvError::LastLimb)));
}

#[test]
fn coefficient_products_are_negacyclic_convolutions_modulo_a_power_of_two() {
    let (setting, t) = (Setting::new(set_b(), 114_689, 11), 1_u64 << 37);
    let mut rng = common::rng(12);
    let encoder = CoefficientEncoder::new(&setting.parameters, t).unwrap();
    let (x, w) = (common::values(8192, t, &mut rng), common::values(16, 1 << 12, &mut rng));
    let message = encoder.encode(&x).unwrap();
    let a = setting.secret.encrypt(&message, &mut rng).unwrap().expand();
    let product = setting.evaluator.mul_plain(&a, &encoder.multiplier(&w).unwrap()).unwrap();
    let mut expected = vec![0_u64; 8192];
    for (i, w) in w.iter().enumerate() {
        for (j, x) in x.iter().enumerate() {
            let term = x.wrapping_mul(*w);
            let place = &mut expected[(i + j) % 8192];
            *place = if i + j < 8192 { place.wrapping_add(term) } else { place.wrapping_sub(term) };
        }
    }
    for value in &mut expected {
        *value %= t;
    }
    let decrypted = setting.secret.decrypt(&product, encoder.modulus()).unwrap();
    assert_eq!(decrypted.coefficients(), expected);
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let mut setting = Setting::new(set_b(), 114_689, 13);
    let slots = setting.random();
    let a = setting.encrypt(&slots);
    let evaluator = setting.evaluator.clone();
    let switched = evaluator.mod_switch(&a).unwrap();
    let mismatch = |result: Result<_, BfvError>| matches!(result.map(drop), Err(BfvError::Mismatch { .. }));
    assert!(mismatch(evaluator.add(&a, &switched)));
    assert!(mismatch(evaluator.sub(&a, &switched)));
    let keys = setting.keys(&[evaluator.rotation(1).unwrap()]);
    assert!(matches!(evaluator.rotate(&a, 2, &keys), Err(BfvError::MissingKey { .. })));

    let mut other = Setting::new(small(), SMALL_T, 14);
    let slots = other.random();
    let b = other.encrypt(&slots);
    let message = other.encoder.encode(&slots).unwrap();
    let factor = other.encoder.multiplier(&slots).unwrap();
    assert!(mismatch(evaluator.add(&a, &b)));
    assert!(mismatch(evaluator.add_plain(&a, &message)));
    assert!(mismatch(evaluator.mul_plain(&a, &factor)));
    assert!(mismatch(evaluator.mod_switch(&b)));
    assert!(evaluator.rotate(&b, 1, &keys).is_err());
    assert!(setting.secret.decrypt(&b, setting.encoder.modulus()).is_err());
    assert!(setting.secret.encrypt(&message, &mut setting.rng).is_err());
    let wrong = PlaintextModulus::new(&setting.parameters, 114_691).unwrap();
    let plaintext = setting.secret.decrypt(&a, &wrong).unwrap();
    assert!(setting.encoder.decode(&plaintext).is_err());
}

#[test]
fn constant_multiplies_every_slot_with_little_noise() {
    let mut setting = Setting::new(set_b(), 1_032_193, 41);
    let slots = setting.random();
    let fresh = setting.encrypt(&slots);
    for value in [0, 1, -1, 1000, -516_096] {
        let factor = Multiplier::constant(&setting.parameters, value, 516_096).unwrap();
        let product = setting.evaluator.mul_plain(&fresh, &factor).unwrap();
        let t = setting.t() as i64;
        let expected: Vec<u64> = slots.iter().map(|x| (*x as i64 * value).rem_euclid(t) as u64).collect();
        assert!(setting.decrypt(&product) == expected, "{value}");
        setting.assert_noise(&product);
        assert!(product.noise().deviation() <= fresh.noise().deviation() * 516_096.0);
    }
    assert!(Multiplier::constant(&setting.parameters, -9, 8).is_err());
}

#[test]
fn products_go_to_their_own_sums() {
    let mut setting = Setting::new(set_b(), 1_032_193, 42);
    let t = setting.t();
    let element = setting.evaluator.rotation(1).unwrap();
    let keys = setting.keys(&[element]);
    let slots = setting.random();
    let fresh = setting.encrypt(&slots);
    let hoisted = setting.evaluator.hoist(&fresh).unwrap();
    let turned = hoisted.apply_extended(element, &keys).unwrap();
    let still = hoisted.apply_extended(setting.evaluator.rotation(0).unwrap(), &keys).unwrap();
    let weights: Vec<Vec<u64>> = (0..3).map(|_| setting.random()).collect();
    let factors: Vec<_> = weights.iter().map(|values| setting.encoder.multiplier(values).unwrap()).collect();
    let product =
        |operand, row, factor: usize| Product { operand, row, factor: Factor::from(&factors[factor]) };
    let mut sums = ExtendedCombinations::new(&setting.parameters, 3).unwrap();
    sums.add_products(&[still, turned], &[product(0, 0, 0), product(1, 0, 1), product(1, 2, 2)]).unwrap();
    assert!(sums.add_products(&[], &[product(0, 0, 0)]).is_err());
    let mut sums = sums.into_sums();
    // What is added before the reduction comes out of it.
    let last = sums.pop().unwrap();
    sums[1].add_assign(&last).unwrap();
    let next = rotated(&slots, 1);
    let times = |x: &[u64], w: &[u64]| -> Vec<u64> { x.iter().zip(w).map(|(x, w)| x * w % t).collect() };
    let plus = |a: Vec<u64>, b: Vec<u64>| -> Vec<u64> { a.iter().zip(b).map(|(a, b)| (a + b) % t).collect() };
    let expected = [plus(times(&slots, &weights[0]), times(&next, &weights[1])), times(&next, &weights[2])];
    for (sum, expected) in sums.into_iter().zip(expected) {
        let reduced = sum.reduce(&setting.parameters);
        assert!(setting.decrypt(&reduced) == expected);
        setting.assert_noise(&reduced);
    }
}

#[test]
fn factors_of_repeating_slots_are_those_of_each_slot_written_out() {
    for (t, limbs) in [(114_689, 1), (1_032_193, 2), (137_438_822_401, 3)] {
        let mut setting = Setting::new(set_b(), t, 43);
        let element = setting.evaluator.rotation(3).unwrap();
        let keys = setting.keys(&[element]);
        let slots = setting.random();
        let fresh = setting.encrypt(&slots);
        let fresh = setting.evaluator.mod_switch_to(&fresh, limbs).unwrap();
        let turned = [setting.evaluator.hoist(&fresh).unwrap().apply_extended(element, &keys).unwrap()];
        for period in [4, 64, 512] {
            let values: Vec<u64> =
                [0, t / 2, t / 2 + 1, t - 1].into_iter().chain(slots.iter().copied()).collect();
            let values = &values[..2 * period];
            let written: Vec<u64> = values.chunks(period).flat_map(|row| row.repeat(4096 / period)).collect();
            let whole = setting.encoder.compact_multiplier(&written).unwrap();
            let periodic = setting.encoder.periodic(period).unwrap().multiplier(values, limbs).unwrap();
            let sum = |factor| {
                let mut sum = ExtendedCombinations::at(&setting.parameters, 1, limbs).unwrap();
                sum.add_products(&turned, &[Product { operand: 0, row: 0, factor }]).unwrap();
                sum.finish().remove(0)
            };
            let (expected, got) = (sum(Factor::from(&whole)), sum(Factor::Periodic(&periodic)));
            assert_eq!(setting.decrypt(&got), setting.decrypt(&expected));
            setting.assert_noise(&got);
            assert!(got.noise().deviation() < expected.noise().deviation());
            assert_eq!(PeriodicMultiplier::bytes(period, limbs), 2 * period * (limbs + 1) * 8);
        }
    }
}

#[test]
fn factors_of_repeating_slots_are_refused_where_they_do_not_fit() {
    let mut setting = Setting::new(set_b(), 1_032_193, 44);
    for period in [0, 1, 2, 3, 1024, 4096] {
        assert!(setting.encoder.periodic(period).is_err(), "{period}");
    }
    let encoder = setting.encoder.periodic(64).unwrap();
    assert!(matches!(encoder.multiplier(&[0; 64], 3), Err(BfvError::Length { expected: 128, got: 64 })));
    assert!(matches!(encoder.multiplier(&[setting.t(); 128], 3), Err(BfvError::Range { index: 0, .. })));
    assert!(encoder.multiplier(&[1; 128], 4).is_err());
    // Sums of more limbs than a factor has, and factors of several periods in one sum.
    let slots = setting.random();
    let fresh = setting.encrypt(&slots);
    let keys = setting.keys(&[]);
    let hoisted = setting.evaluator.hoist(&fresh).unwrap();
    let still = [hoisted.apply_extended(setting.evaluator.rotation(0).unwrap(), &keys).unwrap()];
    let few = encoder.multiplier(&[1; 128], 2).unwrap();
    let many = encoder.multiplier(&[1; 128], 3).unwrap();
    let other = setting.encoder.periodic(32).unwrap().multiplier(&[1; 64], 3).unwrap();
    let mut sums = ExtendedCombinations::new(&setting.parameters, 1).unwrap();
    let product = |factor| Product { operand: 0, row: 0, factor: Factor::Periodic(factor) };
    assert!(matches!(sums.add_products(&still, &[product(&few)]), Err(BfvError::Mismatch { .. })));
    assert!(matches!(
        sums.add_products(&still, &[product(&many), product(&other)]),
        Err(BfvError::Mismatch { .. })
    ));
    sums.add_products(&still, &[product(&many)]).unwrap();
}

/// Sums of products of rotations equal those of each rotation made by itself, modulus by modulus and for several inputs at a time.
#[test]
fn sums_of_rotations_equal_those_of_each_by_itself() {
    let mut setting = Setting::new(set_b(), 1_032_193, 45);
    let elements = [0, 1, 5].map(|step| setting.evaluator.rotation(step).unwrap());
    let keys = setting.keys(&elements[1..]);
    for (limbs, rows) in [(3, 1), (2, 5)] {
        let inputs = [(); 2].map(|()| {
            let fresh = [(); 2].map(|()| {
                let slots = setting.random();
                setting.encrypt(&slots)
            });
            fresh.map(|fresh| setting.evaluator.mod_switch_to(&fresh, limbs).unwrap())
        });
        let rotations = [(0, elements[0]), (1, elements[1]), (0, elements[2]), (1, elements[2])];
        let whole: Vec<_> = (0..rows)
            .map(|_| {
                let slots = setting.random();
                setting.encoder.compact_multiplier(&slots).unwrap()
            })
            .collect();
        let periodic = setting.encoder.periodic(64).unwrap();
        let repeated: Vec<_> =
            (0..rows as u64).map(|k| periodic.multiplier(&[k + 1; 128], limbs).unwrap()).collect();
        // Each row takes some of the rotations, of factors of one kind; the last rotation is in none.
        let product = |operand, row: usize| {
            let factor = if row.is_multiple_of(2) {
                Factor::from(&whole[row])
            } else {
                Factor::Periodic(&repeated[row])
            };
            Product { operand, row, factor }
        };
        let products: Vec<_> = (0..rows).flat_map(|row| [product(row % 3, row), product(1, row)]).collect();
        let terms = inputs.each_ref().map(|input| HoistedTerms { ciphertexts: input, products: &products });
        let sums = setting.evaluator.sum_hoisted(&terms, &rotations, rows, &keys).unwrap();
        for (input, sums) in inputs.iter().zip(sums) {
            let rotated = rotations.map(|(at, element)| {
                setting.evaluator.hoist(&input[at]).unwrap().apply_extended(element, &keys).unwrap()
            });
            let mut expected = ExtendedCombinations::at(&setting.parameters, rows, limbs).unwrap();
            expected.add_products(&rotated, &products).unwrap();
            let expected = expected.finish();
            assert_eq!(sums.len(), rows);
            for (sum, expected) in sums.iter().zip(&expected) {
                assert_eq!(setting.decrypt(sum), setting.decrypt(expected));
                assert_eq!(sum.noise().bits(), expected.noise().bits());
                setting.assert_noise(sum);
            }
        }
        let sum = |terms: &[HoistedTerms<'_>], rotations: &[_]| {
            setting.evaluator.sum_hoisted(terms, rotations, rows, &keys).err()
        };
        let none = HoistedTerms { ciphertexts: &[], products: &[] };
        assert!(matches!(sum(&[], &rotations), Some(BfvError::Length { .. })));
        assert!(matches!(sum(&[none], &[]), Some(BfvError::Length { .. })));
        assert!(matches!(sum(&terms, &[(2, elements[1])]), Some(BfvError::Length { .. })));
        assert!(matches!(sum(&terms, &rotations[..1]), Some(BfvError::Length { .. })));
        let unknown = setting.evaluator.rotation(2).unwrap();
        assert!(matches!(sum(&terms, &[(0, unknown)]), Some(BfvError::MissingKey { .. })));
        let fewer = inputs[0].each_ref().map(|input| setting.evaluator.mod_switch_to(input, 1).unwrap());
        let fewer = HoistedTerms { ciphertexts: &fewer, products: &[] };
        let [first, _] = terms;
        assert!(matches!(sum(&[first, fewer], &rotations), Some(BfvError::Mismatch { .. })));
    }
}
