//! The check over a whole network: transposes through circuits, copies, a layer behind a layer, a shortcut, and scores that are sent.

use lanner_primitives::Prg;
use rand_core::{Rng, SeedableRng};

use super::model::{Key, Model, Q, add, lifted, modulo, negated, product, small, uniform};

/// Where a layer's input comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The network's input, or what circuit `i` makes of layer `i`.
    Input,
    Circuit(usize),
    /// Layer `i` as it is: no circuit between.
    Layer(usize),
}

struct Layer {
    source: Source,
    /// Which coefficients have value `i` of the source.
    places: Vec<Vec<usize>>,
    weights: Vec<i64>,
    outputs: Vec<usize>,
    /// What a circuit behind it adds: so many times what another circuit made.
    shortcut: Option<(u64, usize)>,
    /// Whether there is a circuit behind it.
    circuit: bool,
}

/// Four layers: a ReLU, a layer behind a layer, a shortcut and a ReLU, scores.
struct Network {
    common: Model,
    layers: Vec<Layer>,
    /// Layers whose ciphertexts the masks leave out: none in the protocol.
    uncovered: Vec<usize>,
    /// What the shortcut's transpose is multiplied by: the shortcut's own factor in the protocol.
    transposed: u64,
}

/// What a client changes.
#[derive(Clone, Default)]
struct Cheat {
    /// What is added to messages: layer, coefficient, steps.
    messages: Vec<(usize, usize, u64)>,
    /// What is added to `c0` modulo `q`.
    halves: Vec<(usize, usize, u64)>,
    /// What is added to committed inputs of circuits.
    commitments: Vec<(usize, usize, u64)>,
}

const VALUES: usize = 4;
const DROPPED: u32 = 2;

fn network() -> Network {
    let mut common = Model::new(24, vec![0; 8]);
    (common.p, common.side) = (12_289, 12_289 << 8);
    let layer = |source, weights: [i64; 8], shortcut, circuit| Layer {
        source,
        // The first value has a copy.
        places: vec![vec![0, 5], vec![1], vec![3], vec![4]],
        weights: weights.to_vec(),
        outputs: vec![1, 3, 4, 7],
        shortcut,
        circuit,
    };
    let layers = vec![
        layer(Source::Input, [2, -3, 1, 0, 5, -1, 0, 4], None, true),
        layer(Source::Circuit(0), [1, 0, -2, 0, 3, 0, 0, -1], None, false),
        layer(Source::Layer(1), [0, 1, 0, 2, -1, 0, 1, 0], Some((2, 0)), true),
        layer(Source::Circuit(2), [-1, 2, 0, 1, 0, -3, 1, 0], None, false),
    ];
    Network { common, layers, uncovered: Vec::new(), transposed: 2 }
}

struct Outcome {
    passed: bool,
    scores: Vec<i64>,
}

impl Network {
    /// `M L` as a matrix over the integers.
    fn entry(&self, layer: usize, output: usize, value: usize) -> i64 {
        let Layer { weights, outputs, places, .. } = &self.layers[layer];
        places[value].iter().map(|place| entry(weights, outputs[output], *place)).sum()
    }

    /// The scores in the clear.
    fn reference(&self, x: &[i64]) -> Vec<i64> {
        let mut sums: Vec<Vec<i64>> = Vec::new();
        let mut made: Vec<Vec<i64>> = Vec::new();
        for (number, layer) in self.layers.iter().enumerate() {
            let input = match layer.source {
                Source::Input => x,
                Source::Circuit(i) => &made[i],
                Source::Layer(i) => &sums[i],
            };
            let row = |o| (0..VALUES).map(|value| self.entry(number, o, value) * input[value]).sum::<i64>();
            let mut sum: Vec<i64> = (0..VALUES).map(row).collect();
            if let Some((factor, from)) = layer.shortcut {
                sum.iter_mut().zip(&made[from]).for_each(|(sum, value)| *sum += factor as i64 * value);
            }
            made.push(sum.iter().map(|sum| (*sum).max(0) >> DROPPED).collect());
            sums.push(sum);
        }
        sums.pop().unwrap()
    }

    fn predict(&self, x: &[i64], cheat: &Cheat, rng: &mut Prg) -> Outcome {
        let (common, n, p) = (&self.common, self.common.degree, self.common.p);
        let (a, s) = (uniform(n, Q, rng), small(n, rng));
        let b = add(&negated(&product(&s, &a)), &lifted(&small(n, rng)));
        let key = Key { s, a, b };
        let count = self.layers.len();

        // Both parties go through the layers. Shares: the client's, the server's.
        let inputs: Vec<u64> = x.iter().map(|x| modulo(*x, p)).collect();
        let mut ciphertexts: Vec<[Vec<u64>; 2]> = Vec::new();
        let mut outputs: Vec<Vec<(u64, u64)>> = Vec::new();
        let mut committed: Vec<Vec<u64>> = Vec::new();
        let mut made: Vec<Vec<(u64, u64)>> = Vec::new();
        let mut roundings: Vec<Vec<u64>> = Vec::new();
        for (number, layer) in self.layers.iter().enumerate() {
            let known: Vec<(u64, u64)> = match layer.source {
                Source::Input => inputs.iter().map(|x| (*x, 0)).collect(),
                Source::Circuit(i) => made[i].clone(),
                Source::Layer(i) => outputs[i].clone(),
            };
            let mut slots = vec![0; n];
            for (places, (own, _)) in layer.places.iter().zip(&known) {
                for place in places {
                    slots[*place] = *own;
                }
            }
            for (_, place, steps) in cheat.messages.iter().filter(|(layer, ..)| *layer == number) {
                slots[*place] = (slots[*place] + steps) % p;
            }
            let c1 = uniform(n, Q, rng);
            let fresh = add(&negated(&product(&key.s, &c1)), &lifted(&small(n, rng)));
            let mut c0 = add(&fresh, &common.scaled(&slots));
            for (_, place, added) in cheat.halves.iter().filter(|(layer, ..)| *layer == number) {
                c0[*place] = (c0[*place] + added) % Q;
            }
            let ciphertext = [c0, c1];
            let answers = common.answers(&key, &[(&layer.weights, &ciphertext)], &layer.outputs, rng);
            // The server adds its own part of the input to its share.
            let own_part =
                |o| (0..VALUES).map(|v| modulo(self.entry(number, o, v), p) * known[v].1 % p).sum::<u64>();
            let shares =
                answers.iter().enumerate().map(|(o, (own, other))| (*own, (other + own_part(o)) % p));
            let shares: Vec<(u64, u64)> = shares.collect();
            roundings.push(answers.iter().map(|(_, other)| (p - other) % p).collect());
            // What goes into the circuit: the client's part is committed.
            let mut into = shares.clone();
            if let Some((factor, from)) = layer.shortcut {
                for (into, made) in into.iter_mut().zip(&made[from]) {
                    *into = ((into.0 + factor * made.0) % p, (into.1 + factor * made.1) % p);
                }
            }
            for (_, output, added) in cheat.commitments.iter().filter(|(layer, ..)| *layer == number) {
                into[*output].0 = (into[*output].0 + added) % p;
            }
            made.push(into.iter().map(|(own, other)| self.circuit((own + other) % p, rng)).collect());
            committed.push(into.iter().map(|(own, _)| *own).collect());
            outputs.push(shares);
            ciphertexts.push(ciphertext);
        }

        // The server's secrets: a mask has coefficients for all ciphertexts.
        let of_layer = |number: &usize, rng: &mut Prg| {
            if self.uncovered.contains(number) { vec![0; n] } else { common.mask(rng) }
        };
        let masks: Vec<Vec<Vec<i64>>> =
            (0..common.masks).map(|_| (0..count).map(|number| of_layer(&number, rng)).collect()).collect();
        let checks: Vec<(u64, u64)> = masks
            .iter()
            .map(|mask| {
                let terms: Vec<_> = mask.iter().map(Vec::as_slice).zip(&ciphertexts).collect();
                common.answers(&key, &terms, &[n - 1], rng)[0]
            })
            .collect();
        let passed = (0..3).all(|_| {
            let beta = uniform(common.masks, p, rng);
            let joined = |number: usize, place: usize| {
                let terms = masks.iter().zip(&beta);
                terms.map(|(mask, beta)| modulo(mask[number][n - 1 - place], p) * beta % p).sum::<u64>() % p
            };
            let Transposes { chi, eta } = self.transposes(&joined, rng);
            let told = beta.iter().zip(&checks).map(|(beta, (own, _))| beta * own % p).sum::<u64>() % p;
            let shares = beta.iter().zip(&checks).map(|(beta, (_, other))| beta * other % p).sum::<u64>() % p;
            let (mut d, mut e) = (p - told, shares);
            d += eta[0].iter().zip(&inputs).map(|(eta, x)| eta * x % p).sum::<u64>();
            for (number, layer) in self.layers.iter().enumerate() {
                if layer.circuit {
                    // Transfers share chi times committed bits, and eta times the circuit's result.
                    d += chi[number].iter().zip(&committed[number]).map(|(chi, c)| chi * c % p).sum::<u64>();
                    let results = eta[number + 1].iter().zip(&made[number]);
                    d +=
                        results.clone().map(|(eta, (own, other))| eta * ((own + other) % p) % p).sum::<u64>();
                    e += results.map(|(eta, (_, other))| eta * other % p).sum::<u64>();
                }
                e += chi[number].iter().zip(&roundings[number]).map(|(chi, k)| chi * k % p).sum::<u64>();
            }
            d % p == e % p
        });
        let score = |(own, other): &(u64, u64)| centred((own + other) % p, p);
        Outcome { passed, scores: outputs[count - 1].iter().map(score).collect() }
    }

    /// A circuit's fresh shares of its result.
    fn circuit(&self, sum: u64, rng: &mut Prg) -> (u64, u64) {
        let p = self.common.p;
        let result = (centred(sum, p).max(0) >> DROPPED) as u64;
        let other = rng.next_u64() % p;
        ((result + p - other) % p, other)
    }

    /// The multipliers of committed outputs and of values, from the last layer to the first; `joined` is the sum of `beta_l rev(V_l)` at a coefficient.
    fn transposes(&self, joined: &dyn Fn(usize, usize) -> u64, rng: &mut Prg) -> Transposes {
        let (p, n, count) = (self.common.p, self.common.degree, self.layers.len());
        let mut chi = vec![vec![0; VALUES]; count];
        // Of the input, then of each circuit's results.
        let mut eta = vec![vec![0; VALUES]; count + 1];
        for (number, layer) in self.layers.iter().enumerate().rev() {
            if layer.circuit {
                chi[number] = uniform(VALUES, p, rng);
            }
            let psi = |place: usize| {
                let weights = layer.outputs.iter().zip(&chi[number]);
                let taken = weights.map(|(o, chi)| modulo(entry(&layer.weights, *o, place), p) * chi % p);
                (joined(number, place) + p * n as u64 - taken.sum::<u64>() % p) % p
            };
            let back: Vec<u64> = layer
                .places
                .iter()
                .map(|places| places.iter().map(|place| psi(*place)).sum::<u64>() % p)
                .collect();
            match layer.source {
                Source::Input => eta[0] = back,
                Source::Circuit(i) => {
                    eta[i + 1].iter_mut().zip(back).for_each(|(eta, back)| *eta = (*eta + back) % p);
                }
                // It is committed nowhere: its multipliers are what its reader leaves.
                Source::Layer(i) => chi[i] = back.iter().map(|back| (p - back) % p).collect(),
            }
            if let Some((_, from)) = layer.shortcut {
                for (eta, chi) in eta[from + 1].iter_mut().zip(&chi[number]) {
                    *eta = (*eta + p * self.transposed - self.transposed * chi) % p;
                }
            }
        }
        Transposes { chi, eta }
    }
}

struct Transposes {
    chi: Vec<Vec<u64>>,
    eta: Vec<Vec<u64>>,
}

/// What a product has at a coefficient for each unit at another.
fn entry(weights: &[i64], output: usize, place: usize) -> i64 {
    if place <= output { weights[output - place] } else { -weights[weights.len() + output - place] }
}

fn centred(value: u64, p: u64) -> i64 {
    if value > p / 2 { value as i64 - p as i64 } else { value as i64 }
}

#[test]
fn an_honest_client_gets_the_networks_scores() {
    let mut rng = Prg::from_seed([10; 16]);
    let network = network();
    for run in 0..50 {
        let x: Vec<i64> = (0..4).map(|i| (run * 7 + i * 5) % 33 - 16).collect();
        let outcome = network.predict(&x, &Cheat::default(), &mut rng);
        assert!(outcome.passed);
        assert_eq!(outcome.scores, network.reference(&x));
    }
}

const X: [i64; 4] = [3, -7, 12, 5];

#[test]
fn every_layers_messages_halves_and_commitments_are_checked() {
    let mut rng = Prg::from_seed([11; 16]);
    let network = network();
    let mut caught = |cheat: Cheat, what: &str| {
        assert!(!network.predict(&X, &cheat, &mut rng).passed, "{what}");
    };
    for layer in 0..4 {
        // Values, one copy of two, and unused coefficients.
        for place in 0..8 {
            let what = format!("layer {layer}, coefficient {place}");
            caught(Cheat { messages: vec![(layer, place, 1)], ..Cheat::default() }, &what);
            caught(Cheat { halves: vec![(layer, place, Q / 2)], ..Cheat::default() }, &what);
        }
    }
    for layer in [0, 2] {
        for output in 0..VALUES {
            let cheat = Cheat { commitments: vec![(layer, output, 1)], ..Cheat::default() };
            caught(cheat, &format!("layer {layer}, output {output}"));
        }
    }
}

/// Without masks on the ciphertexts of the layer behind a layer, a client that guesses weights changes its input there.
#[test]
fn an_inner_layer_without_masks_would_pass_for_the_right_guess_of_its_weights() {
    let mut rng = Prg::from_seed([12; 16]);
    let whole = network();
    let twin = Network { uncovered: vec![2], ..network() };
    let guess = |wrong: u64| {
        let taken =
            |o: usize| modulo(-entry(&whole.layers[2].weights, whole.layers[2].outputs[o], 3), 12_289);
        let mut commitments: Vec<_> = (0..VALUES).map(|o| (2, o, taken(o))).collect();
        commitments[1].2 += wrong;
        Cheat { messages: vec![(2, 3, 1)], commitments, ..Cheat::default() }
    };
    for _ in 0..20 {
        assert!(twin.predict(&X, &guess(0), &mut rng).passed);
        assert!(!twin.predict(&X, &guess(1), &mut rng).passed);
        assert!(!whole.predict(&X, &guess(0), &mut rng).passed);
    }
}

/// Scores are committed nowhere, so masks alone bind the last layer's input.
#[test]
fn scores_without_masks_would_be_those_of_another_input() {
    let mut rng = Prg::from_seed([13; 16]);
    let twin = Network { uncovered: vec![3], ..network() };
    let cheat = Cheat { messages: vec![(3, 4, 1)], ..Cheat::default() };
    let outcome = twin.predict(&X, &cheat, &mut rng);
    assert!(outcome.passed && outcome.scores != twin.reference(&X));
    assert!(!network().predict(&X, &cheat, &mut rng).passed);
}

/// An honest client would be convicted if a shortcut's factor were left out of the transposes.
#[test]
fn a_wrong_factor_of_a_shortcut_convicts_honest_clients() {
    let mut rng = Prg::from_seed([14; 16]);
    let twin = Network { transposed: 1, ..network() };
    assert!((0..20).all(|_| !twin.predict(&X, &Cheat::default(), &mut rng).passed));
}
