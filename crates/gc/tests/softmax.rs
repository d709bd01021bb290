//! The circuit of softmax against its integer twin, for every sharing of its scores.

use std::collections::BTreeSet;

use crate::support::{check, clear, prg};
use lanner_gc::library::{
    Exponential, Mantissa, MaskedCircuit, Sharing, argmax_with_max, signed_bound, softmax, softmax_parts,
};
use lanner_primitives::Ring;
use rand_core::Rng;

const WIDTH: u32 = 8;
const FRACTION: u32 = 14;
const HALVING: u32 = 5;
/// Units of an exponent for each of a difference, in 2^-4.
const FACTOR: u64 = 27;

/// One table of `2^-(i/32)`.
fn exponential(width: u32) -> Exponential {
    let power = |i: i32| (f64::exp2(f64::from(FRACTION) - f64::from(i) / 32.0)).round() as u64;
    let segments = (0..1 << HALVING).map(|i| vec![power(i)]).collect();
    let mantissa = Mantissa { segments, rest: 0, drop: 0, fraction: FRACTION };
    Exponential::new(width, FACTOR, 4, mantissa).unwrap()
}

/// The element less another.
fn minus(ring: Ring, x: i64, s: u64) -> u64 {
    let modulus = i128::from(ring.largest()) + 1;
    (i128::from(x) - i128::from(s)).rem_euclid(modulus) as u64
}

/// The index and the parts that the circuit gives for scores of which the garbler's shares are `s`.
fn run(masked: &MaskedCircuit, x: &[i64], s: &[u64]) -> (usize, u64) {
    let (ring, k) = (masked.ring(), x.len());
    let c: Vec<u64> = x.iter().zip(s).map(|(x, s)| minus(ring, *x, *s)).collect();
    let (inputs, known) = (masked.evaluator_bits(&c).unwrap(), masked.garbler_bits(s).unwrap());
    let out = clear(masked.circuit(), 1, &inputs, &known);
    let index_bits = k.next_power_of_two().trailing_zeros() as usize;
    let word =
        |first: usize, end: usize| (first..end).map(|i| u64::from(out.get(i)) << (i - first)).sum::<u64>();
    (word(0, index_bits) as usize, word(index_bits, out.len()))
}

/// Every sharing of scores over a small ring gives what the twin gives.
#[test]
fn every_sharing_gives_one_result() {
    let p = 241;
    let masked = softmax(Ring::Prime(p), 2, 0, &exponential(WIDTH), 4).unwrap();
    let shares: Vec<[u64; 2]> =
        (0..p).flat_map(|a| (0..p).step_by(5).map(move |b| [a, (b + a) % p])).collect();
    let pairs = [[0, 0], [3, 5], [5, 3], [-40, 40], [100, -100], [-7, -9], [60, 59], [-112, 112]];
    for x in pairs {
        let expected = softmax_parts(&x, 0, &exponential(WIDTH), 4);
        assert_eq!(distinct(shares.iter().map(|s| run(&masked, &x, s))), BTreeSet::from([expected]), "{x:?}");
    }
}

/// Bits of guard below the scores are no part of them.
#[test]
fn bits_of_guard_do_not_count() {
    let sharing = Sharing { ring: Ring::Pow2(10), guard: 2 };
    let masked = softmax(sharing, 2, 1, &exponential(6), 4).unwrap();
    for [x, y] in [[0, 0], [3, 5], [5, 3], [-40, 40], [100, -100], [-7, -9], [60, 59], [-128, 127]] {
        let expected = softmax_parts(&[x, y], 1, &exponential(6), 4);
        let of = |i: u64| {
            run(&masked, &[(x << 2) + (i % 4) as i64, (y << 2) + (i / 4 % 4) as i64], &[i * 7 % 1024, i])
        };
        assert_eq!(distinct((0..1024).map(of)), BTreeSet::from([expected]), "{x} {y}");
    }
}

/// The results of all runs.
fn distinct<T: Ord>(runs: impl Iterator<Item = T>) -> BTreeSet<T> {
    runs.collect()
}

/// What came out if each party exponentiated its own share of an exponent, and products were rounded to the same fraction: the test
/// above would find it.
#[test]
fn exponentials_of_shares_would_give_several_results() {
    let (most, rate) = ((1 << WIDTH) - 1, f64::from(FACTOR as u32) / 16.0 / 32.0);
    let fixed = |power: f64, bits: f64| (power * f64::exp2(bits)).round() / f64::exp2(bits);
    // A mask r of the server's, and e - r modulo 2^w of the client's.
    let by_shares = |x: [i64; 2], r: [i64; 2]| {
        let largest = x[0].max(x[1]);
        let term = |x: i64, r: i64| {
            let exponent = most - (largest - x).min(most);
            let masked = exponent - r;
            let client =
                fixed(f64::exp2(rate * (masked - most) as f64), f64::from(FRACTION) + rate * most as f64);
            fixed(client * f64::exp2(rate * r as f64), f64::from(FRACTION))
        };
        (1e4 / (term(x[0], r[0]) + term(x[1], r[1]))).round() as u64
    };
    let varies = |difference: i64| {
        distinct((0..400).map(|i| by_shares([difference, 0], [i % 200, i * 77 % 240]))).len() > 1
    };
    let found = (0..200).filter(|difference| varies(*difference)).count();
    assert!(found > 5, "{found}");
}

/// Pairs of scores at the edges of the range, equal ones among them, under shares of either party that are edges of `Z_p`: 0, 1,
/// (p-1)/2, (p+1)/2 and p-1, where p is 0 again.
#[test]
fn results_at_the_edges_of_the_ring() {
    for p in [114_689_u64, 1_032_193, 8_273_921, 137_438_822_401] {
        let ring = Ring::Prime(p);
        let bound = signed_bound(ring, 0).unwrap() as i64;
        let shares = [0, 1, (p - 1) / 2, p.div_ceil(2), p - 1];
        // The other party's share is one of them where the garbler's is the score less it.
        let edges = [0, 1, -1, bound - 1, 1 - bound];
        for (dropped, width) in [(0, ring.bits()), (4, 6)] {
            let exponential = exponential(width);
            let masked = softmax(ring, 2, dropped, &exponential, 3).unwrap();
            for (x, y) in edges.iter().flat_map(|x| edges.map(|y| (*x, y))) {
                let expected = softmax_parts(&[x, y], dropped, &exponential, 3);
                for share in shares {
                    let other = |score: i64| minus(ring, score, share);
                    assert_eq!(run(&masked, &[x, y], &[share, other(y)]), expected, "{p} {x} {y} {share}");
                    assert_eq!(run(&masked, &[x, y], &[other(x), share]), expected, "{p} {x} {y} {share}");
                }
            }
        }
    }
}

#[test]
fn results_are_those_of_the_twin_and_gates_as_stated() {
    let mut prg = prg(1);
    let mut random = |bound: u64| prg.next_u64() % bound;
    for ring in [Ring::Prime(1_032_193), Ring::Prime(137_438_822_401), Ring::Pow2(16)] {
        let (b, bound) = (ring.bits(), signed_bound(ring, 0).unwrap() as i64);
        for (k, dropped, width) in
            [(2, 0, b), (3, 4, 6), (10, 5, b - 5), (7, 0, 1), (16, b - 1, 1), (5, 3, b - 4)]
        {
            let exponential = exponential(width);
            let masked = softmax(ring, k, dropped, &exponential, 2).unwrap();
            let n = (b - dropped) as usize;
            let clamp = if width as usize == n { 0 } else { n };
            let halvings =
                64 - ((((1_u128 << width) - 1) * u128::from(FACTOR)) >> 9).leading_zeros() as i32 + 64;
            let term = 4 * (width as usize + 2) + 30 + (FRACTION as usize + 1) * halvings.max(0) as usize;
            let sum_bits = FRACTION as usize + 1 + k.ilog2() as usize;
            let most = argmax_with_max(ring, k).unwrap().circuit().and_count()
                + k * (n + clamp + term + sum_bits + 1);
            let ands = masked.circuit().and_count();
            assert!(ands < most + 9 * (sum_bits + 1), "{ring:?} {k} {dropped} {width}: {ands}");
            for case in 0..40 {
                let near = if case % 2 == 0 { bound } else { bound.min(1 << (dropped + 3)) };
                let x: Vec<i64> = (0..k).map(|_| random(2 * near as u64 - 1) as i64 - near + 1).collect();
                let s: Vec<u64> = (0..k).map(|_| random(ring.largest() + 1)).collect();
                assert_eq!(run(&masked, &x, &s), softmax_parts(&x, dropped, &exponential, 2), "{x:?} {s:?}");
            }
        }
    }
}

#[test]
fn widths_that_do_not_fit_are_refused() {
    let ring = Ring::Prime(1_032_193);
    let refused = |k, dropped, width, digits| softmax(ring, k, dropped, &exponential(width), digits).is_err();
    assert!(!refused(3, 4, 16, 2) && refused(3, 4, 17, 2) && refused(3, 20, 1, 2));
    assert!(refused(1, 4, 4, 2) && refused(3, 4, 4, 0) && refused(3, 4, 4, 19));
}

#[test]
fn ties_go_to_the_lowest_index() {
    let masked = softmax(Ring::Pow2(16), 5, 2, &exponential(6), 2).unwrap();
    for x in [[9, 9, 9, 9, 9], [1, 7, 3, 7, 7], [0, 0, 0, 0, 1]] {
        let first = x.iter().position(|value| value == x.iter().max().unwrap()).unwrap();
        assert_eq!(run(&masked, &x, &[1, 2, 3, 4, 5]).0, first);
        assert_eq!(softmax_parts(&x, 2, &exponential(6), 2).0, first);
    }
}

#[test]
fn garbled_circuits_equal_their_clear_evaluation() {
    check(softmax(Ring::Prime(1_032_193), 10, 6, &exponential(11), 2).unwrap().circuit(), 17, 5);
}
