//! What a client with every key can and cannot see in a sealed ciphertext.
#![allow(clippy::unwrap_used)]

mod flooding;
mod privacy;

use lanner_primitives::{Prg, Seed};
use lanner_wire::Encode;
use rand_core::Rng;

use super::*;
use crate::{
    EvaluationKeys, Evaluator, LinearCombination, NeededKey, NoiseBound, ParameterSet, Parameters, PublicKey,
    SecretKey, SlotEncoder,
};

struct Setting {
    encoder: SlotEncoder,
    secret: SecretKey,
    public: PublicKey,
    evaluator: Evaluator,
    rng: Prg,
}

impl Setting {
    fn new(t: u64, seed: u8) -> Self {
        Self::of(ParameterSet::B, t, seed)
    }

    fn of(set: ParameterSet, t: u64, seed: u8) -> Self {
        let parameters = set.parameters().unwrap();
        let mut rng = Prg::new(Seed::from_bytes([seed; 16]));
        let secret = SecretKey::generate(&parameters, &mut rng);
        Self {
            encoder: SlotEncoder::new(&parameters, t).unwrap(),
            public: PublicKey::generate(&secret, &mut rng),
            evaluator: Evaluator::new(&parameters),
            secret,
            rng,
        }
    }

    fn parameters(&self) -> &Parameters {
        self.secret.parameters()
    }

    fn random(&mut self) -> Vec<u64> {
        let t = self.encoder.modulus().value();
        (0..self.encoder.slots()).map(|_| self.rng.next_u64() % t).collect()
    }

    fn encrypt(&mut self, slots: &[u64]) -> Ciphertext {
        let message = self.encoder.encode(slots).unwrap();
        self.secret.encrypt(&message, &mut self.rng).unwrap().expand()
    }

    fn prepare(&mut self, noise: NoiseBound) -> Blinding {
        Blinding::prepare(self.encoder.modulus(), &self.public, noise, &mut self.rng).unwrap()
    }

    /// The noise of a product of a fresh encryption and the sum of `terms` such products.
    fn product_noise(&self, terms: usize) -> NoiseBound {
        let t = self.encoder.modulus().value();
        NoiseBound::fresh().multiplied(self.parameters(), t).times(terms)
    }
}

const MODULI: [u64; 5] = [114_689, 1_032_193, 33_538_049, 1_073_692_673, WIDE];
const WIDE: u64 = 137_438_822_401;

/// The set whose layers modulo `t` rotate.
fn rotating(t: u64) -> ParameterSet {
    if t == WIDE { ParameterSet::W } else { ParameterSet::B }
}

#[test]
fn sealed_product_decrypts_to_its_difference_from_the_mask() {
    for t in MODULI {
        let mut setting = Setting::of(rotating(t), t, 20);
        let mut sum = LinearCombination::new(setting.parameters());
        let mut expected = vec![0; setting.encoder.slots()];
        for _ in 0..4 {
            let (x, w) = (setting.random(), setting.random());
            sum.add(&setting.encrypt(&x), &setting.encoder.multiplier(&w).unwrap()).unwrap();
            for ((y, x), w) in expected.iter_mut().zip(&x).zip(&w) {
                *y = ((u128::from(*y) + u128::from(*x) * u128::from(*w)) % u128::from(t)) as u64;
            }
        }
        let r = setting.random();
        let mask = setting.encoder.encode(&r).unwrap();
        let blinding = setting.prepare(setting.product_noise(4));
        let sealed = seal(&sum.finish(), blinding, &mask).unwrap();
        let bytes = sealed.to_bytes();
        assert_eq!(bytes.len(), SealedCiphertext::encoded_len(setting.encoder.modulus()).unwrap());
        let received = SealedCiphertext::from_bytes(setting.encoder.modulus(), &bytes).unwrap();
        let message = setting.secret.decrypt_sealed(&received).unwrap();
        let share = setting.encoder.decode(&message).unwrap();
        let opened: Vec<_> = share.iter().zip(&r).map(|(c, r)| (c + r) % t).collect();
        assert!(opened == expected, "t = {t}");
    }
}

/// The noise of a layer: rotated inputs, a given number of products in a sum.
fn layer_noise(setting: &Setting, terms: usize) -> NoiseBound {
    let rotated = NoiseBound::fresh().switched_key(setting.parameters());
    rotated.multiplied(setting.parameters(), setting.encoder.modulus().value()).times(terms)
}

#[test]
fn every_prime_has_a_set_that_hides_a_layer_and_sends_one_limb() {
    for t in MODULI {
        let setting = Setting::of(rotating(t), t, 21);
        let budget = Budget::new(setting.encoder.modulus(), layer_noise(&setting, 64)).unwrap();
        let flood_limbs = if t == WIDE { 3 } else { 2 };
        assert_eq!((budget.flood_limbs(), budget.wire_limbs()), (flood_limbs, 1), "t = {t}");
        assert!(budget.distance().bits() >= CIPHERTEXT_BITS, "t = {t}: {}", budget.distance().bits());
    }
}

#[test]
fn a_flooding_that_hides_too_little_is_refused() {
    let setting = Setting::new(WIDE, 21);
    let refused = |terms| Budget::new(setting.encoder.modulus(), layer_noise(&setting, terms));
    // The widest flooding there is room for hides to within 2^-53.75: so many bits more are missing in the modulus.
    match refused(1) {
        Err(BfvError::Budget { step: "hiding the function", needed, available }) => {
            assert!((2.2..2.3).contains(&(needed - available)), "{needed} of {available}");
        }
        other => panic!("{other:?}"),
    }
    assert!(refused(64).is_err());
}

#[test]
fn the_flooding_is_as_wide_as_its_distance_says_and_the_message_still_fits() {
    for t in MODULI {
        let setting = Setting::of(rotating(t), t, 22);
        for terms in [1, 64, 4096] {
            let noise = setting.product_noise(terms);
            let Ok(budget) = Budget::new(setting.encoder.modulus(), noise) else { continue };
            let parameters = setting.parameters();
            let switched = noise.plus(NoiseBound::public_key(parameters)).switched_modulus(
                parameters,
                parameters.limbs(),
                budget.flood_limbs(),
            );
            let hidden = switched.deviation() + 1.0;
            let width = f64::from(budget.flood_bits()).exp2();
            let distance = 1.07 * (parameters.degree() as f64).sqrt() * hidden / width;
            assert!((-distance.log2() - budget.distance().bits()).abs() < 1e-9);
            assert!(distance <= 2f64.powi(-56));
            let step = (parameters.log2_modulus(budget.flood_limbs()) - (t as f64).log2() - 1.0).exp2();
            assert!(1.5 * width + switched.infinity(parameters.degree()) < step);
        }
    }
}

#[test]
fn noise_past_the_budget_or_past_the_blinding_is_refused() {
    let mut setting = Setting::new(1_073_692_673, 23);
    let large = setting.product_noise(1 << 40);
    let modulus = setting.encoder.modulus().clone();
    let refused = Blinding::prepare(&modulus, &setting.public, large, &mut setting.rng);
    assert!(matches!(refused.map(drop), Err(BfvError::Budget { step: "hiding the function", .. })));

    let (x, w) = (setting.random(), setting.random());
    let fresh = setting.encrypt(&x);
    let product = setting.evaluator.mul_plain(&fresh, &setting.encoder.multiplier(&w).unwrap()).unwrap();
    let mask = setting.encoder.encode(&x).unwrap();
    let blinding = setting.prepare(NoiseBound::fresh());
    assert!(matches!(seal(&product, blinding, &mask).map(drop), Err(BfvError::Underblinded { .. })));
    let blinding = setting.prepare(product.noise());
    assert!(seal(&product, blinding, &mask).is_ok());
    let blinding = setting.prepare(product.noise());
    let switched = setting.evaluator.mod_switch(&product).unwrap();
    assert!(matches!(seal(&switched, blinding, &mask).map(drop), Err(BfvError::Mismatch { .. })));
}

/// A squared layer and another behind it, at the limbs that are left: as what was computed on all limbs.
#[test]
fn what_has_few_limbs_left_is_sealed_at_those() {
    let t = 2_148_728_833;
    let mut setting = Setting::of(ParameterSet::L, t, 24);
    let modulus = setting.encoder.modulus().clone();
    let keys =
        EvaluationKeys::generate(&setting.secret, &[NeededKey::product().at(4)], &mut setting.rng).unwrap();
    let (x, w, r) = (setting.random(), setting.random(), setting.random());
    let fresh = setting.encrypt(&x);
    let square = setting.evaluator.square_to(&fresh, &modulus, &keys, 4).unwrap();
    let factor = setting.encoder.multiplier(&w).unwrap();
    let product = setting.evaluator.mul_plain(&square, &factor).unwrap();
    let mask = setting.encoder.encode(&r).unwrap();
    let modulo = |x: u128| (x % u128::from(t)) as u64;
    let cube =
        |(x, w): (&u64, &u64)| modulo(u128::from(modulo(u128::from(*x) * u128::from(*x))) * u128::from(*w));
    let expected: Vec<u64> = x.iter().zip(&w).map(cube).collect();
    for limbs in [4, 3] {
        let evaluated = setting.evaluator.mod_switch_to(&product, limbs).unwrap();
        let mut blinding = |limbs| {
            Blinding::prepare_at(&modulus, &setting.public, evaluated.noise(), limbs, &mut setting.rng)
                .unwrap()
        };
        let other = seal(&evaluated, blinding(7), &mask).map(drop);
        assert!(matches!(other, Err(BfvError::Mismatch { .. })), "a blinding of all limbs");
        let blinding = blinding(limbs);
        let budget = blinding.budget();
        assert!(budget.flood_limbs() <= limbs && budget.distance().bits() >= CIPHERTEXT_BITS);
        let bytes = seal(&evaluated, blinding, &mask).unwrap().to_bytes();
        assert_eq!(bytes.len(), SealedCiphertext::encoded_len(&modulus).unwrap());
        let received = SealedCiphertext::from_bytes(&modulus, &bytes).unwrap();
        let share = setting.encoder.decode(&setting.secret.decrypt_sealed(&received).unwrap()).unwrap();
        let opened: Vec<u64> = share.iter().zip(&r).map(|(c, r)| (c + r) % t).collect();
        assert!(opened == expected, "{limbs} limbs");
    }
}

#[test]
fn a_budget_is_that_of_the_limbs_that_are_left() {
    let setting = Setting::of(ParameterSet::L, 2_148_728_833, 25);
    let (modulus, parameters) = (setting.encoder.modulus(), setting.parameters());
    let noise = layer_noise(&setting, 64);
    assert_eq!(Budget::at(modulus, noise, 7), Budget::new(modulus, noise));
    for limbs in 3..=7 {
        let budget = Budget::at(modulus, noise, limbs).unwrap();
        let blinded = noise.plus(NoiseBound::public_key(parameters));
        let switched = blinded.switched_modulus(parameters, limbs, budget.flood_limbs());
        let width = f64::from(budget.flood_bits()).exp2();
        let distance = 1.07 * (parameters.degree() as f64).sqrt() * (switched.deviation() + 1.0) / width;
        assert!((-distance.log2() - budget.distance().bits()).abs() < 1e-9, "{limbs}");
    }
    // The noise of the layer is divided where limbs are dropped for the flooding, and at one limb there is none to drop.
    assert!(matches!(Budget::at(modulus, noise, 1), Err(BfvError::Budget { .. })));
    for limbs in [0, 8] {
        assert_eq!(Budget::at(modulus, noise, limbs), Err(BfvError::Limbs { got: limbs, most: 7 }));
    }
}
