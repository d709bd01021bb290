//! The error function, which the standard library does not have.

use std::f64::consts::FRAC_2_SQRT_PI;

/// Up to here the series takes fewer terms than the fraction.
const SERIES: f64 = 2.5;

/// `2 / sqrt(pi)` times the integral of `exp(-t^2)` from 0 to x, to about 1e-15.
pub(super) fn erf(x: f64) -> f64 {
    let magnitude = x.abs();
    if magnitude < SERIES {
        return FRAC_2_SQRT_PI * (-x * x).exp() * series(x);
    }
    (1.0 - tail(magnitude)).copysign(x)
}

/// `1 - erf(x)`, close also where it is small.
pub(super) fn erfc(x: f64) -> f64 {
    if x < SERIES { 1.0 - erf(x) } else { tail(x) }
}

/// The sum of `2^n x^(2n+1) / (1 3 5 ... (2n+1))`, all of one sign.
fn series(x: f64) -> f64 {
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > f64::EPSILON / 4.0 * sum.abs() {
        odd += 2.0;
        term *= 2.0 * x * x / odd;
        sum += term;
    }
    sum
}

/// `1 - erf(x)` from [`SERIES`] on, by the continued fraction `exp(-x^2) / sqrt(pi) / (x + (1/2) / (x + (2/2) / (x + ...)))`.
fn tail(x: f64) -> f64 {
    const TERMS: u32 = 48;
    let below = (1..=TERMS).rev().fold(x, |below, term| x + f64::from(term) / 2.0 / below);
    FRAC_2_SQRT_PI / 2.0 * (-x * x).exp() / below
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of Abramowitz and Stegun, tables 7.1 and 7.2, and where both ways meet.
    #[test]
    fn values_are_those_of_tables() {
        let cases = [
            (0.0, 0.0),
            (0.1, 0.112_462_916_0),
            (0.5, 0.520_499_877_8),
            (1.0, 0.842_700_792_9),
            (1.5, 0.966_105_146_5),
            (2.0, 0.995_322_265_0),
        ];
        for (x, value) in cases {
            assert!((erf(x) - value).abs() < 1e-9 && (erf(-x) + value).abs() < 1e-9, "{x}");
            assert!((erfc(x) - (1.0 - value)).abs() < 1e-9, "{x}");
        }
        let by_series = 1.0 - FRAC_2_SQRT_PI * (-SERIES * SERIES).exp() * series(SERIES);
        assert!((tail(SERIES) / by_series - 1.0).abs() < 1e-10, "{by_series}");
        assert!((tail(3.0) / 2.209_049_699_858_544e-5 - 1.0).abs() < 1e-13);
        assert_eq!((erf(30.0).to_bits(), erf(-30.0).to_bits()), (1.0_f64.to_bits(), (-1.0_f64).to_bits()));
    }
}
