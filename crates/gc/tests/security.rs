//! Properties whose loss would make a build insecure, and a digest of the bytes.

use std::collections::HashSet;

use crate::support::{BATCH, Garbling, clear, garble, prg};
use lanner_gc::library::{max_pool_relu_rescale, relu_rescale};
use lanner_gc::{Backend, Circuit, CircuitBuilder, Garbler, GcError};
use lanner_primitives::{Bits, Block, Ring};
use sha2::{Digest, Sha256};

const INSTANCES: usize = 48;

fn relu() -> Circuit {
    relu_rescale(Ring::Prime(1_032_193), 7).unwrap().circuit().clone()
}

fn rows(garbling: &Garbling) -> Vec<u128> {
    garbling.tables.chunks(16).map(|row| u128::from_le_bytes(row.try_into().unwrap())).collect()
}

/// Known wires meet evaluator's wires and each other in every gate, alike in every instance.
fn circuit_of_known_wires() -> Circuit {
    let mut builder = CircuitBuilder::new();
    let (x, s) = (builder.evaluator_word(4), builder.garbler_word(4));
    let mut outputs = builder.mask_word(s[0], &x);
    outputs.extend(builder.mux_word(x[0], &s, &x));
    outputs.extend(builder.add(&s, &x));
    // A wire that the garbler knows, though evaluator's wires were used on the way.
    let around = builder.xor(x[1], s[1]);
    let back = builder.xor(around, x[1]);
    outputs.push(builder.and(back, x[2]));
    outputs.push(builder.and(back, s[3]));
    builder.build(&outputs).unwrap()
}

/// Instances share keys, so a pad that two instances share would show as rows that differ by delta or by nothing.
#[test]
fn no_two_rows_are_equal_or_differ_by_delta() {
    for circuit in [relu(), circuit_of_known_wires()] {
        let mut prg = prg(1);
        let known = Bits::random(INSTANCES * circuit.garbler_inputs(), &mut prg);
        for &backend in Backend::available() {
            let garbling = garble(&circuit, INSTANCES, &known, 2, backend);
            let rows = rows(&garbling);
            let delta = u128::from_le_bytes(garbling.delta.to_bytes());
            let distinct: HashSet<u128> = rows.iter().copied().collect();
            assert_eq!(distinct.len(), rows.len());
            assert!(rows.iter().all(|row| *row != 0 && *row != delta && !distinct.contains(&(row ^ delta))));
        }
    }
}

#[test]
fn known_wires_gates_among_themselves_are_free() {
    let mut builder = CircuitBuilder::new();
    let s = builder.garbler_word(8);
    let (sum, carry) = builder.add_carry(&s[..4], &s[4..], s[0]);
    let outputs: Vec<_> = sum.into_iter().chain([carry]).collect();
    let circuit = builder.build(&outputs).unwrap();
    assert_eq!((circuit.and_count(), circuit.table_bytes(100)), (0, 0));
}

#[test]
fn fresh_batches_and_salts_give_unrelated_tables() {
    let circuit = relu();
    let known = Bits::zeros(16 * circuit.garbler_inputs());
    let base = garble(&circuit, 16, &known, 3, Backend::PORTABLE);
    let mut tables = vec![base.tables.clone()];
    for (salt, batch) in [(base.salt, BATCH + 1), (base.salt ^ Block::from(1 << 127), BATCH)] {
        let mut bytes = Vec::new();
        let mut sink = |chunk: &[u8]| -> Result<(), GcError> {
            bytes.extend_from_slice(chunk);
            Ok(())
        };
        let mut garbler = Garbler::new(&circuit, base.delta, salt, batch).unwrap();
        garbler.garble(16, &base.zero_labels, &known, &mut sink).unwrap();
        tables.push(bytes);
    }
    for (i, a) in tables.iter().enumerate() {
        for b in &tables[..i] {
            assert!(a.chunks(16).zip(b.chunks(16)).all(|(x, y)| x != y));
        }
    }
}

/// Flipped bits of one gate's rows change the outputs of their instance with good odds, and no other instance's.
#[test]
fn corrupted_tables_give_wrong_outputs() {
    let circuit = relu();
    let mut prg = prg(4);
    let inputs = Bits::random(INSTANCES * circuit.evaluator_inputs(), &mut prg);
    let known = Bits::random(INSTANCES * circuit.garbler_inputs(), &mut prg);
    let expected = clear(&circuit, INSTANCES, &inputs, &known);
    for &backend in Backend::available() {
        let mut garbling = garble(&circuit, INSTANCES, &known, 5, backend);
        let mut wrong = 0;
        for gate in 0..circuit.and_count() {
            // Both half gates of lane 3 of the second group.
            let row = (circuit.and_count() + gate) * 512 + 3 * 16;
            // The flips differ, so that they do not cancel where both half gates are used.
            garbling.tables[row] ^= 1;
            garbling.tables[row + 256] ^= 3;
            let got = garbling.evaluate(&circuit, INSTANCES, &inputs, backend);
            let differ: Vec<_> = (0..got.len()).filter(|i| got.get(*i) != expected.get(*i)).collect();
            assert!(differ.iter().all(|i| i / circuit.outputs() == 19));
            wrong += usize::from(!differ.is_empty());
            garbling.tables[row] ^= 1;
            garbling.tables[row + 256] ^= 3;
        }
        // A half gate is used, and a wrong label has another colour, every second time.
        assert!(wrong * 4 > circuit.and_count(), "{wrong} corruptions seen");
    }
}

/// The evaluator's colour bits are uniform whatever the inputs: chi-square of each output over many garblings.
#[test]
fn output_shares_are_uniform() {
    let circuit = relu();
    let instances = 4096;
    let inputs = Bits::zeros(instances * circuit.evaluator_inputs());
    let known = Bits::zeros(instances * circuit.garbler_inputs());
    let garbling = garble(&circuit, instances, &known, 6, Backend::detect());
    let outputs = garbling.evaluate(&circuit, instances, &inputs, Backend::detect());
    let colours = outputs.xor(&garbling.permute).unwrap();
    for output in 0..circuit.outputs() {
        let ones = (0..instances).filter(|i| colours.get(i * circuit.outputs() + output)).count() as f64;
        let (n, expected) = (instances as f64, instances as f64 / 2.0);
        // One degree of freedom: 23.9 has probability 1e-6.
        let chi_square = 4.0 * (ones - expected).powi(2) / n;
        assert!(chi_square < 23.9, "output {output}: {ones} ones");
    }
}

/// A changed byte of the protocol is noticed here.
#[test]
fn tables_have_their_known_digest() {
    let circuit = max_pool_relu_rescale(Ring::Prime(1_032_193), 4, 7).unwrap().circuit().clone();
    let known = Bits::random(37 * circuit.garbler_inputs(), &mut prg(7));
    for &backend in Backend::available() {
        let garbling = garble(&circuit, 37, &known, 8, backend);
        let mut hash = Sha256::new();
        hash.update(&garbling.tables);
        hash.update(garbling.permute.to_bytes());
        let digest = u128::from_be_bytes(hash.finalize()[..16].try_into().unwrap());
        assert_eq!(digest, 0xef80_cb8e_be0a_c578_5b42_679a_6959_c90e, "{backend:?} gives {digest:x}");
    }
}
