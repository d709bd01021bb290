//! Times what leveled evaluation takes at parameter set L on one core, by limbs that are left, and follows the noise of a network with
//! two squares.
//!
//! Every result is decrypted and compared outside the clock.
//!
//! ```text
//! cargo run --release -p lanner-bfv --example levels [-- --json] [--large]
//! ```
//!
//! With `--large` at set L'.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Instant;

use lanner_bfv::function_privacy::Budget;
use lanner_bfv::{
    Ciphertext, EvaluationKeys, Evaluator, ExtendedCombinations, GaloisElement, LinearCombination, NeededKey,
    ParameterSet, Parameters, SecretKey, SlotEncoder,
};
use lanner_primitives::{Prg, Seed};
use rand_core::Rng;

/// Primes `1 mod 2^16` of 31, 37 and 40 bits.
const PRIMES: [u64; 3] = [2_148_728_833, 137_438_822_401, 1_099_510_054_913];
/// Products in one sum.
const TERMS: usize = 16;

fn main() {
    // As in a session that has received keys: the allocator keeps what large buffers left.
    drop(black_box(vec![1_u8; 24 << 20]));
    let set = if argument("--large") { ParameterSet::LPrime } else { ParameterSet::L };
    let parameters = set.parameters().unwrap();
    let (degree, limbs) = (parameters.degree(), parameters.limbs());
    if !argument("--json") {
        println!("set {}: N = {degree}, q of {limbs} limbs", set.name());
    }
    let levels = if limbs == 7 { [7, 5, 3] } else { [16, 11, 6] };
    Timings::new(&parameters, PRIMES[0]).run(levels);
    sizes(&parameters, levels);
    for t in PRIMES {
        network(&parameters, t);
    }
}

/// A client with keys, a server, and a message.
struct Setting {
    parameters: Parameters,
    encoder: SlotEncoder,
    evaluator: Evaluator,
    secret: SecretKey,
    keys: EvaluationKeys,
    element: GaloisElement,
    slots: Vec<u64>,
    fresh: Ciphertext,
    rng: Prg,
}

impl Setting {
    fn new(parameters: &Parameters, t: u64) -> Self {
        let mut rng = Prg::new(Seed::from_bytes([1; 16]));
        let (encoder, evaluator) = (SlotEncoder::new(parameters, t).unwrap(), Evaluator::new(parameters));
        let secret = SecretKey::generate(parameters, &mut rng);
        let element = evaluator.rotation(1).unwrap();
        let needed = [NeededKey::automorphism(element), NeededKey::product()];
        let keys = EvaluationKeys::generate(&secret, &needed, &mut rng).unwrap();
        let slots: Vec<u64> = (0..encoder.slots()).map(|_| rng.next_u64() % t).collect();
        let fresh = secret.encrypt(&encoder.encode(&slots).unwrap(), &mut rng).unwrap().expand();
        let parameters = parameters.clone();
        Self { parameters, encoder, evaluator, secret, keys, element, slots, fresh, rng }
    }

    fn t(&self) -> u64 {
        self.encoder.modulus().value()
    }

    fn random(&mut self) -> Vec<u64> {
        let t = self.t();
        (0..self.encoder.slots()).map(|_| self.rng.next_u64() % t).collect()
    }

    fn decrypt(&self, ciphertext: &Ciphertext) -> Vec<u64> {
        self.encoder.decode(&self.secret.decrypt(ciphertext, self.encoder.modulus()).unwrap()).unwrap()
    }

    fn check(&self, ciphertext: &Ciphertext, expected: impl Fn(usize) -> u64) {
        let slots = self.decrypt(ciphertext);
        assert!(slots.iter().enumerate().all(|(i, slot)| *slot == expected(i)), "a wrong result");
    }
}

fn product(x: u64, y: u64, t: u64) -> u64 {
    (u128::from(x) * u128::from(y) % u128::from(t)) as u64
}

/// The slot that a rotation by one step reads.
fn next(i: usize, slots: usize) -> usize {
    let half = slots / 2;
    i / half * half + (i + 1) % half
}

struct Timings(Setting);

impl Timings {
    fn new(parameters: &Parameters, t: u64) -> Self {
        Self(Setting::new(parameters, t))
    }

    fn run(&mut self, levels: [usize; 3]) {
        let weights = self.0.random();
        let Self(setting) = self;
        let (t, slots, modulus) = (setting.t(), &setting.slots, setting.encoder.modulus());
        let factor = setting.encoder.multiplier(&weights).unwrap();
        for limbs in levels {
            let time = |name: &str, run: &mut dyn FnMut() -> Ciphertext| time(name, limbs, slots.len(), run);
            let evaluator = &setting.evaluator;
            let a = evaluator.mod_switch_to(&setting.fresh, limbs).unwrap();
            let turned = |i| slots[next(i, slots.len())];
            let result = time("rotate", &mut || evaluator.rotate(&a, 1, &setting.keys).unwrap());
            setting.check(&result, turned);
            let hoisted = evaluator.hoist(&a).unwrap();
            hoisted.rotate(1, &setting.keys).unwrap();
            let result = time("rotate hoisted", &mut || hoisted.rotate(1, &setting.keys).unwrap());
            setting.check(&result, turned);
            let extended = || hoisted.apply_extended(setting.element, &setting.keys).unwrap();
            let result =
                time("rotate hoisted, extended, and divide", &mut || extended().reduce(&setting.parameters));
            setting.check(&result, turned);
            let square = |i: usize| product(slots[i], slots[i], t);
            let result = time("square", &mut || evaluator.square(&a, modulus, &setting.keys).unwrap());
            setting.check(&result, square);
            let result = time("square to one limb less", &mut || {
                evaluator.square_to(&a, modulus, &setting.keys, limbs - 1).unwrap()
            });
            setting.check(&result, square);
            let result =
                time("multiply", &mut || evaluator.multiply(&a, &a, modulus, &setting.keys).unwrap());
            setting.check(&result, square);
            let times = |i| product(product(slots[i], weights[i], t), TERMS as u64, t);
            let (inputs, factors) = (vec![a.clone(); TERMS], vec![factor.clone(); TERMS]);
            let result = time("16 multiply-accumulates", &mut || {
                LinearCombination::of(&setting.parameters, &inputs, &factors).unwrap()
            });
            setting.check(&result, times);
            let inputs =
                vec![hoisted.apply_extended(evaluator.rotation(0).unwrap(), &setting.keys).unwrap(); TERMS];
            let result = time("16 extended multiply-accumulates", &mut || {
                let mut sums = ExtendedCombinations::at(&setting.parameters, 1, limbs).unwrap();
                sums.add(&inputs, &factors).unwrap();
                sums.finish().pop().unwrap()
            });
            setting.check(&result, times);
            let result = time("switch down by a limb", &mut || evaluator.mod_switch(&a).unwrap());
            setting.check(&result, |i| slots[i]);
            if limbs > 3 {
                let result =
                    time("switch down by two", &mut || evaluator.mod_switch_to(&a, limbs - 2).unwrap());
                setting.check(&result, |i| slots[i]);
            }
        }
    }
}

/// Bytes of keys, by the limbs they serve.
fn sizes(parameters: &Parameters, levels: [usize; 3]) {
    for limbs in levels {
        let needed = [NeededKey::product().at(limbs)];
        let sent = EvaluationKeys::encoded_len(parameters, &needed).unwrap();
        let kept = EvaluationKeys::kept_bytes(parameters, &needed).unwrap();
        if argument("--json") {
            let n = parameters.degree();
            println!(
                r#"{{"bench": "levels", "name": "a key", "n": {n}, "limbs": {limbs}, "bytes": {sent}, "kept": {kept}}}"#
            );
        } else {
            println!("a key for {limbs:>2} limbs: {sent:>10} bytes sent, {kept:>10} kept");
        }
    }
}

/// Linear, square, linear, square, linear: each linear layer a sum of 16 products of rotated values by weights.
fn network(parameters: &Parameters, t: u64) {
    let mut setting = Setting::new(parameters, t);
    let modulus = setting.encoder.modulus().clone();
    let (mut clear, mut state) = (setting.slots.clone(), setting.fresh.clone());
    if !argument("--json") {
        println!("linear, square, linear, square, linear modulo {t}:");
    }
    report(&setting, "fresh", &state);
    for layer in 0..5 {
        if layer % 2 == 1 {
            state = setting.evaluator.square(&state, &modulus, &setting.keys).unwrap();
            clear = clear.iter().map(|x| product(*x, *x, t)).collect();
            report(&setting, "square", &state);
        } else {
            (clear, state) = linear(&mut setting, &clear, &state);
            report(&setting, "linear", &state);
        }
        let fewest = fewest_limbs(&setting, &state);
        // Sealing drops limbs by itself.
        if layer < 4 && fewest < state.limbs() {
            state = setting.evaluator.mod_switch_to(&state, fewest).unwrap();
            report(&setting, "  switched", &state);
        }
        if budget(&setting, &state) < 0.0 {
            println!("    no room for the layers that are left");
            return;
        }
    }
    setting.check(&state, |i| clear[i]);
    let plan = Budget::at(&modulus, state.noise(), state.limbs());
    let distance = plan.as_ref().map_or(0.0, |plan| plan.distance().bits());
    match plan {
        _ if argument("--json") => {
            let n = parameters.degree();
            println!(
                r#"{{"bench": "levels", "name": "sealed", "n": {n}, "t": {t}, "distance_bits": {distance:.1}}}"#
            );
        }
        Ok(plan) => {
            let (limbs, bits, sent) = (plan.flood_limbs(), plan.flood_bits(), plan.wire_limbs());
            println!(
                "    sealed: flooded at {limbs} limbs by 2^{bits}, sent at {sent}, distance 2^-{distance:.1}"
            );
        }
        Err(error) => println!("    not sealed: {error}"),
    }
}

/// The fewest limbs at which less than a bit of room is lost to rounding.
fn fewest_limbs(setting: &Setting, state: &Ciphertext) -> usize {
    let room = |limbs: &usize| {
        let noise = state.noise().switched_modulus(&setting.parameters, state.limbs(), *limbs);
        setting.parameters.log2_modulus(*limbs) - noise.needed_bits(&setting.parameters, setting.t())
    };
    let most = room(&state.limbs());
    (1..=state.limbs()).find(|limbs| room(limbs) > most - 1.0).unwrap_or(state.limbs())
}

fn linear(setting: &mut Setting, clear: &[u64], state: &Ciphertext) -> (Vec<u64>, Ciphertext) {
    let t = setting.t();
    let rotated = setting.evaluator.rotate(state, 1, &setting.keys).unwrap();
    let mut sum = LinearCombination::at(&setting.parameters, state.limbs()).unwrap();
    let mut expected = vec![0; clear.len()];
    for term in 0..TERMS {
        let weights = setting.random();
        let factor = setting.encoder.compact_multiplier(&weights).unwrap();
        sum.add(if term % 2 == 0 { state } else { &rotated }, &factor).unwrap();
        for (i, sum) in expected.iter_mut().enumerate() {
            let x = if term % 2 == 0 { clear[i] } else { clear[next(i, clear.len())] };
            *sum = (*sum + product(x, weights[i], t)) % t;
        }
    }
    (expected, sum.finish())
}

/// Bits that the noise bound leaves.
fn budget(setting: &Setting, state: &Ciphertext) -> f64 {
    let needed = state.noise().needed_bits(&setting.parameters, setting.t());
    setting.parameters.log2_modulus(state.limbs()) - needed
}

fn report(setting: &Setting, step: &str, state: &Ciphertext) {
    let measured = setting.secret.noise_bits(state, setting.encoder.modulus()).unwrap();
    let bound = state.noise().infinity(setting.parameters.degree()).log2();
    let (limbs, room) = (state.limbs(), budget(setting, state));
    if argument("--json") {
        let (n, t) = (setting.parameters.degree(), setting.t());
        println!(
            r#"{{"bench": "levels", "name": "{}", "n": {n}, "t": {t}, "limbs": {limbs}, "noise_bits": {measured:.1}, "bound_bits": {bound:.1}, "room_bits": {room:.1}}}"#,
            step.trim()
        );
    } else {
        println!(
            "    {step:<12} {limbs:>2} limbs, noise 2^{measured:<6.1} bound 2^{bound:<6.1} room {room:>6.1} bits"
        );
    }
}

/// Prints the median of repeated runs and returns the last result.
fn time(name: &str, limbs: usize, degree: usize, run: &mut dyn FnMut() -> Ciphertext) -> Ciphertext {
    let mut last = run();
    let mut seconds = Vec::with_capacity(REPEATS);
    for _ in 0..REPEATS {
        let start = Instant::now();
        last = black_box(run());
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[REPEATS / 2];
    if argument("--json") {
        println!(
            r#"{{"bench": "levels", "name": "{name}", "n": {degree}, "limbs": {limbs}, "seconds": {median:e}, "repeat": {REPEATS}}}"#
        );
    } else {
        println!("{name:<40} {limbs:>2} limbs {:>10.1} us", median * 1e6);
    }
    last
}

const REPEATS: usize = 51;

fn argument(name: &str) -> bool {
    std::env::args().any(|argument| argument == name)
}
