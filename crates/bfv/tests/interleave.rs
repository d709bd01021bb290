//! Packed ciphertexts: the wanted coefficients of all, in their places, within the bound on the noise.

use lanner_bfv::{
    BfvError, CoefficientEncoder, EvaluationKeys, GaloisElement, Interleaving, NoiseBound, ParameterSet,
    Parameters, SecretKey,
};
use lanner_primitives::{Prg, Seed};
use rand_core::Rng;

const BITS: u32 = 24;

struct Client {
    parameters: Parameters,
    secret: SecretKey,
    encoder: CoefficientEncoder,
    rng: Prg,
}

impl Client {
    fn new(seed: u8) -> Self {
        let mut rng = Prg::new(Seed::from_bytes([seed; 16]));
        let parameters = ParameterSet::C4.parameters().unwrap();
        let secret = SecretKey::generate(&parameters, &mut rng);
        let encoder = CoefficientEncoder::new(&parameters, 1 << BITS).unwrap();
        Self { parameters, secret, encoder, rng }
    }

    fn keys(&mut self, elements: &[GaloisElement]) -> EvaluationKeys {
        EvaluationKeys::generate(&self.secret, elements, &mut self.rng).unwrap()
    }

    fn values(&mut self) -> Vec<u64> {
        (0..self.parameters.degree()).map(|_| self.rng.next_u64() & ((1 << BITS) - 1)).collect()
    }
}

/// Packs as many random messages as are present, and compares what is wanted.
fn check(count: usize, present: usize, first: usize) {
    let mut client = Client::new(count as u8);
    let degree = client.parameters.degree();
    let elements = Interleaving::elements(degree, count).unwrap();
    let keys = client.keys(&elements);
    let messages: Vec<Vec<u64>> = (0..present).map(|_| client.values()).collect();
    let mut parts = Vec::new();
    for message in &messages {
        let plain = client.encoder.encode(message).unwrap();
        parts.push(client.secret.encrypt(&plain, &mut client.rng).unwrap().expand());
    }
    let interleaving = Interleaving::new(&client.parameters, count, first).unwrap();
    let packed = interleaving.ciphertexts(parts, &keys).unwrap();
    let opened = client.encoder.decode(&client.secret.decrypt(&packed, client.encoder.modulus()).unwrap());
    let opened = opened.unwrap();
    for (number, message) in messages.iter().enumerate() {
        for place in (0..degree).step_by(count) {
            // A message's last coefficients wrap around where the first is not 0: none of these is wanted of a layer.
            if place + first < degree {
                assert_eq!(
                    opened[place + number],
                    message[place + first],
                    "{number} of {present} at {place}"
                );
            }
        }
    }
    for number in present..count {
        assert!((0..degree).step_by(count).all(|place| opened[place + number] == 0), "nothing at {number}");
    }
    let bound = Interleaving::noise(&client.parameters, count, NoiseBound::fresh()).infinity(degree).log2();
    let noise = client.secret.noise_bits(&packed, client.encoder.modulus()).unwrap();
    assert_eq!(Interleaving::switches(count, count), count - 1);
    assert!(present < count || noise <= bound, "{noise} of {bound} bits for {count}");
}

#[test]
fn wanted_coefficients_are_beside_each_other() {
    for (count, present, first) in [(2, 2, 0), (2, 1, 1), (8, 8, 7), (8, 5, 3), (32, 32, 31), (64, 1, 0)] {
        check(count, present, first);
    }
}

#[test]
fn other_numbers_of_ciphertexts_are_refused() {
    let client = Client::new(9);
    for (count, first) in [(0, 0), (1, 0), (3, 0), (8, 8), (8192, 0)] {
        assert!(matches!(
            Interleaving::new(&client.parameters, count, first),
            Err(BfvError::Mismatch { .. })
        ));
    }
}

#[test]
fn a_missing_key_and_too_many_ciphertexts_are_refused() {
    let mut client = Client::new(10);
    let elements = Interleaving::elements(client.parameters.degree(), 4).unwrap();
    let keys = client.keys(&elements[1..]);
    let plain = client.encoder.encode(&vec![1; client.parameters.degree()]).unwrap();
    let mut encrypt = || client.secret.encrypt(&plain, &mut client.rng).unwrap().expand();
    let interleaving = Interleaving::new(&client.parameters, 4, 0).unwrap();
    let few = (0..4).map(|_| encrypt()).collect();
    assert!(matches!(interleaving.ciphertexts(few, &keys), Err(BfvError::MissingKey { .. })));
    let many = (0..5).map(|_| encrypt()).collect();
    assert!(matches!(interleaving.ciphertexts(many, &keys), Err(BfvError::Length { .. })));
    assert!(matches!(interleaving.ciphertexts(Vec::new(), &keys), Err(BfvError::Mismatch { .. })));
}
