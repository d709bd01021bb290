//! What the tests share: a seeded generator, parameters, and a client with its keys.

use lanner_bfv::{
    Ciphertext, EvaluationKeys, Evaluator, GaloisElement, ParameterSet, Parameters, SecretKey, SlotEncoder,
};
use lanner_primitives::{Prg, Seed};
use rand_core::Rng;

pub fn rng(seed: u8) -> Prg {
    Prg::new(Seed::from_bytes([seed; 16]))
}

/// `N = 2048`, one limb of 26 bits and a special one of 27: small enough to try every rotation.
pub fn small() -> Parameters {
    Parameters::new(2048, &[67_104_769], Some(134_176_769)).unwrap()
}

pub const SMALL_T: u64 = 12289;

pub fn set_b() -> Parameters {
    ParameterSet::B.parameters().unwrap()
}

pub fn values(count: usize, t: u64, rng: &mut Prg) -> Vec<u64> {
    (0..count).map(|_| rng.next_u64() % t).collect()
}

/// A client with an encoder, and the server's evaluator.
pub struct Setting {
    pub parameters: Parameters,
    pub encoder: SlotEncoder,
    pub secret: SecretKey,
    pub evaluator: Evaluator,
    pub rng: Prg,
}

impl Setting {
    pub fn new(parameters: Parameters, t: u64, seed: u8) -> Self {
        let mut rng = rng(seed);
        let encoder = SlotEncoder::new(&parameters, t).unwrap();
        let secret = SecretKey::generate(&parameters, &mut rng);
        let evaluator = Evaluator::new(&parameters);
        Self { parameters, encoder, secret, evaluator, rng }
    }

    pub fn t(&self) -> u64 {
        self.encoder.modulus().value()
    }

    pub fn random(&mut self) -> Vec<u64> {
        values(self.encoder.slots(), self.t(), &mut self.rng)
    }

    pub fn encrypt(&mut self, slots: &[u64]) -> Ciphertext {
        let message = self.encoder.encode(slots).unwrap();
        self.secret.encrypt(&message, &mut self.rng).unwrap().expand()
    }

    pub fn decrypt(&self, ciphertext: &Ciphertext) -> Vec<u64> {
        let message = self.secret.decrypt(ciphertext, self.encoder.modulus()).unwrap();
        self.encoder.decode(&message).unwrap()
    }

    pub fn keys(&mut self, elements: &[GaloisElement]) -> EvaluationKeys {
        EvaluationKeys::generate(&self.secret, elements, &mut self.rng).unwrap()
    }

    /// Measured noise is below the carried bound.
    pub fn assert_noise(&self, ciphertext: &Ciphertext) {
        let measured = self.secret.noise_bits(ciphertext, self.encoder.modulus()).unwrap();
        let bound = ciphertext.noise().infinity(self.parameters.degree()).log2();
        assert!(measured <= bound, "2^{measured:.1} is over the bound 2^{bound:.1}");
    }
}

/// Rotates each row of a vector of slots.
pub fn rotated(slots: &[u64], steps: isize) -> Vec<u64> {
    let half = slots.len() / 2;
    let source = |i: usize| i / half * half + (i as isize + steps).rem_euclid(half as isize) as usize;
    (0..slots.len()).map(|i| slots[source(i)]).collect()
}

pub fn swapped(slots: &[u64]) -> Vec<u64> {
    let (first, second) = slots.split_at(slots.len() / 2);
    [second, first].concat()
}
