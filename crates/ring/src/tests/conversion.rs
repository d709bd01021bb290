//! Conversions between bases, and divisions by several primes, equal what big integers give.

use super::common::{backends, random};
use crate::{Centered, Coeff, Conversion, Modulus, Poly, RnsBasis};
use proptest::prelude::*;

/// Primes `1 mod 2^9`, the first small: fractions of it are so coarse that integers near a half of a range are not seldom.
const PRIMES: [u64; 6] = [
    33_538_049,
    1_125_899_903_827_969,
    1_125_899_902_124_033,
    1_125_899_887_312_897,
    137_438_822_401,
    1_125_899_886_395_393,
];
const N: usize = 16;

fn slices(vectors: &[Vec<u64>]) -> Vec<&[u64]> {
    vectors.iter().map(Vec::as_slice).collect()
}

/// An integer modulo a prime.
fn residue(x: &Centered, q: u64) -> u64 {
    let fold = |rest: u128, word: &u64| (rest << 64 | u128::from(*word)) % u128::from(q);
    let magnitude = x.magnitude.iter().rev().fold(0, fold) as u64;
    if x.negative { (q - magnitude) % q } else { magnitude }
}

/// The rounded quotient of an integer by the product of the primes, modulo another prime: the integer less its centred remainder, divided.
fn divided(x: &Centered, by: &RnsBasis, q: &Modulus) -> u64 {
    let residues: Vec<_> = by.moduli().iter().map(|prime| residue(x, prime.value())).collect();
    let remainder = by.reconstruct(&residues);
    let product = by.moduli().iter().fold(1, |product, prime| q.mul(product, prime.value()));
    let exact = q.sub(residue(x, q.value()), residue(&remainder, q.value()));
    q.mul(exact, q.inverse(product))
}

proptest! {
    #[test]
    fn combinations_equal_their_definition(index in 0..PRIMES.len(), n in 1usize..6, terms in 1usize..20, seed: u64, most: bool) {
        let (q, n) = (PRIMES[index], 8 * n);
        let word = |k: u64| if most { vec![(1 << 52) - 1; n] } else { random(1_125_899_903_827_969, n, seed ^ k) };
        let a: Vec<Vec<u64>> = (0..terms as u64).map(word).collect();
        let w: Vec<u64> = if most { vec![q - 1; terms] } else { random(q, terms, !seed) };
        for modulus in backends(q) {
            let mut out = vec![0; n];
            modulus.combine(&mut out, &slices(&a), &w);
            for (i, got) in out.iter().enumerate() {
                let sum: u128 = a.iter().zip(&w).map(|(a, w)| u128::from(a[i]) * u128::from(*w)).sum();
                prop_assert_eq!(u128::from(*got), sum % u128::from(q));
            }
        }
    }

    #[test]
    fn conversions_equal_those_of_the_integer(count in 1usize..6, skipped in 0usize..5, seed: u64) {
        let chosen: Vec<u64> = PRIMES[1..].iter().cycle().skip(skipped).take(count).copied().collect();
        let targets: Vec<u64> = PRIMES.into_iter().filter(|q| !chosen.contains(q)).collect();
        let integers = RnsBasis::new(N, &chosen).unwrap();
        let residues: Vec<Vec<u64>> = chosen.iter().map(|q| random(*q, N, seed ^ q)).collect();
        let value = |i: usize| integers.reconstruct(&residues.iter().map(|limb| limb[i]).collect::<Vec<_>>());
        for &backend in crate::Backend::available() {
            let moduli = |primes: &[u64]| -> Option<Vec<Modulus>> {
                primes.iter().map(|q| Modulus::new(*q).unwrap().with_backend(backend).ok()).collect()
            };
            let Some(from) = moduli(&chosen) else { continue };
            let conversion = Conversion::new(&from);
            let mut digits = residues.clone();
            for ((modulus, limb), inverse) in from.iter().zip(&mut digits).zip(conversion.inverses()) {
                modulus.mul_scalar_slice(limb, *inverse);
            }
            let mut wraps = vec![0; N];
            conversion.wraps(&mut wraps, &slices(&digits));
            prop_assert!(wraps.iter().all(|v| *v <= count as u64));
            digits.push(wraps);
            for to in moduli(&targets).unwrap() {
                let mut out = vec![0; N];
                to.combine(&mut out, &slices(&digits), &conversion.weights(&to));
                for (i, got) in out.iter().enumerate() {
                    prop_assert_eq!(*got, residue(&value(i), to.value()));
                }
            }
        }
    }

    #[test]
    fn division_by_several_primes_rounds_to_the_nearest(left in 1usize..6, seed: u64) {
        let basis = RnsBasis::new(N, &PRIMES).unwrap();
        let by = RnsBasis::new(N, &PRIMES[left..]).unwrap();
        let words: Vec<u64> = PRIMES.iter().flat_map(|q| random(*q, N, seed ^ q)).collect();
        let poly = Poly::<Coeff>::from_limbs(&basis, &words).unwrap();
        let mut quotient = poly.clone().into_eval();
        quotient.divide_round_to(left);
        let quotient = quotient.into_coeff();
        for i in 0..N {
            let x = poly.coefficient(i);
            for (limb, modulus) in quotient.limbs().zip(basis.moduli()) {
                prop_assert_eq!(limb[i], divided(&x, &by, modulus));
            }
        }
    }
}

#[test]
fn extremes_of_the_range_convert() {
    let basis = RnsBasis::new(N, &PRIMES[1..4]).unwrap();
    let target = Modulus::new(PRIMES[5]).unwrap();
    let conversion = Conversion::new(basis.moduli());
    // Zero, one, minus one; all digits at their largest.
    for residues in [[0; 3], [1; 3], std::array::from_fn(|i| PRIMES[i + 1] - 1)] {
        let digits: Vec<Vec<u64>> = (basis.moduli().iter().zip(conversion.inverses()).zip(residues))
            .map(|((q, inverse), x)| vec![q.mul_shoup(x, *inverse); 8])
            .collect();
        let mut wraps = vec![0; 8];
        conversion.wraps(&mut wraps, &slices(&digits));
        let mut out = vec![0; 8];
        target.combine(&mut out, &slices(&[digits, vec![wraps]].concat()), &conversion.weights(&target));
        assert_eq!(out, [residue(&basis.reconstruct(&residues), target.value()); 8]);
    }
    let largest: Vec<Vec<u64>> = PRIMES[1..4].iter().map(|q| vec![q - 1; 8]).collect();
    let mut wraps = vec![0; 8];
    conversion.wraps(&mut wraps, &slices(&largest));
    assert_eq!(wraps, [3; 8]);
}
