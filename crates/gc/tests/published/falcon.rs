//! The circuits of Li, Xue, Ding, Gao, Wei, Wan, Wu, *FALCON: A Fourier Transform Based Approach for Fast and Secure
//! Convolutional Neural Network Predictions*, <https://arxiv.org/abs/1811.08257>, section 5.3, listings 1 to 4, for every
//! x of Z_p: what the library's circuits, which rescale and take less than all of Z_p, are compared with.
//!
//! The listings as printed do not compute what their text says, and these differ from them in four places:
//!
//! - Data preparation subtracts the modulus where `s >= p`; the printed `>` leaves the sum p as it is.
//! - The multiplexer keeps x where it is not negative, x <= (p-1)/2, and gives 0 elsewhere; as printed, ReLU keeps the negative ones.
//! - The maximum of residues takes a negative number for a large one, which is right behind a ReLU only. Here `(p-1)/2` is added to
//!   the garbler's share first: this *offset form* has the order of the values.
//! - The garbler's constant is its share less p, so that the sum's carry tells whether p was reached: one comparison fewer.
//!
//! Mean pooling needs no circuit: each party sums its shares, and the divisor goes into the next scale.

use lanner_gc::library::{
    MaskedCircuit, max_pool_relu_rescale, max_pool_rescale, relu_rescale, rescale, signed_bound,
};
use lanner_gc::{CircuitBuilder, GcError, Wire};
use lanner_primitives::{Prg, Ring};
use rand_core::Rng;

use crate::published::Literal;
use crate::support::{check, prg};

/// Listing 1, data preparation: the residue of `x + (p-1)/2` for the shared x, b output bits, unsigned: the offset form.
///
/// AND gates: `2b - 1` for a prime of b bits.
///
/// # Errors
/// [`GcError::Parameters`] if p is even or has fewer than 3 or more than 62 bits.
fn prepare(p: u64) -> Result<Literal, GcError> {
    let mut circuit = Listing::new(p)?;
    let value = circuit.prepared();
    circuit.finish(&value)
}

/// Listing 2, ReLU: `max(x, 0)` in `b - 1` output bits, unsigned.
///
/// AND gates: those of [`prepare`], `b - 1 - v` to compare, where `2^v` is the largest power of two that divides (p-1)/2, and
/// `b - 1` to select. The paper counts two gates on words.
///
/// # Errors
/// As for [`prepare`].
fn relu(p: u64) -> Result<Literal, GcError> {
    max_pool_relu(p, 1)
}

/// Listing 3, max-pool: the largest of k values in offset form, b output bits.
///
/// AND gates: k times those of [`prepare`] and `2 (k - 1) b`. The paper counts k - 1 pairs of gates on words.
///
/// # Errors
/// As for [`prepare`], and if k is zero.
fn max_pool(p: u64, k: usize) -> Result<Literal, GcError> {
    let mut circuit = Listing::new(p)?;
    let maximum = circuit.maximum(k)?;
    circuit.finish(&maximum)
}

/// Listing 4, max-pool before ReLU: `max(x_1, ..., x_k, 0)` in `b - 1` output bits, unsigned.
///
/// AND gates: those of [`max_pool`] and one ReLU, `2b - 2 - v`; a ReLU for each value would take k. The paper counts 2k gates
/// on words instead of 4k - 2.
///
/// # Errors
/// As for [`max_pool`].
fn max_pool_relu(p: u64, k: usize) -> Result<Literal, GcError> {
    let mut circuit = Listing::new(p)?;
    let maximum = circuit.maximum(k)?;
    let half = CircuitBuilder::constant_word((p - 1) / 2, maximum.len() as u32);
    let gates = &mut circuit.gates;
    let (difference, keep) = gates.subtract(&maximum, &half);
    let outputs = gates.mask_word(keep, &difference[..maximum.len() - 1]);
    circuit.finish(&outputs)
}

struct Listing {
    gates: CircuitBuilder,
    p: u64,
    values: usize,
}

impl Listing {
    fn new(p: u64) -> Result<Self, GcError> {
        signed_bound(Ring::Prime(p), 0)?;
        Ok(Self { gates: CircuitBuilder::new(), p, values: 0 })
    }

    /// The next shared value in offset form: both shares added modulo p. The garbler's constant is its share in that form, less p.
    fn prepared(&mut self) -> Vec<Wire> {
        self.values += 1;
        let bits = Ring::Prime(self.p).bits();
        let (share, less_p) = (self.gates.evaluator_word(bits), self.gates.garbler_word(bits));
        let (sum, carry) = self.gates.add_carry(&share, &less_p, Wire::ZERO);
        let modulus = CircuitBuilder::constant_word(self.p, bits);
        let back = self.gates.mask_word(!carry, &modulus);
        self.gates.add(&sum, &back)
    }

    fn maximum(&mut self, k: usize) -> Result<Vec<Wire>, GcError> {
        if k == 0 {
            return Err(GcError::Parameters("a pooling region has no values"));
        }
        let mut maximum = self.prepared();
        for _ in 1..k {
            let value = self.prepared();
            maximum = self.gates.max_word(&maximum, &value).0;
        }
        Ok(maximum)
    }

    fn finish(self, outputs: &[Wire]) -> Result<Literal, GcError> {
        let (p, bits) = (self.p, Ring::Prime(self.p).bits());
        let word = move |share: u64| vec![((share + p / 2) % p).wrapping_sub(p)];
        Ok(Literal { circuit: self.gates.build(outputs)?, bits, values: self.values, words: Box::new(word) })
    }
}

/// The rings of compiled networks, and small odd moduli.
const PRIMES: [u64; 12] = [
    5,
    17,
    251,
    114_689,
    1_032_193,
    4_079_617,
    8_273_921,
    16_760_833,
    33_538_049,
    268_369_921,
    1_073_692_673,
    137_438_822_401,
];

/// The elements at which a listing may go wrong; p is the element 0 again.
fn edges(p: u64) -> [u64; 6] {
    [0, 1, (p - 1) / 2, p.div_ceil(2), p - 1, p]
}

/// The signed value of a residue.
fn signed(x: u64, p: u64) -> i64 {
    let x = x % p;
    if x > (p - 1) / 2 { x as i64 - p as i64 } else { x as i64 }
}

/// Outputs for sums `x` (up to p inclusive) whose garbler's shares are `s`.
fn run(literal: &Literal, p: u64, x: &[u64], s: &[u64]) -> Vec<u64> {
    // A sum of p is reached as such: both shares are elements that add up to p, not to 0.
    let c: Vec<_> = x.iter().zip(s).map(|(x, s)| (x % p + p - s) % p).collect();
    literal.run(&c, s, &[])
}

fn shares(p: u64, prg: &mut Prg) -> Vec<u64> {
    let mut shares = vec![0, 1, (p - 1) / 2, p.div_ceil(2), p - 2, p - 1];
    shares.extend((0..6).map(|_| prg.next_u64() % p));
    shares
}

/// Checks a circuit of one value on every edge under every share.
fn check_edges(literal: &Literal, p: u64, twin: impl Fn(i64) -> i64) {
    let shares = shares(p, &mut prg(1));
    for x in edges(p) {
        let got = run(literal, p, &vec![x; shares.len()], &shares);
        assert!(got.iter().all(|y| *y as i64 == twin(signed(x, p))), "p {p} x {x}: {got:?}");
    }
}

#[test]
fn preparation_adds_shares_modulo_p() {
    for p in PRIMES {
        let (masked, b) = (prepare(p).unwrap(), Ring::Prime(p).bits() as usize);
        assert_eq!(masked.circuit.and_count(), 2 * b - 1);
        check_edges(&masked, p, |x| x + (p / 2) as i64);
    }
}

#[test]
fn relu_keeps_the_lower_half_of_the_residues() {
    for p in PRIMES {
        let (masked, b) = (relu(p).unwrap(), Ring::Prime(p).bits() as usize);
        let v = ((p - 1) / 2).trailing_zeros() as usize;
        assert_eq!(masked.circuit.and_count(), (2 * b - 1) + (2 * b - 2 - v), "{p}");
        assert_eq!(masked.circuit.outputs(), b - 1);
        check_edges(&masked, p, |x| x.max(0));
    }
}

#[test]
fn pools_take_the_largest_signed_value() {
    let mut prg = prg(2);
    for p in PRIMES {
        for k in [1, 2, 4, 9] {
            let (b, v) = (Ring::Prime(p).bits() as usize, ((p - 1) / 2).trailing_zeros() as usize);
            let (pool, both) = (max_pool(p, k).unwrap(), max_pool_relu(p, k).unwrap());
            let ands = k * (2 * b - 1) + 2 * (k - 1) * b;
            assert_eq!(pool.circuit.and_count(), ands);
            assert_eq!(both.circuit.and_count(), ands + 2 * b - 2 - v);
            let (edges, shares) = (edges(p), shares(p, &mut prg));
            for _ in 0..60 {
                let mut pick = |from: &[u64]| from[prg.next_u64() as usize % from.len()];
                let x: Vec<_> = (0..k).map(|_| pick(&edges)).collect();
                let s: Vec<_> = (0..k).map(|_| pick(&shares)).collect();
                let largest = x.iter().map(|x| signed(*x, p)).max().unwrap();
                assert_eq!(run(&pool, p, &x, &s), [(largest + (p / 2) as i64) as u64], "p {p} {x:?} {s:?}");
                assert_eq!(run(&both, p, &x, &s), [largest.max(0) as u64], "p {p} {x:?} {s:?}");
            }
        }
    }
    assert!(max_pool(5, 0).is_err() && max_pool_relu(5, 0).is_err());
    assert!(prepare(16).is_err());
}

#[test]
fn pools_of_every_pair_of_edges_under_every_share() {
    for p in PRIMES {
        let (pool, both) = (max_pool(p, 2).unwrap(), max_pool_relu(p, 2).unwrap());
        let shares = shares(p, &mut prg(4));
        let pairs: Vec<_> = edges(p).into_iter().flat_map(|x| edges(p).map(|y| [x, y])).collect();
        for pair in pairs {
            let largest = signed(pair[0], p).max(signed(pair[1], p));
            let x = pair.repeat(shares.len());
            let s: Vec<_> = shares.iter().zip(shares.iter().rev()).flat_map(|(a, b)| [*a, *b]).collect();
            let pooled = run(&pool, p, &x, &s);
            assert!(
                pooled.iter().all(|y| *y as i64 == largest + (p / 2) as i64),
                "p {p} {pair:?}: {pooled:?}"
            );
            let kept = run(&both, p, &x, &s);
            assert!(kept.iter().all(|y| *y as i64 == largest.max(0)), "p {p} {pair:?}: {kept:?}");
        }
    }
}

#[test]
fn small_moduli_exhaustively() {
    for p in [5, 7, 11, 13] {
        let (relu, pair) = (relu(p).unwrap(), max_pool_relu(p, 2).unwrap());
        for s in 0..p {
            for x in 0..p {
                assert_eq!(run(&relu, p, &[x], &[s]), [signed(x, p).max(0) as u64]);
                for y in 0..p {
                    let largest = signed(x, p).max(signed(y, p)).max(0) as u64;
                    assert_eq!(run(&pair, p, &[x, y], &[s, p - 1 - s]), [largest]);
                }
            }
        }
    }
}

#[test]
fn the_largest_of_three_and_minus_one_is_three() {
    let p = 1_032_193;
    assert_eq!(run(&max_pool_relu(p, 2).unwrap(), p, &[3, p - 1], &[5, 1_000_000]), [3]);
}

/// The paper counts gates on words of lanes: for a region of k values 2k instead of 4k - 2, beside preparation. A word's gate is
/// an AND for each bit. The circuits that rescale take fewer in all.
#[test]
fn pooling_first_takes_two_gates_for_each_value_as_the_paper_counts() {
    let p = 1_032_193;
    let b = Ring::Prime(p).bits() as usize;
    // What of a comparison with (p-1)/2 is free, and the bit that the sign takes.
    let saved = ((p - 1) / 2).trailing_zeros() as usize + 2;
    for k in [4, 9] {
        let preparation = k * prepare(p).unwrap().circuit.and_count();
        let both = max_pool_relu(p, k).unwrap().circuit.and_count() - preparation;
        let relu = relu(p).unwrap().circuit.and_count() - preparation / k;
        let pool = max_pool(p, k).unwrap().circuit.and_count() - preparation;
        assert_eq!(both, 2 * k * b - saved);
        assert_eq!(k * relu + pool, (4 * k - 2) * b - k * saved);
        let rescaling = max_pool_relu_rescale(Ring::Prime(p), k, 7).unwrap();
        assert!(rescaling.circuit().and_count() < both + preparation);
    }
    // The table of docs/protocols/falcon-nonlinear.md: the listings, then the circuits that rescale by 7 bits.
    let ring = Ring::Prime(p);
    let ands = |literal: Result<Literal, _>| literal.unwrap().circuit.and_count();
    let (prepare, relu) = (ands(prepare(p)), ands(relu(p)));
    let (pool, both) = (ands(max_pool(p, 4)), ands(max_pool_relu(p, 4)));
    assert_eq!((prepare, relu - prepare, pool - 4 * prepare, both - 4 * prepare), (39, 25, 120, 145));
    assert_eq!(4 * (relu - prepare) + pool - 4 * prepare, 220);
    let ands = |masked: Result<MaskedCircuit, _>| masked.unwrap().circuit().and_count();
    let (prepare, relu) = (ands(rescale(ring, 7)), ands(relu_rescale(ring, 7)));
    let (pool, both) = (ands(max_pool_rescale(ring, 4, 7)), ands(max_pool_relu_rescale(ring, 4, 7)));
    assert_eq!((prepare, relu - prepare, pool - 4 * prepare, both - 4 * prepare), (32, 12, 78, 90));
    assert_eq!(4 * (relu - prepare) + pool - 4 * prepare, 126);
}

#[test]
fn garbled_listings_equal_their_clear_evaluation() {
    check(&max_pool_relu(1_032_193, 4).unwrap().circuit, 37, 3);
    check(&prepare(114_689).unwrap().circuit, 5, 4);
}
