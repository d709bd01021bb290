//! Every operation acts on ciphertexts of any number of limbs as on those of all, with the same keys.

use crate::common::{Setting, rotated, set_b, swapped};
use lanner_bfv::{
    BfvError, Ciphertext, EvaluationKeys, ExtendedCombination, ExtendedCombinations, LinearCombination,
    NeededKey, NoiseBound, ParameterSet,
};
use lanner_wire::Encode;

const T: u64 = 1_032_193;

/// The ciphertext with each number of limbs, from all down to one.
fn levels(setting: &Setting, fresh: &Ciphertext) -> Vec<Ciphertext> {
    let down = |ciphertext: &Ciphertext| setting.evaluator.mod_switch(ciphertext).ok();
    std::iter::successors(Some(fresh.clone()), down).collect()
}

#[test]
fn rotations_rotate_at_every_number_of_limbs() {
    for (parameters, t) in [
        (set_b(), T),
        (ParameterSet::W.parameters().unwrap(), T),
        (ParameterSet::L.parameters().unwrap(), 786_433),
    ] {
        let mut setting = Setting::new(parameters, t, 60);
        let evaluator = setting.evaluator.clone();
        let keys = setting.keys(&[evaluator.rotation(5).unwrap(), evaluator.row_swap().unwrap()]);
        let slots = setting.random();
        let fresh = setting.encrypt(&slots);
        for ciphertext in levels(&setting, &fresh) {
            let limbs = ciphertext.limbs();
            let hoisted = evaluator.hoist(&ciphertext).unwrap();
            let turned = evaluator.rotate(&ciphertext, 5, &keys).unwrap();
            assert_eq!(turned.limbs(), limbs);
            assert!(setting.decrypt(&turned) == rotated(&slots, 5), "{limbs}");
            setting.assert_noise(&turned);
            let expected = ciphertext.noise().switched_key_at(&setting.parameters, limbs);
            assert_eq!(turned.noise(), expected);
            assert!(expected <= ciphertext.noise().switched_key(&setting.parameters));
            assert!(setting.decrypt(&hoisted.rotate(5, &keys).unwrap()) == rotated(&slots, 5), "{limbs}");
            let rows = evaluator.swap_rows(&ciphertext, &keys).unwrap();
            assert!(setting.decrypt(&rows) == swapped(&slots), "{limbs}");
            let element = evaluator.rotation(5).unwrap();
            let extended = hoisted.apply_extended(element, &keys).unwrap().reduce(&setting.parameters);
            assert!(setting.decrypt(&extended) == rotated(&slots, 5), "{limbs}");
            setting.assert_noise(&extended);
        }
    }
}

#[test]
fn sums_of_products_are_sums_at_every_number_of_limbs() {
    let mut setting = Setting::new(set_b(), T, 61);
    let evaluator = setting.evaluator.clone();
    let element = evaluator.rotation(3).unwrap();
    let keys = setting.keys(&[element]);
    let (slots, weights, others) = (setting.random(), setting.random(), setting.random());
    // Of one column prepared, of the other not.
    let prepared = setting.encoder.multiplier(&weights).unwrap();
    let compact = setting.encoder.compact_multiplier(&others).unwrap();
    let factors = [prepared, compact];
    let product = |x: &[u64], w: &[u64]| -> Vec<u64> { x.iter().zip(w).map(|(x, w)| x * w % T).collect() };
    let next = rotated(&slots, 3);
    let (straight, turned) = (product(&slots, &weights), product(&next, &others));
    let both: Vec<u64> = straight.iter().zip(&turned).map(|(x, y)| (x + y) % T).collect();
    let fresh = setting.encrypt(&slots);
    for ciphertext in levels(&setting, &fresh) {
        let limbs = ciphertext.limbs();
        let rotation = evaluator.rotate(&ciphertext, 3, &keys).unwrap();
        let mut sum = LinearCombination::at(&setting.parameters, limbs).unwrap();
        sum.add(&ciphertext, &factors[0]).unwrap();
        sum.add(&rotation, &factors[1]).unwrap();
        let pair = [ciphertext.clone(), rotation];
        let at_once = LinearCombination::of(&setting.parameters, &pair, &factors).unwrap();

        let hoisted = evaluator.hoist(&ciphertext).unwrap();
        let still = hoisted.apply_extended(evaluator.rotation(0).unwrap(), &keys).unwrap();
        let moved = hoisted.apply_extended(element, &keys).unwrap();
        let mut extended = ExtendedCombination::at(&setting.parameters, limbs).unwrap();
        extended.add(&still, &factors[0]).unwrap();
        extended.add(&moved, &factors[1]).unwrap();
        let mut rows = ExtendedCombinations::at(&setting.parameters, 1, limbs).unwrap();
        rows.add(&[still, moved], &factors).unwrap();
        let results = [sum.finish(), at_once, extended.finish(), rows.finish().pop().unwrap()];
        for (way, result) in results.iter().enumerate() {
            assert_eq!(result.limbs(), limbs);
            // One limb has no room for the product's noise.
            if limbs > 1 {
                assert!(setting.decrypt(result) == both, "way {way} at {limbs} limbs");
                setting.assert_noise(result);
            }
        }
    }
}

#[test]
fn operands_of_other_numbers_of_limbs_are_refused() {
    let mut setting = Setting::new(set_b(), T, 62);
    let evaluator = setting.evaluator.clone();
    let element = evaluator.rotation(1).unwrap();
    let keys = setting.keys(&[element]);
    let slots = setting.random();
    let fresh = setting.encrypt(&slots);
    let lower = evaluator.mod_switch(&fresh).unwrap();
    let factor = setting.encoder.multiplier(&slots).unwrap();
    let parameters = &setting.parameters;
    for limbs in [0, 4, usize::MAX] {
        let refused = Some(BfvError::Limbs { got: limbs, most: 3 });
        assert_eq!(LinearCombination::at(parameters, limbs).err(), refused);
        assert_eq!(ExtendedCombination::at(parameters, limbs).err(), refused);
        assert_eq!(ExtendedCombinations::at(parameters, 1, limbs).err(), refused);
    }
    let mismatch = |result: Result<_, BfvError>| matches!(result.map(drop), Err(BfvError::Mismatch { .. }));
    let mut sum = LinearCombination::at(parameters, 2).unwrap();
    assert!(mismatch(sum.add(&fresh, &factor)));
    assert!(sum.add(&lower, &factor).is_ok());
    let of = |pair: &[Ciphertext]| LinearCombination::of(parameters, pair, &[factor.clone(), factor.clone()]);
    assert!(mismatch(of(&[fresh.clone(), lower.clone()]).map(drop)));
    let extended = |ciphertext| evaluator.hoist(ciphertext).unwrap().apply_extended(element, &keys).unwrap();
    let mut sum = ExtendedCombination::at(parameters, 2).unwrap();
    assert!(mismatch(sum.add(&extended(&fresh), &factor)));
    assert!(sum.add(&extended(&lower), &factor).is_ok());
    let mut sums = ExtendedCombinations::new(parameters, 1).unwrap();
    assert!(mismatch(sums.add(&[extended(&lower)], std::slice::from_ref(&factor))));
    assert!(mismatch(extended(&fresh).add_assign(&extended(&lower))));
}

#[test]
fn fewer_limbs_are_fewer_digits_and_less_noise() {
    let parameters = ParameterSet::L.parameters().unwrap();
    let noise = |limbs| NoiseBound::NONE.switched_key_extended_at(&parameters, limbs).deviation();
    assert!((noise(7) / noise(1) - 7_f64.sqrt()).abs() < 1e-3);
    assert!((noise(4) / noise(1) - 2.0).abs() < 1e-3);
}

#[test]
fn keys_for_few_limbs_are_small_and_refuse_more() {
    let mut setting = Setting::new(ParameterSet::L.parameters().unwrap(), 786_433, 63);
    let evaluator = setting.evaluator.clone();
    let elements = [1, 2, 3].map(|steps| evaluator.rotation(steps).unwrap());
    let needed = [
        NeededKey::automorphism(elements[0]).at(3),
        NeededKey::automorphism(elements[1]).at(1),
        NeededKey::product().at(2),
        NeededKey::automorphism(elements[1]).at(2),
        NeededKey::automorphism(evaluator.rotation(0).unwrap()),
    ];
    let parameters = setting.parameters.clone();
    let keys = EvaluationKeys::generate(&setting.secret, &needed, &mut setting.rng).unwrap();
    assert_eq!(keys.len(), 3);
    let bytes = keys.to_bytes();
    // Digits times limbs, the special one among them, of 50 bits.
    let limbs = 3 * 4 + 2 * 3 + 2 * 3;
    assert_eq!(bytes.len(), 16 + limbs * 16384 * 50 / 8);
    assert_eq!(bytes.len(), EvaluationKeys::encoded_len(&parameters, &needed).unwrap());
    assert_eq!(EvaluationKeys::kept_bytes(&parameters, &needed).unwrap(), 2 * limbs * 16384 * 8);
    let keys = EvaluationKeys::from_bytes(&parameters, &needed, &bytes).unwrap();
    assert!(keys.to_bytes() == bytes);
    assert!(EvaluationKeys::from_bytes(&parameters, &needed[..2], &bytes).is_err());

    let slots = setting.random();
    let fresh = setting.encrypt(&slots);
    for ciphertext in levels(&setting, &fresh) {
        let limbs = ciphertext.limbs();
        for (steps, most) in [(1, 3), (2, 2)] {
            let turned = evaluator.rotate(&ciphertext, steps, &keys);
            if limbs <= most {
                assert!(setting.decrypt(&turned.unwrap()) == rotated(&slots, steps), "{steps} at {limbs}");
            } else {
                assert_eq!(turned.err(), Some(BfvError::Limbs { got: limbs, most }));
            }
        }
        let missing = evaluator.rotate(&ciphertext, 3, &keys).err();
        assert_eq!(missing, Some(BfvError::MissingKey { element: elements[2].exponent() }));
    }
    for limbs in [0, 8] {
        let refused = EvaluationKeys::encoded_len(&parameters, &[NeededKey::product().at(limbs)]);
        assert_eq!(refused, Err(BfvError::Limbs { got: limbs, most: 7 }));
    }
    let without = ParameterSet::A2.parameters().unwrap();
    let refused = EvaluationKeys::encoded_len(&without, &[NeededKey::product()]);
    assert_eq!(refused, Err(BfvError::NoSpecialModulus));
}
