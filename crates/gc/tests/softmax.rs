//! The circuits of softmax against their integer twins.
#![allow(clippy::unwrap_used)]

mod support;

use lanner_gc::library::{MaskedCircuit, ShareRing, argmax_with_max, reciprocal, softmax_exponents};
use lanner_primitives::{Bits, Prg};
use rand_core::Rng;
use support::{check, clear, prg};

/// Bits `first..first + width` as an integer.
fn word(bits: &Bits, first: usize, width: usize) -> u64 {
    (0..width).map(|i| u64::from(bits.get(first + i)) << i).sum()
}

/// Checks one instance for scores `x` of which the garbler's shares are `s`.
fn check_exponents(masked: &MaskedCircuit, dropped: u32, width: u32, x: &[i64], s: &[u64], prg: &mut Prg) {
    let (ring, k) = (masked.ring(), x.len());
    let index_bits = k.next_power_of_two().trailing_zeros() as usize;
    let modulus = i128::from(ring.largest()) + 1;
    let c = x.iter().zip(s).map(|(x, s)| (i128::from(*x) - i128::from(*s)).rem_euclid(modulus));
    let c: Vec<u64> = c.map(|c| c as u64).collect();
    let most = (1_u64 << width) - 1;
    let mut masks: Vec<u64> = (0..k).map(|_| prg.next_u64() & most).collect();
    (masks[0], masks[1]) = (0, most);
    let (inputs, known) =
        (masked.evaluator_bits(&c).unwrap(), masked.garbler_bits_with_masks(s, &masks).unwrap());
    let out = clear(masked.circuit(), 1, &inputs, &known);
    let largest = *x.iter().max().unwrap();
    let first = x.iter().position(|v| *v == largest).unwrap() as u64;
    assert_eq!(word(&out, 0, index_bits), first, "{ring:?} {x:?} {s:?}");
    for (i, (score, mask)) in x.iter().zip(&masks).enumerate() {
        let floor = |x: i64| x.wrapping_add(1_i64 << (ring.bits() - 1)) >> dropped;
        let exponent = most - ((floor(largest) - floor(*score)) as u64).min(most);
        let a = word(&out, index_bits + i * width as usize, width as usize);
        assert_eq!(a, exponent.wrapping_sub(*mask) & most, "{ring:?} {x:?} {s:?}");
        assert_eq!(out.get(index_bits + k * width as usize + i), a + mask > most);
    }
}

/// Every pair of scores at the edges of the range, equal ones among them, under shares of either party that are edges of `Z_p`:
/// 0, 1, (p-1)/2, (p+1)/2 and p-1, where p is 0 again.
#[test]
fn exponents_at_the_edges_of_the_ring() {
    let mut prg = prg(3);
    for p in [114_689_u64, 1_032_193, 8_273_921, 137_438_822_401] {
        let ring = ShareRing::Prime(p);
        let bound = ring.signed_bound(0).unwrap() as i64;
        let shares = [0, 1, (p - 1) / 2, p.div_ceil(2), p - 1];
        // The other party's share is one of them where the garbler's is the score less it.
        let edges = [0, 1, -1, bound - 1, 1 - bound];
        for (dropped, width) in [(0, ring.bits()), (4, 6)] {
            let masked = softmax_exponents(ring, 2, dropped, width).unwrap();
            for (x, y) in edges.iter().flat_map(|x| edges.map(|y| (*x, y))) {
                let less = |score: i64, share: u64| (score.rem_euclid(p as i64) as u64 + p - share) % p;
                for share in shares {
                    check_exponents(&masked, dropped, width, &[x, y], &[share, less(y, share)], &mut prg);
                    check_exponents(&masked, dropped, width, &[x, y], &[less(x, share), share], &mut prg);
                }
            }
        }
    }
}

#[test]
fn exponents_are_clamped_differences_under_masks() {
    let mut prg = prg(1);
    for ring in [ShareRing::Prime(1_032_193), ShareRing::Prime(137_438_822_401), ShareRing::PowerOfTwo(16)] {
        let (b, bound) = (ring.bits(), ring.signed_bound(0).unwrap() as i64);
        for (k, dropped, width) in
            [(2, 0, b), (3, 4, 6), (10, 5, b - 5), (7, 0, 1), (16, b - 1, 1), (5, 3, b - 4)]
        {
            let masked = softmax_exponents(ring, k, dropped, width).unwrap();
            let with_max = argmax_with_max(ring, k).unwrap().circuit().and_count();
            let n = (b - dropped) as usize;
            let clamp = if width as usize == n { 0 } else { k * (n - 1) };
            let ands = masked.circuit().and_count();
            assert_eq!(
                ands,
                with_max - dropped as usize + k * (n - 1) + clamp + k * width as usize,
                "{ring:?} {k} {dropped} {width}"
            );
            for case in 0..40 {
                let near = if case % 2 == 0 { bound } else { bound.min(1 << (dropped + 3)) };
                let x: Vec<i64> =
                    (0..k).map(|_| (prg.next_u64() >> 1) as i64 % (2 * near - 1) - near + 1).collect();
                let s: Vec<u64> = (0..k).map(|_| prg.next_u64() % (ring.largest() + 1)).collect();
                check_exponents(&masked, dropped, width, &x, &s, &mut prg);
            }
        }
        assert!(softmax_exponents(ring, 3, 4, b - 3).is_err() && softmax_exponents(ring, 3, 4, 0).is_err());
        assert!(softmax_exponents(ring, 1, 4, 4).is_err() && softmax_exponents(ring, 3, b, 1).is_err());
    }
}

#[test]
fn reciprocals_are_rounded_to_the_nearest_digit() {
    let mut prg = prg(2);
    for (bits, fraction) in [(20, 16), (23, 19), (30, 20), (51, 41), (64, 54), (12, 3)] {
        for digits in 1..=6 {
            let circuit = reciprocal(bits, fraction, digits).unwrap();
            let top = 10_u64.pow(digits).ilog2() as usize;
            assert!(circuit.and_count() < (top + 3) * (bits as usize + 1), "{bits} {digits}");
            let (one, most) = (1_u64 << fraction, u64::MAX >> (64 - bits));
            // A little below one as well, as far as the quotient has its bits.
            let mut sums = vec![one, one + 1, one - one / 1024, 2 * one, 3 * one, most, most - 1];
            sums.extend((0..60).map(|_| one + prg.next_u64() % (most - one + 1)));
            for s in sums {
                let own = prg.next_u64() & most;
                let other = s.wrapping_sub(own) & most;
                let bit = |x: u64| (0..bits).map(move |i| x >> i & 1 == 1);
                let inputs: Bits = bit(own).chain(bit(other)).collect();
                let got = word(&clear(&circuit, 1, &inputs, &Bits::zeros(0)), 0, top + 1);
                let dividend = (u128::from(10_u64.pow(digits)) << (fraction + 1)) + u128::from(s);
                assert_eq!(u128::from(got), dividend / (2 * u128::from(s)), "{bits} {fraction} {digits} {s}");
            }
        }
    }
    assert!(
        reciprocal(65, 20, 2).is_err() && reciprocal(20, 20, 2).is_err() && reciprocal(20, 10, 0).is_err()
    );
}

#[test]
fn garbled_circuits_equal_their_clear_evaluation() {
    check(softmax_exponents(ShareRing::Prime(1_032_193), 10, 6, 11).unwrap().circuit(), 17, 5);
    check(&reciprocal(23, 19, 2).unwrap(), 3, 6);
}
