//! The widths with which a probability comes out right to its last digit.

use std::f64::consts::LOG2_E;

use crate::ProtocolError;

/// The widths of a softmax, from public parameters. Both parties compute them by the same sums and products of IEEE doubles, without a
/// logarithm of any library.
///
/// Let `p*` be the largest softmax probability of the scores, sigma the real value of one unit of them, and `tau = 10^-digits`. What comes out
/// is within tau of `p*`:
///
/// | part | bound | by |
/// |---|---|---|
/// | s low bits of the scores dropped, `u = 2^s sigma` (none for s = 0) | `u / 4 <= tau / 8` | each exponent moves by less than u, so does the logit of p, and a logistic function's slope is at most 1/4 |
/// | differences of more than D units taken as D | `(K - 1) e^(-uD) <= tau / 4` | each such term grows by at most `e^(-uD)`, and S >= 1 |
/// | the client's factor cut off behind n bits | `K 2^-n e^(uD) <= tau / 32` | the server's factor is at most `e^(uD)` |
/// | n products rounded to F bits | `K n 2^-(F+1) <= tau / 16` | half a unit each |
/// | rounded exponentials | `2^-38` | both factors have a relative error below `2^-40` |
/// | rounding to digits | `tau / 2` | the division is exact otherwise |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precision {
    classes: usize,
    digits: u32,
    scale: f64,
    dropped: u32,
    width: u32,
    clamps: bool,
    rate: f64,
    factor_bits: u32,
    fraction: u32,
}

impl Precision {
    /// The widths for scores of `bits` bits, each unit of which stands for `scale`.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] unless there are 2 to [`MAX_CLASSES`] classes, 1 to [`MAX_DIGITS`] digits and 2 to 64 bits, and unless the scale
    /// is positive and finite.
    pub fn new(classes: usize, digits: u32, scale: f64, bits: u32) -> Result<Self, ProtocolError> {
        let unfit = |what| Err(ProtocolError::Shape { what });
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
        let dropped = (0..bits - 1).take_while(|s| scale * power_of_two(s + 1) <= 0.5 / parts).count() as u32;
        // m, in powers of two: no unit need be larger.
        let reach = log2_above(4.0 * parts * (classes - 1) as f64);
        let unit = scale * power_of_two(dropped) * LOG2_E;
        let rate = unit.min(reach);
        let widest = bits - dropped;
        let enough = (1..widest).find(|width| rate * most(*width) >= reach);
        let width = enough.unwrap_or(widest);

        let (range, terms) = (rate * most(width), classes as f64 * parts);
        let factor_bits = ((range + log2_above(terms)).ceil() as u32 + 5).min(MAX_FACTOR_BITS);
        let fraction = log2_above(terms * f64::from(factor_bits)).ceil() as u32 + 3;
        let clamps = enough.is_some() || rate < unit;
        let precision = Self { classes, digits, scale, dropped, width, clamps, rate, factor_bits, fraction };
        if precision.sum_bits() <= 62 && precision.error_bound() <= 1.0 / parts {
            Ok(precision)
        } else {
            unfit("precision of a softmax")
        }
    }

    /// A bound on the distance of the digits from the largest probability of the exact softmax: the sum of the table's rows.
    #[must_use]
    pub fn error_bound(&self) -> f64 {
        let (classes, last) = (self.classes as f64, 1.0 / 10_f64.powi(self.digits as i32));
        let range = self.rate * most(self.width);
        let dropped = if self.dropped == 0 { 0.0 } else { self.scale * power_of_two(self.dropped) / 4.0 };
        // The width is that for which this holds, or no difference is clamped.
        let clamped = if self.clamps { (classes - 1.0) * below_power(range) } else { 0.0 };
        let cut = classes * below_power(f64::from(self.factor_bits) - range);
        let rounded = classes * f64::from(self.factor_bits) / power_of_two(self.fraction + 1);
        let computed = cut + rounded + 1.0 / power_of_two(38);
        // The computed sum may be below one by as much.
        dropped + clamped + computed / (1.0 - computed).max(0.5) + last / 2.0
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

    /// w: bits of an exponent; `D = 2^w - 1`.
    #[must_use]
    pub const fn width(&self) -> u32 {
        self.width
    }

    /// How many times a term halves for each unit of an exponent: `u log2(e)`.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// n: bits of the client's factor, all behind the point.
    #[must_use]
    pub const fn factor_bits(&self) -> u32 {
        self.factor_bits
    }

    /// F: bits of a term behind the point.
    #[must_use]
    pub const fn fraction(&self) -> u32 {
        self.fraction
    }

    /// Bits of the ring in which the terms are summed. They add up to K at most, and a little more.
    #[must_use]
    pub const fn sum_bits(&self) -> u32 {
        self.fraction + (usize::BITS - self.classes.leading_zeros())
    }
}

/// The most classes: with more, a scale for which D is 3 would need wider factors at six digits.
pub const MAX_CLASSES: usize = 1 << 10;

/// The most decimal digits of a probability.
pub const MAX_DIGITS: u32 = 6;

const MAX_FACTOR_BITS: u32 = 127;

/// D for so many bits.
const fn most(width: u32) -> f64 {
    ((1_u128 << width) - 1) as f64
}

/// `2^exponent`, exactly.
fn power_of_two(exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |power, _| 2.0 * power)
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
        // Just short of one unit's being enough, where the factors are widest.
        let widest = (1..=MAX_DIGITS).map(|digits| {
            log2_above(4.0 * 10_f64.powi(digits as i32) * (MAX_CLASSES - 1) as f64) / LOG2_E * (1.0 - 1e-9)
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
                        let widths = [precision.width(), precision.factor_bits(), precision.sum_bits()];
                        most.iter_mut().zip(widths).for_each(|(most, width)| *most = width.max(*most));
                    }
                }
            }
        }
        assert!(most[0] <= 27 && most[1] == 127 && most[2] <= 62, "{most:?}");
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
