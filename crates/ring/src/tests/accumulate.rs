//! Sums of products equal their definition on every backend, at any number of terms.

use super::common::{PRIMES, backends, random};
use crate::{Accumulator, Ending, EvalPermutation, GaloisElement, Modulus};
use proptest::prelude::*;

fn naive(q: u64, a: &[Vec<u64>], b: &[Vec<u64>]) -> Vec<u64> {
    let product = |x: u64, y: u64| u128::from(x) * u128::from(y) % u128::from(q);
    let sum = |i: usize| a.iter().zip(b).map(|(a, b)| product(a[i], b[i])).sum::<u128>();
    (0..a[0].len()).map(|i| (sum(i) % u128::from(q)) as u64).collect()
}

fn slices(vectors: &[Vec<u64>]) -> Vec<&[u64]> {
    vectors.iter().map(Vec::as_slice).collect()
}

proptest! {
    #[test]
    fn sums_of_products_equal_their_definition(
        index in 0..PRIMES.len(), log_n in 3u32..8, terms in 1usize..9, seed: u64
    ) {
        let (q, n) = (PRIMES[index], 1 << log_n);
        let vectors = |offset| (0..terms as u64).map(|k| random(q, n, seed ^ (2 * k + offset))).collect::<Vec<_>>();
        let (a, b) = (vectors(0), vectors(1));
        let expected = naive(q, &a, &b);
        for modulus in backends(q) {
            let mut out = vec![0; n];
            modulus.dot(&mut out, &slices(&a), &slices(&b));
            prop_assert_eq!(&out, &expected);
            out.copy_from_slice(&a[0]);
            modulus.add_dot(&mut out, &slices(&a), &slices(&b));
            modulus.sub_assign_slice(&mut out, &a[0]);
            prop_assert_eq!(&out, &expected);
            let mut sum = Accumulator::new(&modulus, n);
            a.iter().zip(&b).for_each(|(a, b)| sum.mul_add(a, b));
            sum.reduce_into(&mut out);
            prop_assert_eq!(&out, &expected);
        }
    }

    #[test]
    fn sums_with_repeated_factors_equal_those_with_each_written_out(
        index in 0..PRIMES.len(), log_run in 3u32..8, log_runs in 0u32..4, terms in 1usize..9, seed: u64, most: bool
    ) {
        let (q, run, runs) = (PRIMES[index], 1 << log_run, 1 << log_runs);
        let vectors = |n, offset| {
            let vector = |k| if most { vec![q - 1; n] } else { random(q, n, seed ^ (2 * k + offset)) };
            (0..terms as u64).map(vector).collect::<Vec<_>>()
        };
        let (a, b) = (vectors(run * runs, 0), vectors(runs, 1));
        let written: Vec<Vec<u64>> = b.iter().map(|b| b.iter().flat_map(|x| vec![*x; run]).collect()).collect();
        for modulus in backends(q) {
            let mut out = random(q, run * runs, seed);
            let mut expected = out.clone();
            let by_run: Vec<u64> = (0..runs).flat_map(|run| b.iter().map(move |b| b[run])).collect();
            modulus.add_dot_repeated(&mut out, &slices(&a), &by_run, run);
            modulus.add_dot(&mut expected, &slices(&a), &slices(&written));
            prop_assert_eq!(&out, &expected);
        }
    }

    #[test]
    fn permuted_sums_equal_their_definition(
        index in 0..PRIMES.len(), log_n in 3u32..8, terms in 1usize..5, seed: u64, g in 0usize..64, f: u64, w: u64, parts in 0..4, most: bool
    ) {
        let (q, n) = (PRIMES[index], 1 << log_n);
        let vector = |k: u64| if most { vec![q - 1; n] } else { random(q, n, seed ^ k) };
        let vectors = |offset| (0..terms as u64).map(|k| vector(2 * k + offset)).collect::<Vec<_>>();
        let (a, b, added, subtracted) = (vectors(0), vectors(1), vector(40), if most { vec![0; n] } else { vector(41) });
        let permutation = EvalPermutation::new(GaloisElement::new(2 * (g % n) + 1, n).unwrap());
        for modulus in backends(q) {
            let ending = Ending {
                added: (parts & 1 == 1).then_some((&added, f)),
                subtracted: (parts & 2 == 2).then_some((&subtracted, modulus.shoup(w))),
                permutation: &permutation,
            };
            let mut expected = naive(q, &a, &b);
            for (i, sum) in expected.iter_mut().enumerate() {
                if parts & 1 == 1 {
                    *sum = modulus.add(*sum, modulus.mul(added[i], modulus.reduce(f)));
                }
                if parts & 2 == 2 {
                    *sum = modulus.mul(modulus.sub(*sum, subtracted[i]), modulus.reduce(w));
                }
            }
            let expected: Vec<_> = (0..n).map(|i| expected[permutation.source(i)]).collect();
            let mut out = vec![0; n];
            modulus.dot_permuted(&mut out, &slices(&a), &slices(&b), &ending);
            prop_assert_eq!(&out, &expected);
        }
    }

    #[test]
    fn slice_operations_equal_their_scalar_twins(index in 0..PRIMES.len(), n in 0usize..40, seed: u64, w: u64) {
        let q = PRIMES[index];
        let (a, b) = (random(q, n, seed), random(q, n, !seed));
        for modulus in backends(q) {
            let factor = modulus.shoup(w);
            let check = |run: &dyn Fn(&mut [u64]), one: &dyn Fn(u64, u64) -> u64| {
                let mut out = a.clone();
                run(&mut out);
                out.iter().eq(a.iter().zip(&b).map(|(x, y)| one(*x, *y)).collect::<Vec<_>>().iter())
            };
            prop_assert!(check(&|out| modulus.add_assign_slice(out, &b), &|x, y| modulus.add(x, y)));
            prop_assert!(check(&|out| modulus.sub_assign_slice(out, &b), &|x, y| modulus.sub(x, y)));
            prop_assert!(check(&|out| modulus.neg_slice(out), &|x, _| modulus.neg(x)));
            prop_assert!(check(&|out| modulus.mul_assign_slice(out, &b), &|x, y| modulus.mul(x, y)));
            prop_assert!(check(&|out| modulus.mul_scalar_slice(out, factor), &|x, _| modulus.mul(x, w % q)));
            prop_assert!(check(
                &|out| modulus.sub_mul_slice(out, &b, factor),
                &|x, y| modulus.mul(modulus.sub(x, y), w % q)
            ));
            for other in PRIMES {
                let target = Modulus::new(other).unwrap().with_backend(modulus.backend());
                let Ok(target) = target else { continue };
                let mut out = vec![0; n];
                target.reduce_slice(&mut out, &a);
                prop_assert!(out.iter().zip(&a).all(|(x, y)| *x == y % other));
                target.lift_centered_slice(&mut out, &a, &modulus);
                prop_assert!(out.iter().zip(&a).all(|(x, y)| *x == target.reduce_signed(modulus.center(*y))));
            }
        }
    }
}

#[test]
fn many_extreme_terms_do_not_overflow() {
    for q in PRIMES {
        for modulus in backends(q) {
            let n = 16;
            let top = vec![q - 1; n];
            let mut sum = Accumulator::new(&modulus, n);
            let terms = 10_000;
            (0..terms).for_each(|_| sum.mul_add(&top, &top));
            let mut out = vec![0; n];
            sum.reduce_into(&mut out);
            // (q - 1)^2 = 1.
            assert!(out.iter().all(|word| *word == terms % q), "q = {q}, {:?}", modulus.backend());
            let many = vec![top.as_slice(); 9000];
            modulus.dot(&mut out, &many, &many);
            assert!(out.iter().all(|word| *word == 9000 % q), "q = {q}, {:?}", modulus.backend());
            out.fill(0);
            modulus.add_dot_repeated(&mut out, &many, &vec![q - 1; 2 * 9000], 8);
            assert!(out.iter().all(|word| *word == 9000 % q), "q = {q}, {:?}", modulus.backend());
        }
    }
}
