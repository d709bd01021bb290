//! Samplers have the stated distributions (fixed seeds, level 10^-6) and streams.

use crate::sample::{ERROR_BOUND, ERROR_STD, error, flood, ternary, uniform, uniform_below};
use crate::{Coeff, Eval, Modulus, Poly, RnsBasis};
use lanner_testkit::{
    TestRng, chi_square, chi_square_limit, mean_and_variance, sum_of_three_uniform, uniform_chi_square,
};

const PRIMES: [u64; 2] = [1_125_899_903_827_969, 1_125_899_902_124_033];
const N: usize = 32_768;

fn basis() -> RnsBasis {
    RnsBasis::new(N, &PRIMES).unwrap()
}

fn centered(poly: &Poly<Coeff>) -> Vec<i64> {
    let modulus = &poly.basis().moduli()[0];
    poly.limb(0).iter().map(|word| modulus.center(*word)).collect()
}

/// Every limb holds the residues of the same small integers.
fn limbs_agree(poly: &Poly<Coeff>) -> bool {
    let values: Vec<i32> = centered(poly).into_iter().map(|value| value.try_into().unwrap()).collect();
    Poly::from_signed(poly.basis(), &values).unwrap().words() == poly.words()
}

#[test]
fn uniform_values_are_reduced_and_flat() {
    for q in [7681, 33_538_049, PRIMES[0]] {
        let mut values = vec![0; N];
        uniform_below(&Modulus::new(q).unwrap(), &mut values, &mut TestRng::new(1));
        let mut counts = [0; 256];
        for value in &values {
            counts[(u128::from(*value) * 256 / u128::from(q)) as usize] += 1;
        }
        assert!(values.iter().all(|value| *value < q));
        if q == 7681 {
            // 7681 = 30 * 256 + 1: the buckets are not of equal size, which their expectation shows.
            let sizes: Vec<_> =
                (0..256u64).map(|b| ((b + 1) * q).div_ceil(256) - (b * q).div_ceil(256)).collect();
            let expected: Vec<_> = sizes.iter().map(|size| *size as f64 * N as f64 / q as f64).collect();
            assert!(chi_square(&counts, &expected) < chi_square_limit(255));
        } else {
            assert!(uniform_chi_square(&counts) < chi_square_limit(255));
        }
    }
}

#[test]
fn ternary_values_are_flat() {
    let poly = ternary(&basis(), &mut TestRng::new(2));
    let mut counts = [0; 3];
    for value in centered(&poly) {
        counts[usize::try_from(value + 1).unwrap()] += 1;
    }
    assert!(uniform_chi_square(&counts) < chi_square_limit(2));
    assert!(limbs_agree(&poly));
}

#[test]
fn error_is_the_centred_binomial() {
    let poly = error(&basis(), &mut TestRng::new(3));
    let values = centered(&poly);
    assert!(values.iter().all(|value| value.unsigned_abs() <= ERROR_BOUND));
    let reals: Vec<_> = values.iter().map(|value| *value as f64).collect();
    let (mean, variance) = mean_and_variance(&reals);
    assert!(mean.abs() < 5.0 * ERROR_STD / (N as f64).sqrt());
    assert!((ERROR_STD.powi(2) - 10.5).abs() < 1e-9);
    assert!((variance / 10.5 - 1.0).abs() < 5.0 * (2.0 / N as f64).sqrt());
    // P(k) = C(42, 21 + k) / 2^42; outcomes beyond 9 are counted together, as they are rare.
    let binomial = |k: i64| (0..21 + k).fold(2f64.powi(-42), |c, i| c * (42 - i) as f64 / (i + 1) as f64);
    let count = |test: &dyn Fn(i64) -> bool| values.iter().filter(|value| test(**value)).count() as u64;
    let observed: Vec<_> =
        (-9..=9).map(|k| count(&|value| value == k)).chain([count(&|value| value.abs() > 9)]).collect();
    let middle: Vec<_> = (-9..=9).map(|k| binomial(k) * N as f64).collect();
    let tails = N as f64 - middle.iter().sum::<f64>();
    let expected: Vec<_> = middle.into_iter().chain([tails]).collect();
    assert!(chi_square(&observed, &expected) < chi_square_limit(19));
    assert!(limbs_agree(&poly));
}

#[test]
fn primes_below_the_errors_reduce_them() {
    let large = RnsBasis::new(8, &PRIMES[..1]).unwrap();
    for q in [17, 97] {
        let small = error(&RnsBasis::new(8, &[q]).unwrap(), &mut TestRng::new(6));
        let values = centered(&error(&large, &mut TestRng::new(6)));
        assert!(
            small.words().iter().zip(values).all(|(word, value)| *word == value.rem_euclid(q as i64) as u64)
        );
    }
}

#[test]
fn flood_is_a_sum_of_three_uniform_values() {
    for bits in [40, 60, 90] {
        let poly = flood(&basis(), bits, &mut TestRng::new(4));
        let mut counts = [0; 64];
        for i in (0..N).step_by(4) {
            let value = poly.coefficient(i).to_i128().unwrap();
            let bound = 3i128 << (bits - 1);
            assert!((-bound..bound).contains(&value), "{bits} bits");
            let place = sum_of_three_uniform(value as f64 / f64::from(bits).exp2());
            counts[((place * 64.0) as usize).min(63)] += 1;
        }
        assert!(uniform_chi_square(&counts) < chi_square_limit(counts.len() - 1), "{bits} bits");
    }
}

#[test]
fn a_narrow_flood_has_the_probabilities_of_a_sum_of_three() {
    // Two bits: sums of three of 0 to 3, less 6.
    let ways = [1.0, 3.0, 6.0, 10.0, 12.0, 12.0, 10.0, 6.0, 3.0, 1.0];
    let expected = ways.map(|ways| ways / 64.0 * N as f64);
    let poly = flood(&basis(), 2, &mut TestRng::new(7));
    let mut counts = [0; 10];
    for value in centered(&poly) {
        counts[usize::try_from(value + 6).unwrap()] += 1;
    }
    assert!(limbs_agree(&poly));
    assert!(chi_square(&counts, &expected) < chi_square_limit(9));
}

#[test]
fn streams_are_fixed() {
    // A changed stream breaks every seeded ciphertext in flight: this digest may change only with the wire version.
    let basis = RnsBasis::new(64, &PRIMES).unwrap();
    let digest =
        |words: &[u64]| words.iter().fold(0u64, |h, w| (h ^ w).wrapping_mul(0x100_0000_01b3).rotate_left(23));
    let rng = || TestRng::new(5);
    let digests = [
        digest(uniform::<Eval>(&basis, &mut rng()).words()),
        digest(ternary(&basis, &mut rng()).words()),
        digest(error(&basis, &mut rng()).words()),
        digest(flood(&basis, 80, &mut rng()).words()),
    ];
    assert_eq!(
        digests,
        [0x388d_bcde_2f2d_2533, 0xf677_334f_af9f_7b41, 0x470f_60af_6d1d_1c63, 0x3080_1d3d_2242_12e8]
    );
}
