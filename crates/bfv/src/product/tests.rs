//! Products against the schoolbook in big integers.
#![allow(clippy::unwrap_used)]

use lanner_primitives::{Prg, Seed};
use lanner_ring::{Centered, sample};
use num_bigint::{BigInt, Sign};

use super::*;
use crate::{NoiseBound, ParameterSet};

fn integer(x: &Centered) -> BigInt {
    let bytes: Vec<u8> = x.magnitude.iter().flat_map(|word| word.to_le_bytes()).collect();
    BigInt::from_bytes_le(if x.negative { Sign::Minus } else { Sign::Plus }, &bytes)
}

/// Centred coefficients.
fn integers(half: &Poly<Eval>) -> Vec<BigInt> {
    let coefficients = half.clone().into_coeff();
    (0..coefficients.basis().degree()).map(|i| integer(&coefficients.coefficient(i))).collect()
}

/// Coefficient `k` of the product modulo `X^N + 1`.
fn coefficient(a: &[BigInt], b: &[BigInt], k: usize) -> BigInt {
    let n = a.len();
    let sign = |i: usize| if i <= k { 1 } else { -1 };
    (0..n).map(|i| sign(i) * &a[i] * &b[(n + k - i) % n]).sum()
}

/// `round(t d / q)`; there are no ties, as `q` is odd.
fn quotient(d: &BigInt, t: u64, q: &BigInt) -> BigInt {
    let doubled: BigInt = d * t * 2 + q;
    let by = q * 2;
    let floor: BigInt = &doubled / &by;
    if doubled.sign() == Sign::Minus && &floor * &by != doubled { floor - 1 } else { floor }
}

fn residue(x: &BigInt, q: &Modulus) -> u64 {
    let rest: BigInt = x % q.value();
    u64::try_from(if rest.sign() == Sign::Minus { rest + q.value() } else { rest }).unwrap()
}

fn random(basis: &RnsBasis, seed: u8) -> Ciphertext {
    let mut rng = Prg::new(Seed::from_bytes([seed; 16]));
    let (c0, c1) = (sample::uniform(basis, &mut rng), sample::uniform(basis, &mut rng));
    Ciphertext { c0, c1, noise: NoiseBound::NONE }
}

/// Every coefficient a `2^-20`th of `q` from `q / 2`, in magnitude: the largest products there are, of integers with one representative.
fn extreme(basis: &RnsBasis) -> Ciphertext {
    let q = product(basis);
    let largest: BigInt = &q / 2 - (&q >> 20);
    let half = |value: BigInt| {
        let mut poly = Poly::<Coeff>::zero(basis);
        for (modulus, limb) in basis.moduli().iter().zip(poly.limbs_mut()) {
            limb.fill(residue(&value, modulus));
        }
        poly.into_eval()
    };
    Ciphertext { c0: half(largest.clone()), c1: half(-largest), noise: NoiseBound::NONE }
}

fn product(basis: &RnsBasis) -> BigInt {
    basis.moduli().iter().map(|q| BigInt::from(q.value())).product()
}

/// Some coefficients of `round(t/q a (x) b)` are those of the schoolbook.
fn check(parameters: &Parameters, t: u64, limbs: usize, [a, b]: [&Ciphertext; 2]) {
    let scaling = Scaling::new(parameters, t, limbs).unwrap();
    let basis = parameters.basis(limbs);
    let (q, p) = (product(&basis), product(&scaling.auxiliary));
    let parts = scaling.product(&scaling.operand(a), &scaling.operand(b));
    let [a0, a1, b0, b1] = [&a.c0, &a.c1, &b.c0, &b.c1].map(integers);
    let n = parameters.degree();
    for k in [0, n / 2, n - 1] {
        let middle = coefficient(&a0, &b1, k) + coefficient(&a1, &b0, k);
        let expected = [coefficient(&a0, &b0, k), middle, coefficient(&a1, &b1, k)];
        for (part, d) in parts.iter().zip(expected) {
            let quotient = quotient(&d, t, &q);
            assert!(BigInt::from(4) * BigInt::from(quotient.magnitude().clone()) < p, "p has room");
            for (modulus, limb) in basis.moduli().iter().zip(part.limbs()) {
                assert_eq!(limb[k], residue(&quotient, modulus), "t = {t}, {limbs} limbs, coefficient {k}");
            }
        }
    }
}

#[test]
fn products_equal_the_schoolbook_at_every_number_of_limbs() {
    for (set, t) in [
        (ParameterSet::L, 2_148_728_833),
        (ParameterSet::B, (1 << 41) - 1),
        (ParameterSet::B, 64),
        (ParameterSet::W, 1 << 20),
        (ParameterSet::C2, 65),
    ] {
        let parameters = set.parameters().unwrap();
        for limbs in 1..=parameters.limbs() {
            let basis = parameters.basis(limbs);
            let (a, b) = (random(&basis, 1), random(&basis, 2));
            check(&parameters, t, limbs, [&a, &b]);
        }
    }
}

#[test]
fn squares_equal_the_schoolbook() {
    let parameters = ParameterSet::L.parameters().unwrap();
    let a = random(&parameters.basis(5), 3);
    check(&parameters, 2_148_728_833, 5, [&a, &a]);
}

#[test]
fn the_largest_products_fit() {
    for set in [ParameterSet::L, ParameterSet::A2, ParameterSet::C1] {
        let parameters = set.parameters().unwrap();
        for t in [64, 2_148_728_833, 1 << 41] {
            let a = extreme(&parameters.basis(parameters.limbs()));
            check(&parameters, t, parameters.limbs(), [&a, &a]);
        }
    }
}

#[test]
fn auxiliary_primes_are_none_of_the_limbs_and_enough() {
    for set in [ParameterSet::C1, ParameterSet::W, ParameterSet::L, ParameterSet::LPrime] {
        let parameters = set.parameters().unwrap();
        for limbs in 1..=parameters.limbs() {
            let bits = 41.0 + (parameters.degree() as f64).log2() + 1.01;
            let auxiliary = parameters.auxiliary(limbs, bits).unwrap();
            assert!(auxiliary.log2() >= parameters.log2_modulus(limbs) + bits);
            let used = |p: &Modulus| parameters.moduli().iter().any(|q| q.value() == p.value());
            assert!(!auxiliary.moduli().iter().any(used));
            assert!(auxiliary.moduli().iter().all(|p| p.bits() <= Parameters::LIMB_BITS));
        }
    }
}
