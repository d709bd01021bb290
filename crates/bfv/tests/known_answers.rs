//! Every message of one layer has the bytes that an independent implementation in big integers gives it
//! (`vectors/bfv.py`): the scheme is the documented one, and no wire form changes unnoticed.

use crate::common;
use std::collections::BTreeMap;

use lanner_bfv::{
    Blinding, EvaluationKeys, Evaluator, LinearCombination, PublicKey, SealedCiphertext, SecretKey,
    SeededCiphertext, SlotEncoder, seal,
};
use lanner_testkit::TestRng;
use lanner_wire::Encode;
use rand_core::Rng;
use sha2::{Digest, Sha256};

const T: u64 = 1_032_193;
const FLOOD_BITS: u32 = 78;

/// Length and digest of each message by name.
struct Answers(BTreeMap<&'static str, (usize, &'static str)>);

impl Answers {
    fn read() -> Self {
        let text = include_str!("../../../vectors/bfv.txt");
        let entry = |line: &'static str| {
            let mut fields = line.split(' ');
            let (name, length) = (fields.next().unwrap(), fields.next().unwrap().parse().unwrap());
            (name, (length, fields.next().unwrap()))
        };
        Self(text.lines().map(entry).collect())
    }

    fn check(&self, name: &str, bytes: &[u8]) {
        let (length, digest) = self.0[name];
        let digest: Vec<u8> =
            (0..64).step_by(2).map(|i| u8::from_str_radix(&digest[i..i + 2], 16).unwrap()).collect();
        assert_eq!((bytes.len(), Sha256::digest(bytes).to_vec()), (length, digest), "{name}");
    }

    fn check_words(&self, name: &str, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.check(name, &bytes);
    }
}

fn slots(rng: &mut TestRng) -> Vec<u64> {
    (0..8192).map(|_| rng.next_u64() % T).collect()
}

#[test]
fn one_layer_has_the_bytes_of_the_independent_implementation() {
    let answers = Answers::read();
    let parameters = common::set_b();
    let mut rng = TestRng::new(20_180_815);
    let encoder = SlotEncoder::new(&parameters, T).unwrap();
    let evaluator = Evaluator::new(&parameters);
    let secret = SecretKey::generate(&parameters, &mut rng);

    let public = PublicKey::generate(&secret, &mut rng).to_bytes();
    answers.check("public_key", &public);
    let rotation = [evaluator.rotation(1).unwrap()];
    let keys = EvaluationKeys::generate(&secret, &rotation, &mut rng).unwrap().to_bytes();
    answers.check("evaluation_keys", &keys);
    let message = encoder.encode(&slots(&mut rng)).unwrap();
    answers.check_words("encoded", message.coefficients());
    let upload = secret.encrypt(&message, &mut rng).unwrap().to_bytes();
    answers.check("upload", &upload);

    // The server goes on from the bytes alone.
    let public = PublicKey::from_bytes(&parameters, &public).unwrap();
    let keys = EvaluationKeys::from_bytes(&parameters, &rotation, &keys).unwrap();
    let x = SeededCiphertext::from_bytes(&parameters, &upload).unwrap().expand();
    let rotated = evaluator.rotate(&x, 1, &keys).unwrap();
    let mut sum = LinearCombination::new(&parameters);
    for ciphertext in [&x, &rotated] {
        sum.add(ciphertext, &encoder.multiplier(&slots(&mut rng)).unwrap()).unwrap();
    }
    let y = sum.finish();
    let mask = encoder.encode(&slots(&mut rng)).unwrap();
    let blinding = Blinding::prepare(encoder.modulus(), &public, y.noise(), &mut rng).unwrap();
    assert_eq!(blinding.budget().flood_bits(), FLOOD_BITS);
    let sealed = seal(&y, blinding, &mask).unwrap().to_bytes();
    answers.check("sealed", &sealed);

    let received = SealedCiphertext::from_bytes(encoder.modulus(), &sealed).unwrap();
    let share = encoder.decode(&secret.decrypt_sealed(&received).unwrap()).unwrap();
    answers.check_words("share", &share);
}
