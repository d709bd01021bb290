//! What a client that deviates learns of the weights, in modes that trust it: one change each of a real client, which the server does not notice. These are the
//! attacks of `SECURITY.md`, and the numbers of queries there are counted here.

use lanner_attacks::deviant::Pair;
use lanner_attacks::models::{Subject, hidden};
use lanner_bfv::function_privacy::{SealedC0, SealedC1};
use lanner_bfv::halves::C0;
use lanner_bfv::{CoefficientEncoder, Parameters, Plaintext, SlotEncoder};
use lanner_packed::falcon::{Linear, Packing, Spectrum};
use lanner_primitives::Share;
use lanner_protocol::Protocol;
use lanner_session::executor::Outcome;
use lanner_wire::{Encode, Kind};

const LINEAR_INPUT: Kind = Kind(0x40);
const LINEAR_OUTPUT: Kind = Kind(0x41);
const LINEAR_SECOND_HALF: Kind = Kind(0x43);

/// The weights of the layers, first to last, each row by row.
fn weights(subject: &Subject) -> Vec<Vec<i64>> {
    let network = subject.model.network();
    (0..network.public().nodes().len())
        .filter_map(|node| network.weights(node))
        .map(|weights| weights.weight().to_vec())
        .collect()
}

/// Which class a column of the last layer speaks for most.
fn favourite(column: &[i64]) -> usize {
    lanner_network::arg_max(&column.iter().map(|weight| i128::from(*weight)).collect::<Vec<_>>())
}

/// The columns of a layer of three rows.
fn columns(weights: &[i64]) -> Vec<[i64; 3]> {
    let inputs = weights.len() / 3;
    (0..inputs).map(|i| std::array::from_fn(|row| weights[row * inputs + i])).collect()
}

/// **Shifted shares.** The client adds 8 to its share of one value between two layers, and the next layer is computed on what no input gives. A query for each
/// input of the last layer gives all of its weights, if scores are told.
#[test]
fn shifted_shares_give_the_last_layer_a_query_for_each_of_its_inputs() {
    let subject = hidden("falcon", "logits");
    let truth = columns(weights(&subject).last().unwrap());
    let mut pair = Pair::of(&subject);
    let mut ask = |shift: Option<usize>| {
        let Outcome::Logits(scores) = shifted(&mut pair, &subject, shift) else { panic!("no scores") };
        scores
    };
    let honest = ask(None);
    for (value, truth) in truth.iter().enumerate() {
        let shifted = ask(Some(value));
        let read: Vec<i128> = shifted.iter().zip(&honest).map(|(s, h)| (s - h) / 8).collect();
        assert_eq!(read, truth.map(i128::from), "value {value}");
    }
}

/// The same where labels alone are told: a query for each hidden value tells which class it speaks for.
#[test]
fn shifted_shares_tell_what_each_hidden_value_speaks_for_by_labels_alone() {
    let subject = hidden("falcon", "label");
    let truth = columns(weights(&subject).last().unwrap());
    let mut pair = Pair::of(&subject);
    let read: Vec<usize> = (0..truth.len())
        .map(|value| match shifted(&mut pair, &subject, Some(value)) {
            Outcome::Label(label) => label,
            _ => panic!("no label"),
        })
        .collect();
    let truth: Vec<usize> = truth.iter().map(|column| favourite(column)).collect();
    assert_eq!(read, truth);
    // The honest answer to the same input is one class.
    assert!((0..3).all(|class| truth.contains(&class)));
}

/// The result for an input of zeros, with 8 added to one value in front of the last layer.
fn shifted(pair: &mut Pair, subject: &Subject, value: Option<usize>) -> Outcome {
    let (first, last) = (Layer::of(subject, 0), Layer::of(subject, 1));
    let [before, _] = first.packing.ciphertexts();
    let mut number = 0;
    let added = value.map(|value| {
        let mut share = vec![0; last.packing.shape().inputs()];
        share[value] = 8;
        last.packed(&share)
    });
    let seen = pair.predict(&vec![0; subject.input.len()], |kind, payload| {
        if kind == LINEAR_INPUT {
            if let (Some(added), Some(own)) = (&added, usize::checked_sub(number, before)) {
                let mut half = C0::from_bytes(&last.parameters, payload).unwrap();
                half.add_plain(&added[own]).unwrap();
                *payload = half.to_bytes();
            }
            number += 1;
        }
    });
    seen.outcome
}

/// A layer as both parties lay it out.
struct Layer {
    parameters: Parameters,
    prime: u64,
    packing: Packing,
}

impl Layer {
    fn of(subject: &Subject, number: usize) -> Self {
        let layers = subject.protocols.steps().filter_map(|step| match &step.protocol {
            Protocol::FalconLinear(linear) => Some(linear.clone()),
            _ => None,
        });
        let layers: Vec<Linear> = layers.collect();
        let Linear { shape, prime, set, variant } = layers[number].clone();
        assert!(layers.iter().all(|other| other.set == set), "one key");
        let parameters = set.parameters().unwrap();
        let packing = Packing::new(&shape, prime, parameters.degree(), variant).unwrap();
        Self { parameters, prime, packing }
    }

    /// The coefficients that the first input is multiplied by for the first output, as integers about 0.
    fn factor(&self, weights: &[i64]) -> Vec<i64> {
        let spectrum = Spectrum::new(&self.packing).unwrap();
        let slots = &spectrum.multipliers(&self.packing.outputs()[0], weights)[0];
        let encoded = SlotEncoder::new(&self.parameters, self.prime).unwrap().encode(slots).unwrap();
        let coefficients = self.encoder(1).decode(&encoded).unwrap();
        coefficients
            .iter()
            .map(|c| *c as i64 - if *c > self.prime / 2 { self.prime as i64 } else { 0 })
            .collect()
    }

    /// The messages of a share of the input.
    fn packed(&self, share: &[i64]) -> Vec<Plaintext> {
        let spectrum = Spectrum::new(&self.packing).unwrap();
        let packed = spectrum.pack(&Share::embed(spectrum.ring(), share)).unwrap();
        let encoder = SlotEncoder::new(&self.parameters, self.prime).unwrap();
        packed.iter().map(|slots| encoder.encode(slots).unwrap()).collect()
    }

    fn encoder(&self, finer: u64) -> CoefficientEncoder {
        CoefficientEncoder::new(&self.parameters, finer * self.prime).unwrap()
    }

    /// The noise of an output, in sixteenths of a step of the plaintext: as if messages were modulo 16 p.
    fn noise(&self, pair: &Pair, second: &[u8], first: &[u8]) -> Vec<i64> {
        let finer = self.encoder(16);
        let second = SealedC1::from_bytes(finer.modulus(), second).unwrap();
        let decryption = pair.secret_key(&self.parameters).prepare_decryption(second).unwrap();
        let half = SealedC0::from_bytes(finer.modulus(), first).unwrap();
        let phases = finer.decode(&decryption.decrypt(&half).unwrap()).unwrap();
        phases.iter().map(|phase| (phase % 16) as i64).collect()
    }
}

/// One query in which the first ciphertext of each of two layers is off by `q / (2^bits p)`: the noise of each layer's first output.
fn noises(pair: &mut Pair, layers: &[Layer; 2], input: &[i64], bits: Option<u32>) -> [Vec<i64>; 2] {
    let mut number = 0;
    let seen = pair.predict(input, |kind, payload| {
        if kind == LINEAR_INPUT {
            let layer = [0, layers[0].packing.ciphertexts()[0]].iter().position(|first| *first == number);
            if let (Some(bits), Some(layer)) = (bits, layer.map(|layer| &layers[layer])) {
                let mut half = C0::from_bytes(&layer.parameters, payload).unwrap();
                half.add_plain(&layer.encoder(1 << bits).encode(&[1]).unwrap()).unwrap();
                *payload = half.to_bytes();
            }
            number += 1;
        }
    });
    let [_, outputs] = layers[0].packing.ciphertexts();
    let message = |kind, number| {
        let mut frames = seen.heard.iter().filter(|frame| frame.kind == kind);
        &frames.nth(number).unwrap().payload
    };
    std::array::from_fn(|layer| {
        let first = layer * outputs;
        layers[layer].noise(pair, message(LINEAR_SECOND_HALF, first), message(LINEAR_OUTPUT, first))
    })
}

/// **Oversized noise.** Ciphertexts that are off by half a step: by whether noise comes back, the client reads the lowest bit of each coefficient of the encoded
/// weights, of all layers, whatever the result says.
#[test]
fn half_a_step_of_noise_tells_a_bit_of_every_encoded_weight_in_one_query() {
    let subject = hidden("falcon", "label");
    let layers = [0, 1].map(|number| Layer::of(&subject, number));
    let all = weights(&subject);
    let mut pair = Pair::of(&subject);
    let [honest, cheating] = [None, Some(1)].map(|bits| noises(&mut pair, &layers, &subject.input, bits));
    for (number, layer) in layers.iter().enumerate() {
        let truth = layer.factor(&all[number]);
        let right = |noise: &[i64]| {
            let guesses = noise.iter().map(|noise| i64::from((4..12).contains(noise)));
            let right = guesses.zip(&truth).filter(|(guess, weight)| *guess == **weight & 1).count();
            right as f64 / truth.len() as f64
        };
        let [honest, cheating] = [right(&honest[number]), right(&cheating[number])];
        println!("layer {number}: {honest} of bits right in an honest query, {cheating} in a cheating one");
        // A coin is right half of the time, give or take six deviations.
        assert!((honest - 0.5).abs() < 3.0 / (truth.len() as f64).sqrt(), "layer {number}: {honest}");
        assert!(cheating > 0.8, "layer {number}: {cheating}");
    }
}

/// The same time and again, a bit further up each time: all weights of all layers, by labels alone.
#[test]
fn some_hundred_queries_give_all_weights_by_labels_alone() {
    /// How often a bit is asked for: noise hides it in up to one query of seven.
    const VOTES: u32 = 16;
    if !lanner_attacks::extent::is_whole() {
        return;
    }
    let subject = hidden("falcon", "label");
    let layers = [0, 1].map(|number| Layer::of(&subject, number));
    let mut pair = Pair::of(&subject);
    let mut read = [0, 1].map(|layer: usize| vec![0_i64; layers[layer].parameters.degree()]);
    let bits = u64::BITS - layers[0].prime.max(layers[1].prime).leading_zeros();
    let mut queries = 0;
    for bit in 0..bits {
        let mut votes = [0, 1].map(|layer: usize| vec![0.0; read[layer].len()]);
        for _ in 0..VOTES {
            queries += 1;
            let noises = noises(&mut pair, &layers, &subject.input, Some(bit + 1));
            for ((votes, noise), read) in votes.iter_mut().zip(noises).zip(&read) {
                for ((vote, noise), known) in votes.iter_mut().zip(noise).zip(read) {
                    // In turns: what is known of the weight, then half a turn for its next bit.
                    let expected = *known as f64 / f64::from(1_u32 << (bit + 1));
                    *vote += (std::f64::consts::TAU * (noise as f64 / 16.0 - expected)).cos();
                }
            }
        }
        for (read, vote) in read.iter_mut().flatten().zip(votes.iter().flatten()) {
            *read |= i64::from(*vote < 0.0) << bit;
        }
    }
    let centred = |value: &i64| if value >> (bits - 1) == 1 { value - (1 << bits) } else { *value };
    for ((layer, read), weights) in layers.iter().zip(&read).zip(weights(&subject)) {
        assert!(read.iter().map(centred).eq(layer.factor(&weights)));
    }
    println!("all {} coefficients of both layers' encoded weights, in {queries} queries", 2 * read[0].len());
}
