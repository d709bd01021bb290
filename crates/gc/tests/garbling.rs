//! Garbled evaluation equals clear evaluation, on every backend, byte for byte.

use crate::support::check;
use lanner_gc::{CircuitBuilder, Wire};
use proptest::prelude::*;

/// Gate `kind` of every pair of kinds of operands: evaluator's, garbler's, constants, their inverses.
#[test]
fn every_gate_on_every_kind_of_operand() {
    for kind in 0..4 {
        let mut builder = CircuitBuilder::new();
        let (x, y) = (builder.evaluator_input(), builder.evaluator_input());
        let (s, t) = (builder.garbler_input(), builder.garbler_input());
        let secret = builder.and(x, y);
        let mixed = builder.xor(x, s);
        let operands = [x, !x, y, !y, s, !s, t, !t, secret, !secret, mixed, !mixed, Wire::ZERO, Wire::ONE];
        let mut outputs = Vec::new();
        for a in operands {
            for b in operands {
                outputs.push(match kind {
                    0 => builder.xor(a, b),
                    1 => builder.and(a, b),
                    2 => builder.or(a, b),
                    _ => builder.mux(a, b, x),
                });
            }
        }
        let circuit = builder.build(&outputs).unwrap();
        for bits in 0..16_u32 {
            let [x, y, s, t] = [0, 1, 2, 3].map(|i| bits >> i & 1 == 1);
            let got = circuit.evaluate_clear(&[x, y], &[s, t]).unwrap();
            let (secret, mixed) = (x & y, x ^ s);
            let operands = [x, !x, y, !y, s, !s, t, !t, secret, !secret, mixed, !mixed, false, true];
            let mut index = 0;
            for a in operands {
                for b in operands {
                    let expected = match kind {
                        0 => a ^ b,
                        1 => a & b,
                        2 => a | b,
                        _ => {
                            if a {
                                b
                            } else {
                                x
                            }
                        }
                    };
                    assert_eq!(got[index], expected, "kind {kind}, operands {index}, inputs {bits:04b}");
                    index += 1;
                }
            }
        }
        // 64 instances of random inputs meet every combination.
        check(&circuit, 64, kind);
    }
}

#[test]
fn instances_need_not_fill_groups() {
    let mut builder = CircuitBuilder::new();
    let (a, b) = (builder.evaluator_word(20), builder.garbler_word(20));
    let sum = builder.add(&a, &b);
    let masked = builder.mask_word(a[3], &sum);
    let circuit = builder.build(&masked).unwrap();
    for instances in [0, 1, 2, 15, 16, 17, 31, 33, 100] {
        check(&circuit, instances, instances as u8);
    }
}

/// Operations of a random circuit: gate kind and operands as positions among the wires so far.
fn gates() -> impl Strategy<Value = Vec<(u8, u16, u16, bool)>> {
    prop::collection::vec((0..4_u8, any::<u16>(), any::<u16>(), any::<bool>()), 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn random_circuits(gates in gates(), instances in 1_usize..40, seed: u8) {
        let mut builder = CircuitBuilder::new();
        let mut wires = vec![Wire::ZERO, Wire::ONE];
        wires.extend(builder.evaluator_word(6));
        wires.extend(builder.garbler_word(4));
        for (kind, a, b, inverted) in gates {
            let (a, b) = (wires[a as usize % wires.len()], wires[b as usize % wires.len()]);
            let out = match kind {
                0 => builder.xor(a, b),
                3 => builder.or(a, b),
                _ => builder.and(a, b),
            };
            wires.push(if inverted { !out } else { out });
        }
        let outputs: Vec<_> = wires.iter().rev().take(12).copied().collect();
        let circuit = builder.build(&outputs).unwrap();
        check(&circuit, instances, seed);
    }
}
