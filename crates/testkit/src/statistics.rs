//! Tests of goodness of fit, for samplers and shares under fixed seeds.

/// Pearson's statistic of observed counts against expected ones.
///
/// # Panics
/// If the lengths differ.
#[must_use]
pub fn chi_square(observed: &[u64], expected: &[f64]) -> f64 {
    assert_eq!(observed.len(), expected.len(), "one expectation for each count");
    observed.iter().zip(expected).map(|(o, e)| (*o as f64 - e).powi(2) / e).sum()
}

/// Pearson's statistic of the counts of equally likely outcomes.
#[must_use]
pub fn uniform_chi_square(observed: &[u64]) -> f64 {
    let expected = observed.iter().sum::<u64>() as f64 / observed.len() as f64;
    chi_square(observed, &vec![expected; observed.len()])
}

/// The statistic of whether two samples were drawn alike, given the counts of each's outcomes, and its degrees of freedom: one less
/// than there are outcomes that either has.
///
/// # Panics
/// If the lengths differ or a sample is empty.
#[must_use]
pub fn two_sample_chi_square(a: &[u64], b: &[u64]) -> (f64, usize) {
    assert_eq!(a.len(), b.len(), "one count of each sample for each outcome");
    let total = |counts: &[u64]| counts.iter().sum::<u64>() as f64;
    assert!(total(a) > 0.0 && total(b) > 0.0, "a sample without values");
    let ratio = (total(b) / total(a)).sqrt();
    let seen = a.iter().zip(b).map(|(a, b)| (*a as f64, *b as f64)).filter(|(a, b)| a + b > 0.0);
    let terms: Vec<f64> = seen.map(|(a, b)| (a * ratio - b / ratio).powi(2) / (a + b)).collect();
    (terms.iter().sum(), terms.len().saturating_sub(1))
}

/// The value that [`chi_square`] exceeds with probability `10^-6`, for the given degrees of freedom.
///
/// The cube-root approximation of [WH31](https://doi.org/10.1073/pnas.17.12.684), never below it; 10 % above at 2 degrees, 3 % at 10,
/// less beyond.
#[must_use]
pub fn chi_square_limit(degrees: usize) -> f64 {
    // The normal deviate exceeded with probability 10^-6.
    const DEVIATE: f64 = 4.753_424;
    let k = degrees as f64;
    let spread = 2.0 / (9.0 * k);
    k * (1.0 - spread + DEVIATE * spread.sqrt()).powi(3)
}

/// The distribution function of the sum of three independent values, each uniform in `[-1/2, 1/2]`.
#[must_use]
pub fn sum_of_three_uniform(value: f64) -> f64 {
    let x = (value + 1.5).clamp(0.0, 3.0);
    let ends = |x: f64| x.powi(3) / 6.0;
    if x < 1.0 {
        ends(x)
    } else if x < 2.0 {
        ends(x) - 3.0 * ends(x - 1.0)
    } else {
        1.0 - ends(3.0 - x)
    }
}

/// Mean and unbiased variance.
#[must_use]
pub fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, squares / (count - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_equal_the_tables() {
        // Quantiles at 1 - 10^-6.
        for (degrees, quantile) in [(2, 27.631), (4, 33.377), (10, 46.863), (100, 182.127), (254, 375.868)] {
            let ratio = chi_square_limit(degrees) / quantile;
            assert!((1.0..1.1).contains(&ratio), "{degrees}");
        }
    }

    #[test]
    fn the_distribution_function_is_one_of_a_symmetric_law() {
        for (value, below) in [(-2.0, 0.0), (-1.5, 0.0), (0.0, 0.5), (1.5, 1.0), (2.0, 1.0)] {
            assert!((sum_of_three_uniform(value) - below).abs() < 1e-12);
        }
        for value in [0.1, 0.4999, 0.5001, 1.2] {
            let [below, above] = [-value, value].map(sum_of_three_uniform);
            assert!((below + above - 1.0).abs() < 1e-12);
        }
        // Variance 1/4: the integral of |x| (1 - F(|x|)) twice.
        let step = 1e-4;
        let second: f64 = (0..15_000)
            .map(|i| (f64::from(i) + 0.5) * step)
            .map(|x| 4.0 * step * x * (1.0 - sum_of_three_uniform(x)))
            .sum();
        assert!((second - 0.25).abs() < 1e-6, "{second}");
    }

    #[test]
    fn two_samples_of_one_law_are_alike_and_of_two_are_not() {
        // Pearson's statistic of a table of two rows.
        let (statistic, degrees) = two_sample_chi_square(&[10, 20, 0], &[20, 40, 0]);
        assert!(statistic < 1e-9 && degrees == 1);
        let (statistic, degrees) = two_sample_chi_square(&[20, 10], &[20, 70]);
        assert!(
            (statistic - 120.0 * (20.0 * 70.0 - 10.0 * 20.0_f64).powi(2) / (30.0 * 90.0 * 40.0 * 80.0)).abs()
                < 1e-9
        );
        assert_eq!(degrees, 1);
    }

    #[test]
    fn moments_of_a_small_sample() {
        assert_eq!(mean_and_variance(&[1.0, 2.0, 3.0, 4.0]), (2.5, 5.0 / 3.0));
        assert!(uniform_chi_square(&[10, 10, 10]) < 1e-9);
        assert!((uniform_chi_square(&[0, 20]) - 20.0).abs() < 1e-9);
    }
}
