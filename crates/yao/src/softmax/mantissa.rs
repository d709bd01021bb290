//! Powers of two between one half and one by polynomials, with integers alone: the same on every machine.

use std::f64::consts;

use lanner_gc::library::Mantissa;

/// How powers of fractions of `halving` bits are made: polynomials on `2^place` segments, which equal the powers at both ends, and squares in the middle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shape {
    halving: u32,
    /// Bits of a segment's number.
    place: u32,
    /// 0, 1 or 2.
    degree: u32,
}

/// Lines are on `2^7` segments at most, beyond which squares take less.
const MOST_PLACE: u32 = 7;

impl Shape {
    /// The cheapest whose polynomials are within so much of the powers that seven tenths of an error are left for what is rounded.
    pub(super) fn new(halving: u32, error: f64) -> Self {
        if halving <= MOST_PLACE {
            return Self { halving, place: halving, degree: 0 };
        }
        let enough = |shape: &Self| 2.0 * shape.off() <= 0.7 * error;
        let of = |degree| (0..=MOST_PLACE).map(move |place| Self { halving, place, degree });
        let fallback = Self { halving, place: MOST_PLACE, degree: 2 };
        of(1).find(enough).or_else(|| of(2).find(enough)).unwrap_or(fallback)
    }

    /// j: bits of the fractions.
    pub(super) const fn halving(self) -> u32 {
        self.halving
    }

    /// Bits of the place in a segment.
    const fn rest(self) -> u32 {
        self.halving - self.place
    }

    /// Bits that sums have below units: a coefficient's last place is multiplied with a power of the place in a segment.
    const fn drop(self) -> u32 {
        match self.degree {
            0 => 0,
            degree => degree * self.rest() - (degree - 1),
        }
    }

    /// How far polynomials are from the powers: for a segment of length w, `w^2 / 8` times the second derivative's bound for a chord, and
    /// `(w / 2)^3 sqrt(3) / 27` times the third's for a parabola through both ends and the middle.
    fn off(self) -> f64 {
        let width = consts::LN_2 / power_of_two(self.place);
        match self.degree {
            0 => 0.0,
            1 => width * width / 8.0,
            _ => width * width * width / 124.0,
        }
    }

    /// How far a mantissa is from the power: by how far the polynomial is; half a unit of the sum's for each coefficient, times a power of the
    /// place; and half of one of a mantissa's, to the nearest of which a sum is rounded.
    pub(super) fn error(self, fraction: u32) -> f64 {
        let ends = power_of_two(self.rest());
        let powers = std::iter::successors(Some(1.0), |power| Some(power * ends));
        let coefficients: f64 = powers.take(self.degree as usize + 1).sum();
        let rounded = if self.drop() > 0 { 0.5 } else { 0.0 };
        self.off() + (0.51 * coefficients / power_of_two(self.drop()) + rounded) / power_of_two(fraction)
    }
}

/// The powers `2^-(f / 2^halving)` of all f in units of `2^-fraction`, to the nearest but for [`Shape::error`]. Of the sums' and the mantissa's bits
/// there may be 62.
pub(super) fn mantissa(shape: Shape, fraction: u32) -> Mantissa {
    let (rest, drop) = (shape.rest(), shape.drop());
    // A number of units of 2^-63 over 2^below in those of sums, to the nearest.
    let to_nearest = |number: u128, below: u32| -> u64 {
        let lost = 63 + below - fraction - drop;
        ((number + (1 << (lost - 1))) >> lost) as u64
    };
    let half = if drop > 0 { 1 << (drop - 1) } else { 0 };
    let segment = |a: u64| -> Vec<u64> {
        // Twice as many places as there are segments: their ends and their middles.
        let at = |place: u64| match shape.place + 1 {
            bits if place >> bits > 0 => u128::from(ONE / 2),
            bits => u128::from(power(place << (u64::BITS - bits))),
        };
        let [start, middle, end] = [2 * a, 2 * a + 1, 2 * a + 2].map(at);
        let constant = to_nearest(start, 0) + half;
        match shape.degree {
            0 => vec![constant],
            1 => vec![constant, to_nearest(start - end, rest)],
            _ => vec![
                constant,
                to_nearest(3 * start + end - 4 * middle, rest),
                to_nearest(2 * (start + end - 2 * middle), 2 * rest),
            ],
        }
    };
    let segments = (0..1 << shape.place).map(segment).collect();
    Mantissa { segments, rest, drop, fraction }
}

/// `2^-(fraction / 2^64)` in units of `2^-63`, with a relative error below `2^-50`.
fn power(fraction: u64) -> u64 {
    // e^-y for y = fraction ln 2, by Horner's rule on the Taylor series: 1 - y (1 - y/2 (1 - y/3 (...))), in units of 2^-63.
    let y = high_product(fraction, LN_2);
    INVERSES.iter().rev().fold(ONE, |rest, over_n| ONE - high_product(high_product(y, rest), *over_n))
}

/// `floor(a b / 2^64)`.
const fn high_product(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

const ONE: u64 = 1 << 63;
/// `ln(2)` in units of `2^-64`, so that `y` is, too.
const LN_2: u64 = 0xb172_17f7_d1cf_79ab;
/// `1/n` in units of `2^-64`, for n from 1 to 16: `(ln 2)^17 / 17!` is below `2^-57`.
const INVERSES: [u64; 16] = {
    let mut inverses = [u64::MAX; 16];
    let mut n = 1;
    while n < 16 {
        inverses[n] = u64::MAX / (n as u64 + 1);
        n += 1;
    }
    inverses
};

/// `2^exponent`, exactly.
pub(super) fn power_of_two(exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |power, _| 2.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_powers_of_two() {
        for fraction in [0, 1, 1 << 40, 1 << 62, 1 << 63, 3 << 62, 0x1234_5678_9abc_def0, u64::MAX] {
            let truth = f64::exp2(-(fraction as f64) / f64::exp2(64.0));
            let error = power(fraction) as f64 / f64::exp2(63.0) / truth - 1.0;
            assert!(error.abs() < 1e-15, "{fraction}: {error}");
        }
        assert_eq!(power(0), ONE);
    }

    #[test]
    fn shapes_are_those_that_take_least() {
        let parts = |digits: i32| 10_f64.powi(digits);
        let shape = |halving, digits| Shape::new(halving, 0.125 / parts(digits));
        assert_eq!(shape(7, 2), Shape { halving: 7, place: 7, degree: 0 });
        assert_eq!(shape(10, 3), Shape { halving: 10, place: 6, degree: 1 });
        assert_eq!(shape(14, 4), Shape { halving: 14, place: 7, degree: 1 });
        assert_eq!(shape(17, 5), Shape { halving: 17, place: 5, degree: 2 });
        assert_eq!(shape(20, 6), Shape { halving: 20, place: 6, degree: 2 });
    }

    #[test]
    fn mantissas_are_within_their_error_of_the_powers() {
        for (halving, digits, fraction) in
            [(4, 1, 10), (7, 2, 14), (10, 3, 18), (14, 4, 22), (17, 5, 26), (20, 6, 33)]
        {
            let shape = Shape::new(halving, 0.125 / 10_f64.powi(digits));
            let Mantissa { segments, rest, drop, .. } = mantissa(shape, fraction);
            let error = shape.error(fraction) * f64::exp2(f64::from(fraction));
            for f in (0..1_u64 << halving).step_by(1 << (halving / 3)).chain([1, (1 << halving) - 1]) {
                let (segment, e) = (&segments[(f >> rest) as usize], f & ((1 << rest) - 1));
                let sum = segment.iter().rev().fold(0, |sum, c| c - sum * e);
                let truth = f64::exp2(f64::from(fraction) - f as f64 / f64::exp2(f64::from(halving)));
                assert!(((sum >> drop) as f64 - truth).abs() <= error, "{halving} {f}");
            }
        }
    }
}
