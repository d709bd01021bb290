//! The ReLU circuit of [GAZELLE] Juvekar, Vaikuntanathan, Chandrakasan, <https://eprint.iacr.org/2018/073>, section 5.3.

use lanner_gc::{CircuitBuilder, Wire};
use lanner_primitives::Ring;

use crate::published::Literal;
use crate::support::check;

/// `max(x, 0) + r` mod p, step by step: add the shares, reduce, compare with p/2, select, add the mask, reduce.
///
/// The modulus is an input of the garbler, as in the paper, so nothing folds: `8b + 2` AND gates for p of b bits.
/// Every x of Z_p is in range.
fn relu_reshare(p: u64) -> Literal {
    let bits = Ring::Prime(p).bits();
    let mut gates = CircuitBuilder::new();
    let c = gates.evaluator_word(bits);
    let [s, modulus, largest_positive, r] = [(); 4].map(|()| gates.garbler_word(bits));

    let x = add_mod(&mut gates, &c, &s, &modulus);
    let negative = gates.greater_than(&x, &largest_positive);
    let y = gates.mask_word(!negative, &x);
    let output = add_mod(&mut gates, &y, &r, &modulus);
    let words = move |share| vec![share, p, (p - 1) / 2];
    Literal { circuit: gates.build(&output).unwrap(), bits, values: 1, words: Box::new(words) }
}

/// `a + b` mod the modulus: b ANDs to add, b + 1 to subtract the modulus, b to select.
fn add_mod(gates: &mut CircuitBuilder, a: &[Wire], b: &[Wire], modulus: &[Wire]) -> Vec<Wire> {
    let (mut sum, carry) = gates.add_carry(a, b, Wire::ZERO);
    sum.push(carry);
    let mut wide = modulus.to_vec();
    wide.push(Wire::ZERO);
    let (reduced, fits) = gates.subtract(&sum, &wide);
    gates.mux_word(fits, &reduced[..a.len()], &sum[..a.len()])
}

#[test]
fn relu_takes_eight_ands_for_each_bit_and_two() {
    for p in [5, 113, 114_689, 1_032_193, 137_438_822_401] {
        let (ring, literal) = (Ring::Prime(p), relu_reshare(p));
        assert_eq!(literal.circuit.and_count(), 8 * ring.bits() as usize + 2);
        let half = (p / 2) as i64;
        let shares = [0, 1, p / 2, p / 2 + 1, p - 2, p - 1];
        let masks = [p - 1, p / 2, 0, 1, 2, p / 2 + 1];
        for x in [0, 1, half, half - 1, -1, -half, 1 - half] {
            let c = shares.map(|s| ring.sub(ring.embed(x), s));
            for (sum, mask) in literal.run(&c, &shares, &masks).into_iter().zip(masks) {
                assert_eq!(ring.sub(sum, mask), x.max(0) as u64, "p {p} x {x}");
            }
        }
    }
}

#[test]
fn the_garbled_circuit_equals_its_clear_evaluation() {
    check(&relu_reshare(1_032_193).circuit, 37, 5);
}
