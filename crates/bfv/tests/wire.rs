//! Every wire form has its exact length, comes back as it was, and nothing else is accepted.

use crate::common::{SMALL_T, Setting, set_b, small};
use lanner_bfv::{
    BfvError, Blinding, CoefficientEncoder, EvaluationKeys, GaloisElement, NeededKey, NoiseBound,
    ParameterSet, Parameters, PlaintextModulus, PublicKey, SealedCiphertext, SecretKey, SeededCiphertext,
    seal,
};
use lanner_wire::{Encode, Writer};
use proptest::prelude::*;

/// Decodes and encodes again.
type Recode<'a> = Box<dyn Fn(&[u8]) -> Result<Vec<u8>, BfvError> + 'a>;

/// Each message in turn: its name, its bytes, its predicted length, its decoder.
fn messages<'a>(
    setting: &mut Setting,
    parameters: &'a Parameters,
    modulus: &'a PlaintextModulus,
) -> Vec<(&'static str, Vec<u8>, usize, Recode<'a>)> {
    let slots = setting.random();
    let message = setting.encoder.encode(&slots).unwrap();
    let upload = setting.secret.encrypt(&message, &mut setting.rng).unwrap();
    let public = PublicKey::generate(&setting.secret, &mut setting.rng);
    let elements = [1, 3, -1].map(|steps| NeededKey::from(setting.evaluator.rotation(steps).unwrap()));
    let needed = [&elements[..], &[NeededKey::product()]].concat();
    let keys = EvaluationKeys::generate(&setting.secret, &needed, &mut setting.rng).unwrap();
    let keys_len = EvaluationKeys::encoded_len(parameters, &needed).unwrap();
    vec![
        (
            "seeded ciphertext",
            upload.to_bytes(),
            SeededCiphertext::encoded_len(parameters),
            Box::new(|bytes| Ok(SeededCiphertext::from_bytes(parameters, bytes)?.to_bytes())),
        ),
        (
            "public key",
            public.to_bytes(),
            PublicKey::encoded_len(parameters),
            Box::new(|bytes| Ok(PublicKey::from_bytes(parameters, bytes)?.to_bytes())),
        ),
        (
            "evaluation keys",
            keys.to_bytes(),
            keys_len,
            Box::new(move |bytes| Ok(EvaluationKeys::from_bytes(parameters, &needed, bytes)?.to_bytes())),
        ),
        sealed(setting, modulus),
    ]
}

fn sealed<'a>(
    setting: &mut Setting,
    modulus: &'a PlaintextModulus,
) -> (&'static str, Vec<u8>, usize, Recode<'a>) {
    // The small ring has no room for flooding, so this one is always of set B.
    let mut large = Setting::new(set_b(), modulus.value(), 40);
    let slots = large.random();
    let fresh = large.encrypt(&slots);
    let public = PublicKey::generate(&large.secret, &mut large.rng);
    let blinding = Blinding::prepare(modulus, &public, NoiseBound::fresh(), &mut large.rng).unwrap();
    let mask = large.encoder.encode(&slots).unwrap();
    let bytes = seal(&fresh, blinding, &mask).unwrap().to_bytes();
    let length = SealedCiphertext::encoded_len(modulus).unwrap();
    setting.rng = large.rng;
    let recode = |bytes: &[u8]| Ok(SealedCiphertext::from_bytes(modulus, bytes)?.to_bytes());
    ("sealed ciphertext", bytes, length, Box::new(recode))
}

#[test]
fn sizes_of_set_b_are_those_of_the_documentation() {
    let parameters = set_b();
    let limb = 8192 * 50 / 8;
    assert_eq!(SeededCiphertext::encoded_len(&parameters), 16 + 3 * limb);
    assert_eq!(PublicKey::encoded_len(&parameters), 16 + 3 * limb);
    let elements = [3, 9, 27, 1].map(|exponent| GaloisElement::new(exponent, 8192).unwrap());
    assert_eq!(EvaluationKeys::encoded_len(&parameters, &elements).unwrap(), 16 + 3 * 3 * 4 * limb);
    for t in [114_689, 1_073_692_673, 137_438_822_401] {
        let modulus = PlaintextModulus::new(&parameters, t).unwrap();
        assert_eq!(SealedCiphertext::encoded_len(&modulus).unwrap(), 2 * limb);
    }
}

#[test]
fn wire_forms_have_their_length_and_come_back() {
    let (parameters, b) = (small(), set_b());
    let modulus = PlaintextModulus::new(&b, 114_689).unwrap();
    let mut setting = Setting::new(small(), SMALL_T, 41);
    for (name, bytes, length, recode) in messages(&mut setting, &parameters, &modulus) {
        assert_eq!(bytes.len(), length, "{name}");
        assert!(recode(&bytes).unwrap() == bytes, "{name}");
    }
}

#[test]
fn truncation_and_extension_are_refused() {
    let (parameters, b) = (small(), set_b());
    let modulus = PlaintextModulus::new(&b, 114_689).unwrap();
    let mut setting = Setting::new(small(), SMALL_T, 42);
    for (name, mut bytes, length, recode) in messages(&mut setting, &parameters, &modulus) {
        for cut in [0, 1, 15, 16, 17, length / 2, length - 1] {
            assert!(matches!(recode(&bytes[..cut]), Err(BfvError::Decode(_))), "{name} cut to {cut}");
        }
        bytes.push(0);
        assert!(matches!(recode(&bytes), Err(BfvError::Decode(_))), "{name} extended");
        bytes.extend(vec![0; length]);
        assert!(matches!(recode(&bytes), Err(BfvError::Decode(_))), "{name} doubled");
    }
}

#[test]
fn values_that_are_not_reduced_are_refused() {
    let (parameters, b) = (small(), set_b());
    let modulus = PlaintextModulus::new(&b, 114_689).unwrap();
    let mut setting = Setting::new(small(), SMALL_T, 43);
    for (name, bytes, length, recode) in messages(&mut setting, &parameters, &modulus) {
        for start in [16, length / 2, length - 20] {
            let mut bytes = bytes.clone();
            bytes[start..start + 20].fill(0xff);
            assert!(matches!(recode(&bytes), Err(BfvError::Decode(_))), "{name} at {start}");
        }
        assert!(recode(&vec![0xff; length]).is_err(), "{name}");
    }
}

#[test]
fn evaluation_keys_for_other_elements_have_other_lengths() {
    let mut setting = Setting::new(small(), SMALL_T, 44);
    let elements = [1, 2].map(|steps| setting.evaluator.rotation(steps).unwrap());
    let bytes = setting.keys(&elements).to_bytes();
    assert!(EvaluationKeys::from_bytes(&small(), &elements[..1], &bytes).is_err());
    let three = [1, 2, 3].map(|steps| setting.evaluator.rotation(steps).unwrap());
    assert!(EvaluationKeys::from_bytes(&small(), &three, &bytes).is_err());
    let repeated = [elements[0], elements[1], elements[0]];
    assert!(EvaluationKeys::from_bytes(&small(), &repeated, &bytes).is_ok());
    let foreign = GaloisElement::new(3, 8192).unwrap();
    assert!(EvaluationKeys::from_bytes(&small(), &[foreign], &bytes).is_err());
}

#[test]
fn a_secret_key_comes_back_and_nothing_else_does() {
    for parameters in [small(), set_b(), ParameterSet::L.parameters().unwrap()] {
        let mut setting = Setting::new(parameters.clone(), 786_433, 46);
        let mut writer = Writer::new();
        setting.secret.encode(&mut writer);
        let bytes = writer.into_bytes();
        assert_eq!(bytes.len(), SecretKey::encoded_len(&parameters));
        assert_eq!(bytes.len(), parameters.degree() / 4);
        let again = SecretKey::from_bytes(&parameters, &bytes).unwrap();
        let mut writer = Writer::new();
        again.encode(&mut writer);
        assert!(writer.into_bytes() == bytes);
        // The key that came back has all limbs and the special modulus: keys of one serve ciphertexts of the other.
        let rotation = setting.evaluator.rotation(3).unwrap();
        let keys = EvaluationKeys::generate(&again, &[rotation], &mut setting.rng).unwrap();
        let encoder = CoefficientEncoder::new(&parameters, 64).unwrap();
        let message = encoder.encode(&[5, 0, 63]).unwrap();
        let fresh = setting.secret.encrypt(&message, &mut setting.rng).unwrap().expand();
        let turned = setting.evaluator.apply(&fresh, rotation, &keys).unwrap();
        let noise = again.noise_bits(&turned, encoder.modulus()).unwrap();
        assert!(noise <= turned.noise().infinity(parameters.degree()).log2());

        for cut in [0, 1, bytes.len() - 1] {
            let refused = SecretKey::from_bytes(&parameters, &bytes[..cut]);
            assert!(matches!(refused.err(), Some(BfvError::Decode(_))));
        }
        assert!(SecretKey::from_bytes(&parameters, &[&bytes[..], &[0]].concat()).is_err());
        let mut flawed = bytes;
        flawed[7] |= 3;
        assert!(matches!(SecretKey::from_bytes(&parameters, &flawed).err(), Some(BfvError::Decode(_))));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// A changed byte either is refused or is another message: never a panic, never the same value.
    #[test]
    fn mutated_bytes_never_panic_and_never_alias(position: u32, flip in 1_u8..) {
        let (parameters, b) = (small(), set_b());
        let modulus = PlaintextModulus::new(&b, 114_689).unwrap();
        let mut setting = Setting::new(small(), SMALL_T, 45);
        for (_, mut bytes, length, recode) in messages(&mut setting, &parameters, &modulus) {
            bytes[position as usize % length] ^= flip;
            if let Ok(again) = recode(&bytes) {
                prop_assert!(again == bytes);
            }
        }
    }

    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let parameters = small();
        prop_assert!(SeededCiphertext::from_bytes(&parameters, &bytes).is_err());
        prop_assert!(PublicKey::from_bytes(&parameters, &bytes).is_err());
    }
}
