//! Laws of ring elements: automorphisms, division by the last prime, reconstruction.

use super::common::{self, backends};
use crate::{Coeff, EvalPermutation, GaloisElement, Modulus, Poly, RingError, RnsBasis, sample};
use lanner_testkit::TestRng;

const CHAIN: [u64; 4] =
    [1_125_899_903_827_969, 1_125_899_902_124_033, 137_438_822_401, 1_125_899_886_395_393];

fn uniform(basis: &RnsBasis, seed: u64) -> Poly<Coeff> {
    sample::uniform(basis, &mut TestRng::new(seed))
}

/// One basis for each backend that serves every prime of the chain.
fn bases(n: usize) -> Vec<RnsBasis> {
    let moduli: Vec<Vec<Modulus>> = CHAIN.iter().map(|q| backends(*q).collect()).collect();
    (0..moduli[0].len())
        .map(|i| RnsBasis::from_moduli(n, &moduli.iter().map(|each| each[i]).collect::<Vec<_>>()).unwrap())
        .collect()
}

#[test]
fn automorphism_commutes_with_evaluation() {
    for n in [8, 16, 64, 1024] {
        for basis in bases(n) {
            let a = uniform(&basis, 1);
            for exponent in [1, 3, 5, 2 * n - 1, n + 1, n - 1] {
                let element = GaloisElement::new(exponent, n).unwrap();
                let left = a.automorphism(element).into_eval();
                let right = a.clone().into_eval().automorphism(&EvalPermutation::new(element));
                assert!(left.words() == right.words(), "n = {n}, exponent {exponent}");
            }
        }
    }
}

#[test]
fn automorphisms_compose_and_permutation_is_a_bijection() {
    let n = 64;
    let basis = RnsBasis::new(n, &CHAIN).unwrap();
    let a = uniform(&basis, 2);
    let rotate = |a: &Poly<Coeff>, steps| a.automorphism(GaloisElement::rotation(steps, n).unwrap());
    assert!(rotate(&rotate(&a, 3), 4).words() == rotate(&a, 7).words());
    assert!(rotate(&rotate(&a, 3), -3).words() == a.words());
    let swap = GaloisElement::row_swap(n).unwrap();
    assert!(a.automorphism(swap).automorphism(swap).words() == a.words());
    let permutation = EvalPermutation::new(GaloisElement::rotation(5, n).unwrap());
    let mut sources: Vec<_> = (0..n).map(|i| permutation.source(i)).collect();
    sources.sort_unstable();
    assert!(sources.into_iter().eq(0..n));
}

#[test]
fn galois_elements_are_odd_and_below_2n() {
    assert_eq!(GaloisElement::new(4, 8), Err(RingError::GaloisElement { element: 4, n: 8 }));
    assert_eq!(GaloisElement::new(17, 8), Err(RingError::GaloisElement { element: 17, n: 8 }));
    assert_eq!(GaloisElement::new(3, 4), Err(RingError::Degree { n: 4 }));
}

#[test]
fn division_by_the_last_prime_is_the_nearest_integer() {
    // Two 37- and 50-bit primes keep the product within i128.
    let n = 64;
    let basis = RnsBasis::new(n, &CHAIN[1..3]).unwrap();
    let divisor = i128::from(CHAIN[2]);
    let poly = uniform(&basis, 3);
    let mut divided = poly.clone();
    divided.divide_round_by_last();
    for i in 0..n {
        let x = poly.coefficient(i).to_i128().unwrap();
        let nearest = (2 * x + divisor).div_euclid(2 * divisor);
        assert_eq!(divided.coefficient(i).to_i128().unwrap(), nearest);
    }
}

#[test]
fn division_agrees_in_both_domains_and_on_every_backend() {
    for n in [8, 128, 2048] {
        let mut results = Vec::new();
        for basis in bases(n) {
            for seed in 4..6 {
                let mut coeff = uniform(&basis, seed);
                if seed == 5 {
                    coeff.limbs_mut().zip(CHAIN).for_each(|(limb, q)| limb.fill(q - 1));
                }
                let mut eval = coeff.clone().into_eval();
                coeff.divide_round_by_last();
                eval.divide_round_by_last();
                assert_eq!(eval.basis().len(), 3);
                assert!(eval.into_coeff().words() == coeff.words(), "n = {n}");
                results.push((seed, coeff.words().to_vec()));
            }
        }
        let first = |seed| results.iter().find(|(other, _)| *other == seed).map(|(_, words)| words);
        assert!(results.iter().all(|(seed, words)| Some(words) == first(*seed)));
    }
}

#[test]
fn signed_coefficients_reconstruct_over_any_number_of_limbs() {
    let n = 8;
    let values = [0, 1, -1, i32::MAX, i32::MIN, 12345, -98765, 1 << 30];
    for limbs in 2..=4 {
        let basis = RnsBasis::new(n, &CHAIN).unwrap().prefix(limbs);
        let poly = Poly::from_signed(&basis, &values).unwrap();
        for (i, value) in values.iter().enumerate() {
            assert_eq!(poly.coefficient(i).to_i128(), Some(i128::from(*value)));
        }
        assert!((poly.log2_norm() - 31.0).abs() < 1e-9);
    }
    let narrow = RnsBasis::new(n, &[7681]).unwrap();
    let poly = Poly::from_signed(&narrow, &values).unwrap();
    let residues = values.map(|value| i64::from(value).rem_euclid(7681) as u64);
    assert_eq!(poly.limb(0), residues);
    let zero = Poly::<Coeff>::zero(&RnsBasis::new(n, &CHAIN[..1]).unwrap());
    assert!(zero.log2_norm() == f64::NEG_INFINITY && !zero.coefficient(0).negative);
}

#[test]
fn arithmetic_agrees_with_its_residues() {
    let n = 32;
    for basis in bases(n) {
        let (a, b) = (uniform(&basis, 7), uniform(&basis, 8));
        let mut sum = a.clone();
        sum.add_assign(&b);
        let mut back = sum.clone();
        back.sub_assign(&b);
        assert!(back.words() == a.words());
        let mut negated = b.clone();
        negated.negate();
        sum.add_assign(&negated);
        assert!(sum.words() == a.words());
        let mut tripled = a.clone();
        tripled.mul_scalar(3);
        (0..3).for_each(|_| tripled.sub_assign(&a));
        assert!(tripled.words().iter().all(|word| *word == 0));
        let mut product = a.clone().into_eval();
        product.mul_assign(&b.clone().into_eval());
        let product = product.into_coeff();
        for (i, q) in CHAIN.into_iter().enumerate() {
            assert!(product.limb(i) == common::schoolbook(q, a.limb(i), b.limb(i)));
        }
    }
}

#[test]
fn bases_refuse_nonsense_and_share_prefixes() {
    let q = CHAIN[0];
    assert_eq!(RnsBasis::new(64, &[]).err(), Some(RingError::Basis));
    assert_eq!(RnsBasis::new(64, &[q, q]).err(), Some(RingError::Basis));
    assert_eq!(RnsBasis::new(48, &[q]).err(), Some(RingError::Degree { n: 48 }));
    assert_eq!(RnsBasis::new(64, &[17]).err(), Some(RingError::NoRoot { q: 17, n: 64 }));
    let basis = RnsBasis::new(64, &CHAIN).unwrap();
    assert!(basis.prefix(2).same(&RnsBasis::new(64, &CHAIN[..2]).unwrap()));
    assert!(basis.select(&[0, 1]).unwrap().same(&basis.prefix(2)));
    assert_eq!(basis.select(&[0, 4]).err(), Some(RingError::Basis));
}

#[test]
fn residues_from_outside_are_checked() {
    let basis = RnsBasis::new(8, &CHAIN[..2]).unwrap();
    let mut words = vec![0; 16];
    assert!(Poly::<Coeff>::from_limbs(&basis, &words).is_ok());
    assert_eq!(
        Poly::<Coeff>::from_limbs(&basis, &words[1..]).err(),
        Some(RingError::Length { expected: 16, found: 15 })
    );
    words[9] = CHAIN[1];
    let refused = Poly::<Coeff>::from_limbs(&basis, &words).err();
    assert_eq!(refused, Some(RingError::NotReduced { limb: 1, index: 1 }));
}
