//! Halves against the undivided way, with the same randomness.
#![allow(clippy::unwrap_used)]

use lanner_primitives::{Prg, Seed};
use lanner_ring::GaloisElement;
use lanner_wire::Encode;
use rand_core::Rng;

use super::*;
use crate::function_privacy::{SealedC0, SealedC1, Sealing, half_len};
use crate::{
    BfvError, Blinding, Ciphertext, EvaluationKeys, Evaluator, ExtendedCombinations, Multiplier, NoiseBound,
    ParameterSet, PublicKey, SecretKey, SlotEncoder, seal,
};

const T: u64 = 1_073_692_673;

fn rng(seed: u8) -> Prg {
    Prg::new(Seed::from_bytes([seed; 16]))
}

struct Setting {
    encoder: SlotEncoder,
    secret: SecretKey,
    public: PublicKey,
    keys: EvaluationKeys,
    elements: [GaloisElement; 3],
    factors: Vec<Multiplier>,
}

impl Setting {
    fn new() -> Self {
        let parameters = ParameterSet::B.parameters().unwrap();
        let secret = SecretKey::generate(&parameters, &mut rng(1));
        let n = parameters.degree();
        let rotation = |steps| GaloisElement::rotation(steps, n).unwrap();
        let elements = [rotation(0), rotation(5), GaloisElement::row_swap(n).unwrap()];
        let encoder = SlotEncoder::new(&parameters, T).unwrap();
        let factor = |seed| encoder.multiplier(&slots(seed)).unwrap();
        Self {
            factors: (10..16).map(factor).collect(),
            public: PublicKey::generate(&secret, &mut rng(2)),
            keys: EvaluationKeys::generate(&secret, &elements, &mut rng(3)).unwrap(),
            encoder,
            secret,
            elements,
        }
    }

    /// Two sums of three rotations; the second is rotated and added to the first.
    fn evaluate(&self, ciphertext: &Ciphertext) -> Ciphertext {
        let evaluator = Evaluator::new(self.secret.parameters());
        let hoisted = evaluator.hoist(ciphertext).unwrap();
        let rotated = self.elements.map(|element| hoisted.apply_extended(element, &self.keys).unwrap());
        let mut sums = ExtendedCombinations::new(self.secret.parameters(), 2).unwrap();
        sums.add(&rotated, &self.factors).unwrap();
        let sums = sums.finish();
        evaluator.add(&sums[0], &evaluator.apply(&sums[1], self.elements[1], &self.keys).unwrap()).unwrap()
    }

    /// The same on first halves.
    fn evaluate_first(&self, half: &C0) -> C0 {
        let permutations = Permutations::new(self.secret.parameters(), &self.elements).unwrap();
        let rotated = self.elements.map(|element| half.apply(element, &permutations).unwrap());
        let mut sums = C0Combinations::new(self.secret.parameters(), 2);
        sums.add(&rotated, &self.factors).unwrap();
        let [mut sum, second] = <[_; 2]>::try_from(sums.finish()).ok().unwrap();
        sum.add_assign(&second.apply(self.elements[1], &permutations).unwrap()).unwrap();
        sum
    }

    fn blinding(&self, noise: NoiseBound) -> Blinding {
        Blinding::prepare(self.encoder.modulus(), &self.public, noise, &mut rng(5)).unwrap()
    }
}

fn slots(seed: u8) -> Vec<u64> {
    let mut rng = rng(seed);
    (0..8192).map(|_| rng.next_u64() % T).collect()
}

#[test]
fn halves_are_the_undivided_messages_to_the_last_bit() {
    let setting = Setting::new();
    let parameters = setting.secret.parameters();
    let encode = |seed| setting.encoder.encode(&slots(seed)).unwrap();
    let (message, added, mask) = (encode(20), encode(21), encode(22));

    // Undivided.
    let uploaded = setting.secret.encrypt(&message, &mut rng(4)).unwrap();
    let sum = Evaluator::new(parameters).add_plain(&uploaded.expand(), &added).unwrap();
    let evaluated = setting.evaluate(&sum);
    let sealed = seal(&evaluated, setting.blinding(evaluated.noise()), &mask).unwrap();

    // In halves.
    let (second, prepared) = setting.secret.prepare_encryption(&mut rng(4));
    let second = C1::from_bytes(&second.to_bytes()).unwrap();
    let ahead = setting.evaluate(&second.expand(parameters));
    let (sent, sealing) = Sealing::new(&ahead, setting.blinding(evaluated.noise()), &mask).unwrap();
    let sent = SealedC1::from_bytes(setting.encoder.modulus(), &sent.to_bytes()).unwrap();
    let first = prepared.encrypt(&message).unwrap();
    assert_eq!(first.to_bytes().len(), C0::encoded_len(parameters));
    let mut first = C0::from_bytes(parameters, &first.to_bytes()).unwrap();
    first.add_plain(&added).unwrap();
    let answer = sealing.seal(&setting.evaluate_first(&first)).unwrap();
    let answer = SealedC0::from_bytes(setting.encoder.modulus(), &answer.to_bytes()).unwrap();
    assert_eq!(half_len(setting.encoder.modulus()).unwrap(), answer.to_bytes().len());

    assert!(sealed.to_bytes() == [answer.to_bytes(), sent.to_bytes()].concat());
    let whole = setting.secret.decrypt_sealed(&sealed).unwrap();
    let divided = setting.secret.prepare_decryption(sent).unwrap().decrypt(&answer).unwrap();
    assert!(whole.coefficients() == divided.coefficients());
}

#[test]
fn noise_of_c0_counts() {
    let setting = Setting::new();
    let (second, prepared) = setting.secret.prepare_encryption(&mut rng(4));
    let ahead = second.expand(setting.secret.parameters());
    let mask = setting.encoder.encode(&slots(1)).unwrap();
    let (_, sealing) = Sealing::new(&ahead, setting.blinding(ahead.noise()), &mask).unwrap();
    let mut first = prepared.encrypt(&mask).unwrap();
    first.add_plain(&mask).unwrap();
    assert!(matches!(sealing.seal(&first), Err(BfvError::Underblinded { .. })));
}

#[test]
fn malformed_halves_are_refused() {
    let setting = Setting::new();
    let parameters = setting.secret.parameters();
    assert!(C1::from_bytes(&[0; 15]).is_err() && C1::from_bytes(&[0; 17]).is_err());
    let bytes = vec![0xff; C0::encoded_len(parameters)];
    assert!(C0::from_bytes(parameters, &bytes).is_err(), "values above the modulus");
    assert!(C0::from_bytes(parameters, &bytes[1..]).is_err());
    let bytes = vec![0xff; half_len(setting.encoder.modulus()).unwrap()];
    assert!(SealedC0::from_bytes(setting.encoder.modulus(), &bytes).is_err());
    assert!(SealedC1::from_bytes(setting.encoder.modulus(), &bytes[1..]).is_err());
}
