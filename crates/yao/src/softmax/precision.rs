//! The widths with which a probability comes out right to its last digit.

use std::f64::consts::{LN_2, LOG2_E};

use lanner_gc::library::Exponential;
use lanner_step::{MAX_DIGITS, ProtocolError, Result};

use super::mantissa::{Shape, mantissa, power_of_two};

/// The widths of a softmax, from public parameters. Both parties compute them by the same sums and products of IEEE doubles, without a
/// logarithm of any library.
///
/// Let `p*` be the largest softmax probability of the scores, sigma the real value of one unit of them, and `tau = 10^-digits`. What comes out
/// is a function of the scores, and within tau of `p*`:
///
/// | part | bound | by |
/// |---|---|---|
/// | s low bits of the scores dropped, `u = 2^s sigma` (none for s = 0) | `u / 4 <= tau / 16` | each exponent moves by less than u, so does the logit of p, and a logistic function's slope is at most 1/4 |
/// | exponents rounded down to units of `2^-j` halvings | `2^-j ln(2) / 4 <= 11/64 tau` | as above |
/// | the factor from differences to those, rounded | `m 2^-q / 4 <= tau / 64` | as above; m is the largest exponent, q the factor's bits |
/// | differences of more than D units taken as D | `(K - 1) T(D) <= tau / 8` | each such term and `T(D)` are between 0 and the larger of both, which is `T(D)` but for what the other rows have; S >= 1 |
/// | terms rounded to F bits | `(2 e + K - 1) 2^-F <= tau / 8` | e units of `2^-F` of each mantissa ([`Shape`]), and one where halvings cut off ([`Exponential`]) |
/// | rounding to digits | `tau / 2` | the division is exact otherwise |
#[derive(Clone, Debug, PartialEq)]
pub struct Precision {
    classes: usize,
    digits: u32,
    scale: f64,
    dropped: u32,
    width: u32,
    clamps: bool,
    /// Halvings for each unit of a difference, before the factor is rounded.
    rate: f64,
    factor: u64,
    cut: u32,
    shape: Shape,
    fraction: u32,
}

impl Precision {
    /// The widths for scores of `bits` bits, each unit of which stands for `scale`.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless there are 2 to [`MAX_CLASSES`] classes, 1 to [`MAX_DIGITS`] digits and 2 to 64 bits, and unless the scale
    /// is positive and finite.
    pub fn new(classes: usize, digits: u32, scale: f64, bits: u32) -> Result<Self> {
        let unfit = |what| Err(ProtocolError::Parameters(what));
        if !(2..=MAX_CLASSES).contains(&classes) {
            return unfit("classes of a softmax");
        }
        if !(1..=MAX_DIGITS).contains(&digits) {
            return unfit("digits of a probability");
        }
        if !(scale.is_finite() && scale > 0.0 && (2..=64).contains(&bits)) {
            return unfit("scale of a softmax");
        }
        let parts = 10_u64.pow(digits) as f64;
        let dropped =
            (0..bits - 1).take_while(|s| scale * power_of_two(s + 1) <= 0.25 / parts).count() as u32;
        // The exponent from which on a term does not count, in halvings: no unit need be larger. A unit of an exponent more than eight.
        let reach = log2_above(9.0 * parts * (classes - 1) as f64);
        let unit = scale * power_of_two(dropped) * LOG2_E;
        let rate = unit.min(reach);
        let widest = bits - dropped;
        let enough = (1..widest).find(|width| rate * most(*width) >= reach);
        let width = enough.unwrap_or(widest);
        let clamps = enough.is_some() || rate < unit;

        let coarse = |j: &u32| LN_2 / power_of_two(*j) > 0.6875 / parts;
        let halving = 1 + (1..64).take_while(coarse).count() as u32;
        let factor_bits = log2_above((16.0 * LN_2 * parts * rate * most(width)).max(1.0)).ceil() as u32;
        let (factor, cut) = fixed_point(rate * power_of_two(halving), factor_bits, width);
        let shape = Shape::new(halving, 0.125 / parts);
        let enough = |fraction: &u32| computed(classes, shape, *fraction) <= 0.125 / parts;
        let fraction = (halving..=MAX_FRACTION).find(enough).unwrap_or(MAX_FRACTION);
        let precision =
            Self { classes, digits, scale, dropped, width, clamps, rate, factor, cut, shape, fraction };
        if precision.error_bound() <= 1.0 / parts { Ok(precision) } else { unfit("precision of a softmax") }
    }

    /// A bound on the distance of the digits from the largest probability of the exact softmax: the sum of the table's rows.
    #[must_use]
    pub fn error_bound(&self) -> f64 {
        let (classes, last) = (self.classes as f64, 1.0 / 10_f64.powi(self.digits as i32));
        let dropped = if self.dropped == 0 { 0.0 } else { self.scale * power_of_two(self.dropped) };
        let unit = LN_2 / power_of_two(self.shape.halving());
        let exact = self.rate * power_of_two(self.shape.halving()) * power_of_two(self.cut);
        let wrong = if self.factor == 0 { 0.0 } else { (self.factor as f64 - exact).abs() / exact };
        let factor = LN_2 * self.rate * most(self.width) * wrong;
        // The width is that for which this holds, or no difference is clamped.
        let z = (most(self.width) * self.factor as f64 / power_of_two(self.cut)).floor();
        let clamped = if self.clamps {
            (classes - 1.0) * below_power(z / power_of_two(self.shape.halving()))
        } else {
            0.0
        };
        let computed = computed(self.classes, self.shape, self.fraction);
        // The powers that coefficients are made of have a relative error below 2^-50.
        (dropped + unit + factor) / 4.0 + clamped + computed + 1.0 / power_of_two(38) + last / 2.0
    }

    /// Number of scores.
    #[must_use]
    pub const fn classes(&self) -> usize {
        self.classes
    }

    /// Decimal digits of the probability.
    #[must_use]
    pub const fn digits(&self) -> u32 {
        self.digits
    }

    /// s: low bits of the scores that do not count.
    #[must_use]
    pub const fn dropped(&self) -> u32 {
        self.dropped
    }

    /// w: bits of a difference; `D = 2^w - 1`.
    #[must_use]
    pub const fn width(&self) -> u32 {
        self.width
    }

    /// F: bits of a term behind the point.
    #[must_use]
    pub const fn fraction(&self) -> u32 {
        self.fraction
    }

    /// T: the terms, from differences.
    ///
    /// # Errors
    /// [`ProtocolError::Gc`]; never for widths that were accepted.
    pub fn exponential(&self) -> Result<Exponential> {
        let mantissa = mantissa(self.shape, self.fraction);
        Ok(Exponential::new(self.width, self.factor, self.cut, mantissa)?)
    }
}

/// The most classes: sums of that many terms have been tried for every scale.
pub const MAX_CLASSES: usize = 1 << 10;

/// Sums have room for no more.
const MAX_FRACTION: u32 = 35;

/// A factor of a given number of bits, or fewer, and the bits to cut off behind it, for a product with integers of `width` bits.
fn fixed_point(x: f64, bits: u32, width: u32) -> (u64, u32) {
    // Where all products are below one there is nothing to multiply.
    if x * most(width) < 1.0 {
        return (0, 0);
    }
    let cut = (1..128).take_while(|cut| x * power_of_two(*cut) < power_of_two(bits)).count() as u32;
    ((x * power_of_two(cut)).round() as u64, cut)
}

/// How far 1/S may be off since terms are rounded. With a mantissa off by e units of `2^-fraction`, and above half of one, the term T that halvings
/// make of it is off by `2 e T` units, and one where they cut off; the largest is not. With S and what is computed of it both at least 1, 1/S
/// is off by `2 e + K - 1` units at most.
fn computed(classes: usize, shape: Shape, fraction: u32) -> f64 {
    2.0 * shape.error(fraction) + (classes - 1) as f64 / power_of_two(fraction)
}

/// D for a given number of bits.
const fn most(width: u32) -> f64 {
    ((1_u128 << width) - 1) as f64
}

/// At least `2^-exponent`, and less than twice as much.
fn below_power(exponent: f64) -> f64 {
    let whole = exponent.floor().clamp(0.0, 1000.0);
    (0..whole as u32).fold(1.0, |power, _| power / 2.0) * (1.0 - 0.5 * (exponent - whole).clamp(0.0, 1.0))
}

/// At least `log2(x)` for `x >= 1`, by at most `2^-20`: the fraction's bits by repeated squaring.
fn log2_above(x: f64) -> f64 {
    let (mut whole, mut x) = (0.0, x);
    while x >= 2.0 {
        (whole, x) = (whole + 1.0, x / 2.0);
    }
    let mut place = 1.0;
    for _ in 0..21 {
        (place, x) = (place / 2.0, x * x);
        if x >= 2.0 {
            (whole, x) = (whole + place, x / 2.0);
        }
    }
    whole + 2.0 * place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_and_powers_bound_from_above() {
        for x in [1.0, 1.5, 2.0, 3.0, 400.0, 399_600_000.0, 4e9] {
            let above = log2_above(x) - f64::log2(x);
            assert!((0.0..2e-6).contains(&above), "{x}: {above}");
        }
        for exponent in [0.0, 0.3, 1.0, 17.9, 90.0] {
            let above = below_power(exponent) / f64::exp2(-exponent);
            assert!((1.0..1.07).contains(&above), "{exponent}: {above}");
        }
    }

    #[test]
    fn every_scale_has_widths_that_keep_the_bound() {
        let mut most = [0; 3];
        let scales = (-320..320).map(|exponent| f64::exp2(f64::from(exponent) / 8.0));
        // Just short of one unit's being enough, where halvings are most.
        let widest = (1..=MAX_DIGITS).map(|digits| {
            log2_above(9.0 * 10_f64.powi(digits as i32) * (MAX_CLASSES - 1) as f64) / LOG2_E * (1.0 - 1e-9)
        });
        for scale in scales.chain(widest) {
            for classes in [2, 3, 10, 100, 1000, MAX_CLASSES] {
                for digits in 1..=MAX_DIGITS {
                    for bits in [2, 17, 20, 37, 64] {
                        let precision = Precision::new(classes, digits, scale, bits);
                        let precision =
                            precision.unwrap_or_else(|_| panic!("{scale} {classes} {digits} {bits}"));
                        assert!(precision.error_bound() <= 10_f64.powi(-(digits as i32)));
                        assert!(precision.width() + precision.dropped() <= bits);
                        assert!(precision.exponential().is_ok());
                        let factor = 64 - precision.factor.leading_zeros();
                        let widths = [precision.width(), precision.fraction(), factor];
                        most.iter_mut().zip(widths).for_each(|(most, width)| *most = width.max(*most));
                    }
                }
            }
        }
        assert!(most[0] <= 29 && most[1] < MAX_FRACTION && most[2] <= 32, "{most:?}");
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        assert!(Precision::new(1, 2, 0.1, 20).is_err());
        assert!(Precision::new(MAX_CLASSES + 1, 2, 0.1, 20).is_err());
        assert!(Precision::new(10, 0, 0.1, 20).is_err());
        assert!(Precision::new(10, 7, 0.1, 20).is_err());
        for scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Precision::new(10, 2, scale, 20).is_err());
        }
    }
}
