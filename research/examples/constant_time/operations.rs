//! The operations: what a secret is made into, and what is timed.

use std::hint::black_box;
use std::rc::Rc;

use lanner_bfv::{Ciphertext, ParameterSet, SecretKey, SlotEncoder};
use lanner_gc::library::relu_rescale;
use lanner_gc::{Evaluator, Garbler, GcError, TablesInMemory};
use lanner_ot::softspoken::punctured::{self, PUNCTURE_BLOCKS};
use lanner_ot::softspoken::{FIELD_BITS, LEAVES};
use lanner_primitives::{Bits, Block, CorrelationRobustHash, Prg, Ring, Seed, Share};
use lanner_ring::{Modulus, RnsBasis, sample};
use rand_core::Rng;

use crate::welch::test;

/// An operation and its test, which takes the number of measurements and returns the statistic.
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    /// Whether its time depends on the secret, on purpose.
    pub(crate) leaks: bool,
    pub(crate) test: Box<dyn Fn(usize) -> f64>,
}

/// The prime of slots, and a ring of powers of two.
const PRIME: u64 = 1_032_193;
const RINGS: [Ring; 2] = [Ring::Prime(PRIME), Ring::Pow2(20)];

/// Secrets in one share, bits in one vector, and blocks in another: enough that a branch in each shows.
const VALUES: usize = 512;

/// All operations: those that leak first.
pub(crate) fn operations() -> Vec<Operation> {
    let mut all: Vec<_> = controls().into();
    all.extend(RINGS.iter().zip(NAMES).flat_map(|(ring, names)| shares(*ring, names)));
    all.extend(vectors());
    all.extend(transfers());
    all.extend(sampling());
    all.extend(encryption());
    all.extend(garbling());
    all
}

fn operation(name: &'static str, test: impl Fn(usize) -> f64 + 'static) -> Operation {
    Operation { name, leaks: false, test: Box::new(test) }
}

/// What must be found.
fn controls() -> [Operation; 2] {
    let compared = |secret: &mut Vec<u64>| secret.iter().position(|word| *word != 0);
    let divided =
        |secret: &mut Vec<u64>| secret.iter().map(|word| word / black_box(PRIME)).fold(0, u64::wrapping_add);
    [
        operation("a comparison that ends where words differ", move |n| {
            test(VALUES, n, <[u64]>::to_vec, compared)
        }),
        operation("divisions", move |n| test(VALUES, n, <[u64]>::to_vec, divided)),
    ]
    .map(|operation| Operation { leaks: true, ..operation })
}

fn signed(secret: &[u64]) -> Vec<i64> {
    secret.iter().map(|word| *word as i64 >> 24).collect()
}

/// Elements below the modulus, without a branch.
fn elements(ring: Ring, secret: &[u64]) -> Share {
    let values = secret.iter().map(|word| ((u128::from(*word) * ring.modulus()) >> 64) as u64).collect();
    Share::new(ring, values).unwrap()
}

/// What is done with shares, in each ring.
const NAMES: [[&str; 4]; 2] = [
    [
        "shares of signed secrets, prime",
        "sums of shares, prime",
        "products of shares, prime",
        "opening of shares, prime",
    ],
    [
        "shares of signed secrets, 2^20",
        "sums of shares, 2^20",
        "products of shares, 2^20",
        "opening of shares, 2^20",
    ],
];

fn shares(ring: Ring, [embedding, sum, product, opening]: [&'static str; 4]) -> [Operation; 4] {
    let elements = move |secret: &[u64]| elements(ring, secret);
    let [added, opened] = [(); 2].map(|()| Share::random(ring, VALUES, &mut rng()));
    [
        operation(embedding, move |n| test(VALUES, n, signed, |secrets| Share::embed(ring, secrets))),
        operation(sum, move |n| test(VALUES, n, elements, |share| share.add(&added).unwrap())),
        operation(product, move |n| test(VALUES, n, elements, |share| share.scale(-12_345))),
        operation(opening, move |n| test(VALUES, n, elements, |share| share.reveal(&opened).unwrap())),
    ]
}

fn bits(secret: &[u64]) -> Bits {
    Bits::from_words(64 * secret.len(), secret.to_vec())
}

fn blocks(secret: &[u64]) -> Vec<Block> {
    secret.chunks_exact(2).map(|pair| Block(u128::from(pair[0]) << 64 | u128::from(pair[1]))).collect()
}

fn vectors() -> [Operation; 4] {
    let other = blocks(&words(2 * VALUES));
    let written = |bits: &mut Bits| {
        let mut copy = Bits::zeros(bits.len());
        bits.iter().enumerate().for_each(|(i, bit)| copy.set(i, bit));
        copy
    };
    let choose = move |bits: &mut Bits| -> Block {
        bits.iter().zip(&other).fold(Block::ZERO, |sum, (bit, block)| sum ^ (*block & Block::mask(bit)))
    };
    let hash = CorrelationRobustHash::new(Block(3));
    [
        operation("bits read and set", move |n| test(VALUES / 64, n, bits, written)),
        operation("blocks selected by bits", move |n| test(VALUES / 64, n, bits, &choose)),
        operation("comparison of blocks", |n| {
            test(2 * VALUES, n, blocks, |blocks| blocks.iter().filter(|block| **block == Block::ZERO).count())
        }),
        operation("hashes of blocks", move |n| {
            test(2 * VALUES, n, blocks, |blocks| hash.hash_in_place(blocks, 0))
        }),
    ]
}

fn transfers() -> [Operation; 1] {
    let tree =
        |secret: &[u64]| -> [bool; FIELD_BITS] { std::array::from_fn(|bit| secret[0] >> bit & 1 == 1) };
    let keys: [Block; FIELD_BITS] = blocks(&words(2 * FIELD_BITS)).try_into().unwrap();
    let puncture: [Block; PUNCTURE_BLOCKS] = blocks(&words(2 * PUNCTURE_BLOCKS)).try_into().unwrap();
    let complete = move |alpha: &mut [bool; FIELD_BITS]| -> [Block; LEAVES] {
        *punctured::complete(&keys, alpha, &puncture)
    };
    [operation("trees that miss a secret leaf", move |n| test(1, n, tree, complete))]
}

fn sampling() -> [Operation; 4] {
    let moduli =
        ParameterSet::C3.parameters().unwrap().moduli().iter().map(Modulus::value).collect::<Vec<_>>();
    let basis = RnsBasis::new(ParameterSet::C3.degree(), &moduli).unwrap();
    let [ternary, error, flood] = [basis.clone(), basis.clone(), basis];
    [
        operation("ternary secrets", move |n| test(2, n, generator, |rng| sample::ternary(&ternary, rng))),
        operation("errors", move |n| test(2, n, generator, |rng| sample::error(&error, rng))),
        operation("flooding noise", move |n| test(2, n, generator, |rng| sample::flood(&flood, 40, rng))),
        operation("masks of shares", |n| test(2, n, generator, |rng| Share::random(RINGS[1], VALUES, rng))),
    ]
}

fn encryption() -> [Operation; 3] {
    let parameters = ParameterSet::C3.parameters().unwrap();
    let encoder = Rc::new(SlotEncoder::new(&parameters, PRIME).unwrap());
    let key = Rc::new(SecretKey::generate(&parameters, &mut rng()));
    let encrypt = {
        let (encoder, key) = (encoder.clone(), key.clone());
        move |slots: &Share| key.encrypt(&encoder.encode(slots.values()).unwrap(), &mut rng()).unwrap()
    };
    let decrypt = {
        let encoder = encoder.clone();
        move |key: &SecretKey, sent: &Ciphertext| {
            encoder.decode(&key.decrypt(sent, encoder.modulus()).unwrap()).unwrap()
        }
    };
    let slots = |secret: &[u64]| elements(RINGS[0], secret);
    let (n, sent) = (encoder.slots(), encrypt(&slots(&words(encoder.slots()))).expand());
    let [encrypt_message, decrypt_message] = [encrypt.clone(), encrypt];
    let decrypt_with = decrypt.clone();
    [
        operation("encryption of secret slots", move |runs| {
            test(n, runs, slots, |slots| encrypt_message(slots))
        }),
        operation("decryption to secret slots", move |runs| {
            let sent = |secret: &[u64]| decrypt_message(&slots(secret)).expand();
            test(n, runs, sent, |sent| decrypt(&key, sent))
        }),
        operation("decryption with a secret key", move |runs| {
            let key = |secret: &[u64]| SecretKey::generate(&parameters, &mut generator(secret));
            test(2, runs, key, |key| decrypt_with(key, &sent))
        }),
    ]
}

/// Instances of a circuit in one test: a whole group of the kernels.
const INSTANCES: usize = 16;

fn garbling() -> [Operation; 2] {
    let circuit = Rc::new(relu_rescale(RINGS[0], 7).unwrap().circuit().clone());
    let (known, inputs) = (INSTANCES * circuit.garbler_inputs(), INSTANCES * circuit.evaluator_inputs());
    let (delta, salt) = (Block(rng().next_u64().into()).with_lsb(true), Block(5));
    let zero_labels = blocks(&words(2 * inputs));
    let garble = {
        let (circuit, zero_labels) = (circuit.clone(), zero_labels.clone());
        move |bits: &Bits| {
            let mut tables = Vec::new();
            let mut sink = |chunk: &[u8]| -> Result<(), GcError> {
                tables.extend_from_slice(chunk);
                Ok(())
            };
            let mut garbler = Garbler::new(&circuit, delta, salt, 0).unwrap();
            garbler.garble(INSTANCES, &zero_labels, bits, &mut sink).unwrap();
            tables
        }
    };
    let some = |count: usize| move |secret: &[u64]| Bits::from_words(count, secret.to_vec());
    let tables = garble(&some(known)(&words(known.div_ceil(64))));
    let labels = move |secret: &[u64]| -> Vec<Block> {
        let inputs = some(inputs)(secret);
        zero_labels.iter().zip(inputs.iter()).map(|(zero, bit)| *zero ^ (Block::mask(bit) & delta)).collect()
    };
    [
        operation("garbling with secret bits", move |n| {
            test(known.div_ceil(64), n, some(known), |bits| garble(bits))
        }),
        operation("evaluation of secret bits' labels", move |n| {
            test(inputs.div_ceil(64), n, &labels, |labels| {
                let mut evaluator = Evaluator::new(&circuit, salt, 0);
                evaluator.evaluate(INSTANCES, labels, &mut TablesInMemory::new(&tables)).unwrap()
            })
        }),
    ]
}

/// A generator whose seed is the secret.
fn generator(secret: &[u64]) -> Prg {
    Prg::new(Seed::from_bytes(blocks(secret)[0].to_bytes()))
}

/// What is not secret.
fn rng() -> Prg {
    Prg::new(Seed::from_bytes([1; 16]))
}

fn words(count: usize) -> Vec<u64> {
    let mut rng = rng();
    (0..count).map(|_| rng.next_u64()).collect()
}
