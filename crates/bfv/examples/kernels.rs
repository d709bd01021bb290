//! Times the operations of parameter set B on one core and prints the sizes of what is sent.
//!
//! Every result is decrypted and compared outside the clock.
//!
//! ```text
//! cargo run --release -p lanner-bfv --example kernels [-- --json]
//! ```
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Instant;

use lanner_bfv::{
    Blinding, Ciphertext, CoefficientEncoder, EvaluationKeys, Evaluator, ExtendedCombination,
    ExtendedCombinations, LinearCombination, ParameterSet, Parameters, Plaintext, PublicKey,
    SealedCiphertext, SecretKey, SeededCiphertext, SlotEncoder, seal,
};
use lanner_primitives::{Prg, Seed};
use lanner_wire::Encode;
use rand_core::Rng;

const T: u64 = 1_032_193;
/// The ring's degree in set B.
const DEGREE: usize = 8192;
const KEYS: usize = 60;
/// Products in one linear combination.
const TERMS: usize = 64;

fn main() {
    // As in a session that has received keys: the allocator keeps what large buffers left.
    drop(black_box(vec![1_u8; 24 << 20]));
    let parameters = ParameterSet::B.parameters().unwrap();
    if !json() {
        println!("set B: N = {}, q of {} limbs, t = {T}", parameters.degree(), parameters.limbs());
    }
    assert_eq!(parameters.degree(), DEGREE);
    let mut bench = Bench::new(&parameters);
    bench.client();
    bench.rotations();
    bench.products();
    bench.sealing();
    bench.windows();
    bench.sizes();
}

struct Bench {
    parameters: Parameters,
    encoder: SlotEncoder,
    evaluator: Evaluator,
    secret: SecretKey,
    public: PublicKey,
    keys: EvaluationKeys,
    slots: Vec<u64>,
    fresh: Ciphertext,
    rng: Prg,
}

impl Bench {
    fn new(parameters: &Parameters) -> Self {
        let mut rng = Prg::new(Seed::from_bytes([1; 16]));
        let (encoder, evaluator) = (SlotEncoder::new(parameters, T).unwrap(), Evaluator::new(parameters));
        let secret = SecretKey::generate(parameters, &mut rng);
        let public = PublicKey::generate(&secret, &mut rng);
        let elements: Vec<_> = (1..=KEYS as isize).map(|steps| evaluator.rotation(steps).unwrap()).collect();
        let keys = EvaluationKeys::generate(&secret, &elements, &mut rng).unwrap();
        let slots: Vec<u64> = (0..encoder.slots()).map(|_| rng.next_u64() % T).collect();
        let fresh = secret.encrypt(&encoder.encode(&slots).unwrap(), &mut rng).unwrap().expand();
        Self { parameters: parameters.clone(), encoder, evaluator, secret, public, keys, slots, fresh, rng }
    }

    fn random(&mut self) -> Vec<u64> {
        (0..self.encoder.slots()).map(|_| self.rng.next_u64() % T).collect()
    }

    fn check(&self, ciphertext: &Ciphertext, expected: impl Fn(usize) -> u64) {
        let message = self.secret.decrypt(ciphertext, self.encoder.modulus()).unwrap();
        let slots = self.encoder.decode(&message).unwrap();
        assert!(slots.iter().enumerate().all(|(i, slot)| *slot == expected(i)), "a wrong result");
    }

    fn client(&mut self) {
        let message = self.encoder.encode(&self.slots).unwrap();
        time("encode slots", 200, || self.encoder.encode(&self.slots).unwrap());
        let upload = time("encrypt", 200, || self.secret.encrypt(&message, &mut self.rng).unwrap());
        let bytes = time("encode the upload", 200, || upload.to_bytes());
        time("decode and expand the upload", 200, || {
            SeededCiphertext::from_bytes(&self.parameters, &bytes).unwrap().expand()
        });
        time("decrypt", 200, || self.secret.decrypt(&self.fresh, self.encoder.modulus()).unwrap());
        let elements: Vec<_> =
            (1..=KEYS as isize).map(|steps| self.evaluator.rotation(steps).unwrap()).collect();
        time("generate a key pair", 20, || {
            let secret = SecretKey::generate(&self.parameters, &mut self.rng);
            PublicKey::generate(&secret, &mut self.rng)
        });
        let keys = time("generate 60 evaluation keys", 3, || {
            EvaluationKeys::generate(&self.secret, &elements, &mut self.rng).unwrap()
        });
        let bytes = time("encode 60 evaluation keys", 3, || keys.to_bytes());
        time("decode and expand 60 evaluation keys", 3, || {
            EvaluationKeys::from_bytes(&self.parameters, &elements, &bytes).unwrap()
        });
    }

    fn rotations(&mut self) {
        let half = self.encoder.slots() / 2;
        let rotated = |slots: &[u64], i: usize, steps: usize| slots[i / half * half + (i + steps) % half];
        let mut steps = 0;
        let result = time("rotate", 300, || {
            steps = steps % KEYS as isize + 1;
            self.evaluator.rotate(&self.fresh, steps, &self.keys).unwrap()
        });
        self.check(&result, |i| rotated(&self.slots, i, steps as usize));
        // The decomposition is done with the first rotation, before the timing.
        let hoisted = self.evaluator.hoist(&self.fresh).unwrap();
        let result = time("rotate hoisted", 300, || {
            steps = steps % KEYS as isize + 1;
            hoisted.rotate(steps, &self.keys).unwrap()
        });
        self.check(&result, |i| rotated(&self.slots, i, steps as usize));
        time("rotate hoisted, extended", 300, || {
            steps = steps % KEYS as isize + 1;
            hoisted.apply_extended(self.evaluator.rotation(steps).unwrap(), &self.keys).unwrap()
        });
        time("rotate hoisted by one step", 300, || hoisted.rotate(1, &self.keys).unwrap());
        time("switch the modulus", 300, || self.evaluator.mod_switch(&self.fresh).unwrap());
    }

    fn products(&mut self) {
        let weights = self.random();
        let product = |i: usize| self.slots[i] * weights[i] % T;
        time("prepare a factor", 200, || self.encoder.multiplier(&weights).unwrap());
        let factor = self.encoder.multiplier(&weights).unwrap();
        let result =
            time("multiply by a factor", 300, || self.evaluator.mul_plain(&self.fresh, &factor).unwrap());
        self.check(&result, product);
        let factors: Vec<_> = (0..TERMS).map(|_| self.encoder.multiplier(&weights).unwrap()).collect();
        let result = time("64 multiply-accumulates", 30, || {
            let mut sum = LinearCombination::new(&self.parameters);
            for factor in &factors {
                sum.add(&self.fresh, factor).unwrap();
            }
            sum.finish()
        });
        self.check(&result, |i| product(i) * TERMS as u64 % T);
        let hoisted = self.evaluator.hoist(&self.fresh).unwrap();
        let extended = hoisted.apply_extended(self.evaluator.rotation(0).unwrap(), &self.keys).unwrap();
        let factors: Vec<_> = (0..TERMS).map(|_| self.encoder.multiplier(&weights).unwrap()).collect();
        let result = time("64 extended multiply-accumulates", 30, || {
            let mut sum = ExtendedCombination::new(&self.parameters).unwrap();
            for factor in &factors {
                sum.add(&extended, factor).unwrap();
            }
            sum.finish()
        });
        self.check(&result, |i| product(i) * TERMS as u64 % T);
        let inputs = vec![extended; 25];
        let factors: Vec<_> = (0..400).map(|_| self.encoder.multiplier(&weights).unwrap()).collect();
        time("25 ciphertexts into 16 sums, one by one", 10, || {
            let mut sums: Vec<_> =
                (0..16).map(|_| ExtendedCombination::new(&self.parameters).unwrap()).collect();
            for (input, factors) in inputs.iter().zip(factors.chunks(16)) {
                for (sum, factor) in sums.iter_mut().zip(factors) {
                    sum.add(input, factor).unwrap();
                }
            }
            sums.into_iter().map(ExtendedCombination::finish).collect::<Vec<_>>()
        });
        let results = time("25 ciphertexts into 16 sums, together", 10, || {
            let mut sums = ExtendedCombinations::new(&self.parameters, 16).unwrap();
            sums.add(&inputs, &factors).unwrap();
            sums.finish()
        });
        self.check(&results[15], |i| product(i) * 25 % T);
        let message = self.encoder.encode(&weights).unwrap();
        time("add two ciphertexts", 200, || self.evaluator.add(&self.fresh, &self.fresh).unwrap());
        time("add a plaintext", 200, || self.evaluator.add_plain(&self.fresh, &message).unwrap());
    }

    fn sealing(&mut self) {
        let weights = self.random();
        let factor = self.encoder.multiplier(&weights).unwrap();
        let product = self.evaluator.mul_plain(&self.fresh, &factor).unwrap();
        let mask = self.encoder.encode(&weights).unwrap();
        let modulus = self.encoder.modulus().clone();
        let mut prepared = Vec::new();
        time("prepare a blinding", 100, || {
            prepared.push(Blinding::prepare(&modulus, &self.public, product.noise(), &mut self.rng).unwrap());
        });
        let sealed = time("seal", 100, || seal(&product, prepared.pop().unwrap(), &mask).unwrap());
        let bytes = time("encode the sealed ciphertext", 100, || sealed.to_bytes());
        let received = SealedCiphertext::from_bytes(&modulus, &bytes).unwrap();
        let message =
            time("decrypt a sealed ciphertext", 100, || self.secret.decrypt_sealed(&received).unwrap());
        let share = self.encoder.decode(&message).unwrap();
        assert!((0..share.len()).all(|i| (share[i] + weights[i]) % T == self.slots[i] * weights[i] % T));
    }

    /// The paper's plaintext windows: the client sends `W^i x`, the server multiplies by the base-`W` digits of each
    /// coefficient of its plaintext. Less noise for more ciphertexts; a sealed layer has no use for it.
    fn windows(&mut self) {
        let weights = self.random();
        let coefficients = CoefficientEncoder::new(&self.parameters, T).unwrap();
        let weight = self.encoder.encode(&weights).unwrap();
        let message = self.encoder.encode(&self.slots).unwrap();
        for bits in [20, 10, 7, 5] {
            let (mut uploads, mut factors) = (Vec::new(), Vec::new());
            for shift in (0..20).step_by(bits) {
                let scaled = message.coefficients().iter().map(|m| (m << shift) % T).collect();
                let scaled = Plaintext::new(self.encoder.modulus(), scaled).unwrap();
                uploads.push(self.secret.encrypt(&scaled, &mut self.rng).unwrap().expand());
                let digit = |w: &u64| (w >> shift) & ((1 << bits) - 1);
                let digits: Vec<_> = weight.coefficients().iter().map(digit).collect();
                factors.push(coefficients.multiplier(&digits).unwrap());
            }
            let result = time(&format!("product with the paper's windows of {bits} bits"), 100, || {
                let mut sum = LinearCombination::new(&self.parameters);
                for (upload, factor) in uploads.iter().zip(&factors) {
                    sum.add(upload, factor).unwrap();
                }
                sum.finish()
            });
            self.check(&result, |i| self.slots[i] * weights[i] % T);
            let noise = self.secret.noise_bits(&result, self.encoder.modulus()).unwrap();
            if !json() {
                println!("    {} ciphertexts, measured noise 2^{noise:.1}", uploads.len());
            }
        }
    }

    fn sizes(&self) {
        let parameters = &self.parameters;
        let elements: Vec<_> =
            (1..=KEYS as isize).map(|steps| self.evaluator.rotation(steps).unwrap()).collect();
        let keys = EvaluationKeys::encoded_len(parameters, &elements).unwrap();
        let sealed = SealedCiphertext::encoded_len(self.encoder.modulus()).unwrap();
        size("seeded ciphertext", SeededCiphertext::encoded_len(parameters));
        size("sealed ciphertext", sealed);
        size("public key", PublicKey::encoded_len(parameters));
        size("60 evaluation keys", keys);
    }
}

/// Runs and prints the median; returns the last result.
fn time<T>(name: &str, repeat: usize, mut run: impl FnMut() -> T) -> T {
    let mut seconds = Vec::with_capacity(repeat);
    let mut last = None;
    for _ in 0..repeat {
        let start = Instant::now();
        last = Some(black_box(run()));
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[repeat / 2];
    if json() {
        println!(
            r#"{{"bench": "bfv", "name": "{name}", "n": {DEGREE}, "seconds": {median:e}, "repeat": {repeat}}}"#
        );
    } else {
        println!("{name:<44} {:>10.1} us", median * 1e6);
    }
    last.unwrap()
}

fn size(name: &str, bytes: usize) {
    if json() {
        println!(r#"{{"bench": "bfv", "name": "{name}", "n": {DEGREE}, "bytes": {bytes}}}"#);
    } else {
        println!("{name:<22} {bytes:>10} bytes");
    }
}

/// Whether the output is for programs.
fn json() -> bool {
    std::env::args().any(|argument| argument == "--json")
}
