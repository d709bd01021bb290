//! What the client can see: masks in every slot, transcripts that tell the shape alone, and no weights in the second halves.

use lanner_bfv::function_privacy::{Defect, SealedC0, SealedC1, Sealing};
use lanner_bfv::halves::C1;
use lanner_bfv::{Blinding, Ciphertext, Multiplier, ParameterSet, Plaintext, SlotEncoder};
use lanner_packed::falcon::{EncryptedProducts, Packing, Spectrum, Variant, evaluate, output_noise};
use lanner_primitives::{Prg, Ring, Share};
use lanner_step::{Convolution, Sets};
use lanner_testkit::{chi_square_limit, uniform_chi_square};
use lanner_wire::Encode;
use rand_core::Rng;

use crate::common::{Party, Session, rng};
use crate::falcon::clear::{convolution, multipliers};
use crate::falcon::encrypted::{MOST_TERMS, layer};

const P: u64 = 1_032_193;
const BINS: usize = 64;

fn packings() -> Vec<Packing> {
    let new = |shape: &Convolution, variant| Packing::new(shape, P, 8192, variant).unwrap();
    let folded = |copies| Variant::Folded { copies };
    let image = Convolution { pads: [1; 4], ..convolution([3, 2], [16, 16], [3, 3]) };
    vec![
        new(&Convolution::fully_connected(64, 3), folded(3)),
        new(&image, folded(1)),
        new(&image, folded(2)),
        new(&image, Variant::Literal),
        // Slots of a second ciphertext that no plane fills; groups; a plane in two parts.
        new(&Convolution { pads: [1; 4], ..convolution([13, 1], [16, 16], [3, 3]) }, folded(1)),
        new(&Convolution { groups: 4, pads: [1; 4], ..convolution([4, 4], [16, 16], [3, 3]) }, folded(1)),
        new(&convolution([1, 1], [70, 70], [3, 3]), folded(1)),
    ]
}

#[test]
fn transcripts_are_alike_and_every_slot_is_uniform_whatever_the_weights() {
    let sets = Sets::new().unwrap();
    let parameters = sets.get(ParameterSet::A2).unwrap();
    let encoder = SlotEncoder::new(parameters, P).unwrap();
    let mut session = Session::of(ParameterSet::A2, []);
    for packing in packings() {
        let shape = packing.shape();
        let mut transcripts = Vec::new();
        for (weight, input) in [(0, 0), (127, 255), (-127, -255)] {
            let (weights, bias) = (vec![weight; shape.weights()], vec![0; shape.outputs().unwrap()]);
            let share = Share::embed(Ring::Prime(P), &vec![input; shape.inputs()]);
            let nothing = Share::zero(Ring::Prime(P), shape.inputs());
            let (_, _, channels) =
                layer(&packing, parameters, &mut session, (&weights, &bias), (&share, &nothing));
            let mut slots = Vec::new();
            for (first, second) in channels.1.sent_of(0x41).into_iter().zip(channels.1.sent_of(0x43)) {
                let second = SealedC1::from_bytes(encoder.modulus(), second).unwrap();
                let first = SealedC0::from_bytes(encoder.modulus(), first).unwrap();
                let message = session.secret().prepare_decryption(second).unwrap().decrypt(&first).unwrap();
                slots.push(encoder.decode(&message).unwrap());
            }
            assert_eq!(slots.len(), packing.ciphertexts()[1]);
            for slots in &slots {
                assert!(is_uniform(slots), "{:?}, weights {weight}", packing.variant());
            }
            assert!(slots.windows(2).all(|pair| equal_slots(&pair[0], &pair[1]) < 20), "a mask used twice");
            let lengths = |party: &Party| {
                party.sent.iter().map(|(kind, body)| (kind.0, body.len())).collect::<Vec<_>>()
            };
            transcripts.push([lengths(&channels.0), lengths(&channels.1)]);
        }
        assert!(transcripts.windows(2).all(|pair| pair[0] == pair[1]), "{:?}", packing.variant());
    }
}

fn is_uniform(slots: &[u64]) -> bool {
    let mut bins = [0; BINS];
    for slot in slots {
        bins[(*slot * BINS as u64 / P) as usize] += 1;
    }
    uniform_chi_square(&bins) < chi_square_limit(BINS - 1)
}

fn equal_slots(a: &[u64], b: &[u64]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a == b).count()
}

#[test]
fn a_layer_without_masks_would_be_noticed() {
    // The transform of a constant image is zero but in one place.
    let packing = &packings()[1];
    let spectrum = Spectrum::new(packing).unwrap();
    let slots = spectrum.pack(&Share::embed(Ring::Prime(P), &vec![255; packing.shape().inputs()])).unwrap();
    assert!(!is_uniform(&slots[0]));
}

#[test]
fn layouts_and_work_depend_on_the_shape_alone() {
    for packing in packings() {
        let spectrum = Spectrum::new(&packing).unwrap();
        let count = packing.operations().multiplications;
        let zero = multipliers(&spectrum, &vec![0; packing.shape().weights()]);
        assert!(zero.len() == count && zero.iter().flatten().all(|slot| *slot == 0));
        // A multiplier of zero weights is there like any other.
        let one = multipliers(&spectrum, &vec![1; packing.shape().weights()]);
        assert!(one.iter().all(|slots| slots.iter().any(|slot| *slot != 0)), "{:?}", packing.variant());
    }
}

/// A layer of two weights, and what its server makes of a seed without a protection.
struct Attack {
    packing: Packing,
    sets: Sets,
}

impl Attack {
    fn new() -> Self {
        let shape = Convolution::fully_connected(2, 1);
        Self { packing: Packing::new(&shape, P, 8192, Variant::Literal).unwrap(), sets: Sets::new().unwrap() }
    }

    fn c1(&self, weights: &[i64], seed: &[u8]) -> Vec<u8> {
        let parameters = self.sets.get(ParameterSet::A2).unwrap();
        let encoder = SlotEncoder::new(parameters, P).unwrap();
        let input = C1::from_bytes(seed).unwrap().expand(parameters);
        let slots = multipliers(&Spectrum::new(&self.packing).unwrap(), weights);
        let factors: Vec<Multiplier> = slots.iter().map(|slots| encoder.multiplier(slots).unwrap()).collect();
        let inputs = [input];
        let scheme = EncryptedProducts { parameters };
        let output: Ciphertext = evaluate(&scheme, &self.packing, &factors, &inputs).next().unwrap().unwrap();
        let noise = output_noise(&self.packing, parameters);
        let session = Session::of(ParameterSet::A2, []);
        let public = &session.keys().public;
        let blinding = Blinding::prepare(encoder.modulus(), public, noise, &mut rng(7)).unwrap();
        let mask = encoder.encode(&vec![0; 8192]).unwrap();
        let blinding = blinding.broken(Defect::NoEncryptionOfZero);
        Sealing::new(&output, blinding, &mask).unwrap().0.to_bytes()
    }
}

#[test]
fn weights_are_found_from_c1_without_the_encryption_of_zero_and_not_with_it() {
    let attack = Attack::new();
    let parameters = attack.sets.get(ParameterSet::A2).unwrap();
    let weights = [3, -2];
    let candidates: Vec<[i64; 2]> = (-3..4).flat_map(|a| (-3..4).map(move |b| [a, b])).collect();
    let explanations = |seed: &[u8], second: &[u8]| -> Vec<[i64; 2]> {
        let explains = |weights: &&[i64; 2]| attack.c1(*weights, seed) == second;
        candidates.iter().filter(explains).copied().collect()
    };
    let share = Share::zero(Ring::Prime(P), 2);
    let (_, _, channels) = layer(
        &attack.packing,
        parameters,
        &mut Session::of(ParameterSet::A2, []),
        (&weights, &[0]),
        (&share, &share),
    );
    let (seed, second) = (channels.0.sent_of(0x42)[0], channels.1.sent_of(0x43)[0]);
    let broken = attack.c1(&weights, seed);
    assert_eq!(explanations(seed, &broken), [weights], "the attack works on the broken server");
    assert!(explanations(seed, second).is_empty(), "the attack works on the real server");
}

/// Multipliers whose coefficients are all as large as they can be, and as many terms as are allowed.
#[test]
fn measured_noise_of_the_largest_weights_is_below_its_bound() {
    let sets = Sets::new().unwrap();
    for (set, terms) in [(ParameterSet::A2, MOST_TERMS), (ParameterSet::B, 30)] {
        let parameters = sets.get(set).unwrap();
        let degree = parameters.degree();
        let encoder = SlotEncoder::new(parameters, P).unwrap();
        let session = Session::of(set, []);
        let shape = Convolution::fully_connected(degree * terms, 1);
        let packing = Packing::new(&shape, P, degree, Variant::Folded { copies: 1 }).unwrap();
        assert_eq!(packing.terms(), terms);
        let mut rng: Prg = rng(8);
        let edge = |bit: bool| if bit { P / 2 } else { P / 2 + 1 };
        let coefficients = (0..degree).map(|_| edge(rng.next_u64() & 1 == 1)).collect();
        let worst = Plaintext::new(encoder.modulus(), coefficients).unwrap();
        let factors = vec![encoder.multiplier(&encoder.decode(&worst).unwrap()).unwrap(); terms];
        let message = encoder.encode(Share::random(Ring::Prime(P), degree, &mut rng).values()).unwrap();
        let evaluator = lanner_bfv::Evaluator::new(parameters);
        let mut encrypt = |_| {
            let fresh = session.secret().encrypt(&message, &mut rng).unwrap().expand();
            evaluator.add_plain(&fresh, &message).unwrap()
        };
        let inputs: Vec<Ciphertext> = (0..terms).map(&mut encrypt).collect();
        let scheme = EncryptedProducts { parameters };
        let output = evaluate(&scheme, &packing, &factors, &inputs).next().unwrap().unwrap();
        let bound = output_noise(&packing, parameters);
        let measured = session.secret().noise_bits(&output, encoder.modulus()).unwrap();
        let limit = bound.infinity(degree).log2();
        assert!(output.noise().deviation() <= bound.deviation() * (1.0 + 1e-9));
        assert!(measured < limit, "{measured} bits, bound {limit}");
        assert!(measured > limit - 8.0, "the bound is far off: {measured} bits, bound {limit}");
    }
}
