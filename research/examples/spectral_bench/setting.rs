//! A client with keys, a server, and how many limbs each layer has.

use std::hint::black_box;
use std::time::{Duration, Instant};

use lanner_bfv::function_privacy::Budget;
use lanner_bfv::{
    Ciphertext, EvaluationKeys, Evaluator, NeededKey, NoiseBound, ParameterSet, Parameters, PlaintextModulus,
    SecretKey, SeededCiphertext, SlotEncoder,
};
use lanner_primitives::{Prg, Seed};
use lanner_research::circulant::{Bounds, Operations};
use lanner_step::galois_element;

use crate::layer::Layer;
use crate::network::Weighted;
use crate::queue::median;
use crate::{T, json};

/// The limbs before each layer and behind the last: the fewest that leave room for all layers, and for a response that is sealed modulo three primes as those of
/// a session are.
pub(crate) struct Limbs {
    pub(crate) set: ParameterSet,
    pub(crate) of_layers: Vec<usize>,
}

impl Limbs {
    pub(crate) fn plan(layers: &[Weighted], set: ParameterSet) -> Option<Self> {
        let parameters = set.parameters().unwrap();
        let modulus = PlaintextModulus::new(&parameters, T).unwrap();
        let bounds = Bounds::new(&parameters, T, 1);
        let prepared: Vec<_> =
            layers.iter().map(|layer| layer.layer.prepare(&bounds, &layer.shape, &layer.weights)).collect();
        let from = |limbs: usize| {
            let (mut limbs, mut noise) = (limbs, NoiseBound::fresh());
            let mut of_layers = vec![limbs];
            for (layer, factors) in layers.iter().zip(&prepared) {
                let bound = layer.layer.noise(factors, noise, &parameters, limbs);
                (limbs, noise) = fewest(bound, &parameters, limbs)?;
                of_layers.push(limbs);
            }
            let responses = layers.last()?.responses() as u64 * 3;
            let distance = Budget::at(&modulus, noise, limbs).ok()?.distance();
            (distance.times(responses).times(1 << 20).bits() >= 40.0).then_some(Self { set, of_layers })
        };
        (1..=parameters.limbs()).find_map(from)
    }
}

/// The fewest limbs, and the noise there, at which half a bit of room is lost at most, if there is room.
fn fewest(
    noise: impl Fn(usize) -> NoiseBound,
    parameters: &Parameters,
    most: usize,
) -> Option<(usize, NoiseBound)> {
    let room = |limbs: usize| parameters.log2_modulus(limbs) - noise(limbs).needed_bits(parameters, T);
    let all = room(most);
    let limbs = (1..=most).find(|limbs| all > 0.0 && room(*limbs) >= all - 0.5)?;
    Some((limbs, noise(limbs)))
}

pub(crate) struct Setting {
    pub(crate) way: &'static str,
    pub(crate) set: ParameterSet,
    pub(crate) parameters: Parameters,
    pub(crate) encoder: SlotEncoder,
    pub(crate) evaluator: Evaluator,
    pub(crate) secret: SecretKey,
    pub(crate) keys: EvaluationKeys,
    rng: Prg,
    needed: Vec<NeededKey>,
    repeats: usize,
    /// Of all layers so far.
    total: (Operations, f64),
}

/// What a layer was seen to take.
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    pub(crate) operations: Operations,
    pub(crate) limbs: usize,
    /// How often it was run, if it was not run once.
    pub(crate) times: f64,
}

impl Setting {
    /// Keys for the rotations of these layers, and squares, each for the limbs there.
    pub(crate) fn new(
        way: &'static str,
        set: ParameterSet,
        layers: &[(&Layer, usize)],
        repeats: usize,
    ) -> Self {
        let parameters = set.parameters().unwrap();
        let mut rng = Prg::new(Seed::from_bytes([1; 16]));
        let secret = SecretKey::generate(&parameters, &mut rng);
        let mut needed = Vec::new();
        for (layer, limbs) in layers {
            for rotation in layer.rotations() {
                let element = galois_element(rotation, parameters.degree()).unwrap();
                needed.push(NeededKey::automorphism(element).at(*limbs));
            }
            if matches!(layer, Layer::Square) {
                needed.push(NeededKey::product().at(*limbs));
            }
        }
        let keys = EvaluationKeys::generate(&secret, &needed, &mut rng).unwrap();
        let (encoder, evaluator) = (SlotEncoder::new(&parameters, T).unwrap(), Evaluator::new(&parameters));
        let total = (Operations::NONE, 0.0);
        Self { way, set, parameters, encoder, evaluator, secret, keys, rng, needed, repeats, total }
    }

    pub(crate) fn encrypt(&mut self, slots: &[Vec<u64>], limbs: usize) -> Vec<Ciphertext> {
        let bytes = slots.len() * SeededCiphertext::encoded_len_at(&self.parameters, limbs).unwrap();
        let keys = EvaluationKeys::encoded_len(&self.parameters, &self.needed).unwrap();
        let (way, n, set, count, all) =
            (self.way, self.parameters.degree(), self.set.name(), slots.len(), self.keys.len());
        if json() {
            println!(
                r#"{{"bench": "spectral", "way": "{way}", "name": "request", "n": {n}, "ciphertexts": {count}, "limbs": {limbs}, "bytes": {bytes}, "keys": {all}, "key_bytes": {keys}}}"#
            );
        } else {
            println!(
                "{way}: set {set}, N = {n}; {count} ciphertexts of {limbs} limbs, {bytes} bytes; {all} keys, {keys} bytes"
            );
            println!(
                "  {:<34} {:>5} {:>6} {:>6} {:>6} {:>6} {:>9} {:>9} {:>12}",
                "layer", "limbs", "rot", "AddCC", "MultPC", "MultCC", "noise", "bound", "ms"
            );
        }
        let encrypt = |slots: &Vec<u64>| {
            let plaintext = self.encoder.encode(slots).unwrap();
            self.secret.encrypt_at(&plaintext, limbs, &mut self.rng).unwrap().expand()
        };
        slots.iter().map(encrypt).collect()
    }

    pub(crate) fn decrypt(&self, ciphertext: &Ciphertext) -> Vec<u64> {
        self.encoder.decode(&self.secret.decrypt(ciphertext, self.encoder.modulus()).unwrap()).unwrap()
    }

    /// The median of repeated measurements, in milliseconds, after one run that is not timed, and the result. What takes less than a tenth of a second is run for as
    /// long, since clocks of threads may tick slowly.
    pub(crate) fn time<R>(&self, mut run: impl FnMut() -> R) -> (R, f64) {
        let start = Instant::now();
        let mut last = run();
        let runs = (0.1 / start.elapsed().as_secs_f64()).ceil().max(1.0) as u32;
        let mut times = Vec::with_capacity(self.repeats);
        for _ in 0..self.repeats {
            let (start, thread) = (Instant::now(), thread_time());
            for _ in 0..runs {
                last = black_box(run());
            }
            let (wall, thread) = (start.elapsed(), thread_time().saturating_sub(thread));
            let time = if thread.is_zero() { wall } else { thread } / runs;
            times.push(time.as_secs_f64() * 1e3);
        }
        (last, median(times))
    }

    /// Prints what a layer took, beside the noise of its result before limbs are dropped, which its bound holds.
    pub(crate) fn report(&mut self, measured: &Measured, milliseconds: f64, result: &Ciphertext) {
        let Measured { name, operations, limbs, times } = measured;
        let milliseconds = milliseconds * times;
        let noise = self.secret.noise_bits(result, self.encoder.modulus()).unwrap();
        let bound = result.noise().infinity(self.parameters.degree()).log2();
        assert!(noise < bound, "{name}: noise of {noise} bits, bound to {bound}");
        self.total = (self.total.0 + *operations, self.total.1 + milliseconds);
        let (way, repeats) = (self.way, self.repeats);
        let Operations { rotations, additions, multiplications, ciphertext_multiplications } = operations;
        if json() {
            println!(
                r#"{{"bench": "spectral", "way": "{way}", "name": "{name}", "n": {}, "limbs": {limbs}, "rotations": {rotations}, "additions": {additions}, "multiplications": {multiplications}, "ciphertext_multiplications": {ciphertext_multiplications}, "noise_bits": {noise:.1}, "bound_bits": {bound:.1}, "milliseconds": {milliseconds:.2}, "repeat": {repeats}}}"#,
                self.parameters.degree()
            );
        } else {
            println!(
                "  {name:<34} {limbs:>5} {rotations:>6} {additions:>6} {multiplications:>6} {ciphertext_multiplications:>6} {noise:>9.1} {bound:>9.1} {milliseconds:>12.1}"
            );
        }
    }

    /// The sums of all layers.
    pub(crate) fn finish(self) {
        let (Operations { rotations, additions, multiplications, ciphertext_multiplications }, milliseconds) =
            self.total;
        if !json() {
            println!(
                "  {:<34} {:>5} {rotations:>6} {additions:>6} {multiplications:>6} {ciphertext_multiplications:>6} {:>9} {:>9} {milliseconds:>12.1}",
                "together", "", "", ""
            );
        }
    }
}

/// The time this thread has had a processor, where the system tells: on a machine that others use too, this is what a
/// core of its own would give.
fn thread_time() -> Duration {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let running = statistics.split_whitespace().next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(running.unwrap_or_default())
}
