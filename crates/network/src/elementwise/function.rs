//! Any function of one element: polynomials on equal segments of its domain.

use serde::{Deserialize, Serialize};

use super::factors::Factors;
use super::{FixedElementwise, MAX_POLYNOMIAL_BITS, MAX_SEGMENT_BITS};
use crate::accumulator::{Accumulator, rounding_constant};

/// The most bits of a [`FixedFunction`]'s domain.
pub const MAX_DOMAIN_BITS: u32 = 20;

/// The largest degree of a [`FixedFunction`]'s polynomials.
pub const MAX_DEGREE: usize = 3;

/// A function by its values on integers `low .. low + 2^bits`, which a polynomial gives on each of 2^m equal segments.
///
/// With `u = clamp(x - low, 0, 2^bits - 1)`, `t = bits - m`, `h = u >> t` and `e = u mod 2^t` its value at x is
/// `floor((p + 2^(shift-1)) / 2^shift)` for `p = sum_i polynomials[h][i] e^i`; for a shift of 0 it is p. All of it is exact, so that the
/// value follows from x alone. With m = bits it is a table, with m = 0 one polynomial.
///
/// With factors all of that is of the low bits of `u`, and the highest choose what it is multiplied with; see [`Factors`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedFunction {
    /// Where the domain begins: what is below counts as this.
    pub low: i64,
    /// The domain has 2^bits integers; what is beyond the last counts as the last. 1 to [`MAX_DOMAIN_BITS`].
    pub bits: u32,
    /// The coefficients on each of 2^m segments in order, the constant first: m is at most [`MAX_SEGMENT_BITS`] and `bits`, and all have
    /// one degree, at most [`MAX_DEGREE`].
    pub polynomials: Vec<Vec<i64>>,
    /// Bits that are dropped at the end.
    pub shift: u32,
    /// What the polynomials' value is multiplied with, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factors: Option<Factors>,
}

impl FixedFunction {
    /// The value at x; of a function that [is sound](Self::check_sizes).
    #[must_use]
    pub fn at(&self, x: i64) -> i64 {
        let last = (1_i64 << self.bits) - 1;
        self.at_place(x.saturating_sub(self.low).clamp(0, last))
    }

    /// The value at a place of the domain, counted from its beginning.
    #[must_use]
    pub fn at_place(&self, place: i64) -> i64 {
        let bits = self.within_bits();
        let value = self.within_at(place & ((1 << bits) - 1));
        self.factors.as_ref().map_or(value, |factors| factors.times(place >> bits, value))
    }

    /// What the polynomials give at a place, counted from where the same factor begins.
    pub(super) fn within_at(&self, place: i64) -> i64 {
        (self.polynomial_at(place) + rounding_constant(self.shift)) >> self.shift
    }

    /// The polynomial of a place's segment there.
    pub(super) fn polynomial_at(&self, place: i64) -> i64 {
        let bits = self.place_bits();
        let within = place & ((1 << bits) - 1);
        let polynomial = &self.polynomials[(place >> bits) as usize];
        polynomial.iter().rev().fold(0, |value, coefficient| value * within + coefficient)
    }

    /// The last integer of the domain.
    #[must_use]
    pub const fn last(&self) -> i64 {
        self.low.saturating_add((1 << self.bits) - 1)
    }

    /// Bits that choose a segment: m.
    #[must_use]
    pub const fn segment_bits(&self) -> u32 {
        self.polynomials.len().ilog2()
    }

    /// Bits of a place within a segment: t.
    #[must_use]
    pub fn place_bits(&self) -> u32 {
        self.within_bits() - self.segment_bits()
    }

    /// Bits that choose a factor.
    #[must_use]
    pub fn factor_bits(&self) -> u32 {
        self.factors.as_ref().map_or(0, Factors::bits)
    }

    /// Bits of a place among those of one factor.
    pub(super) fn within_bits(&self) -> u32 {
        self.bits - self.factor_bits()
    }

    /// The degree of the polynomials.
    #[must_use]
    pub fn degree(&self) -> usize {
        self.polynomials.first().map_or(0, |polynomial| polynomial.len().saturating_sub(1))
    }

    /// Why sizes or coefficients are none that a function may have, if they are not.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn check_sizes(&self) -> Result<(), String> {
        let Self { low, bits, ref polynomials, shift, ref factors } = *self;
        if !(1..=MAX_DOMAIN_BITS).contains(&bits) || low.unsigned_abs() > 1 << MAX_POLYNOMIAL_BITS {
            return Err(format!("a domain of 2^{bits} integers from {low} on is not usable"));
        }
        if let Some(factors) = factors {
            factors.check_sizes(bits)?;
        }
        let count = polynomials.len();
        if !count.is_power_of_two() || count.ilog2() > self.within_bits().min(MAX_SEGMENT_BITS) {
            return Err(format!("{count} segments of a domain of 2^{bits} integers are not usable"));
        }
        let terms = polynomials[0].len();
        let one_degree = polynomials.iter().all(|polynomial| polynomial.len() == terms);
        if !one_degree || !(1..=MAX_DEGREE + 1).contains(&terms) {
            return Err(format!("its polynomials do not share a degree of at most {MAX_DEGREE}"));
        }
        if shift >= MAX_POLYNOMIAL_BITS {
            return Err(format!("a shift of {shift} bits is too large"));
        }
        if self.magnitude() >= 1 << MAX_POLYNOMIAL_BITS {
            return Err(format!("its polynomials do not stay below 2^{MAX_POLYNOMIAL_BITS}"));
        }
        let value = (self.magnitude() >> shift) + 1;
        if factors.as_ref().is_some_and(|factors| factors.magnitude(value) >= 1 << MAX_POLYNOMIAL_BITS) {
            return Err(format!("its products with factors do not stay below 2^{MAX_POLYNOMIAL_BITS}"));
        }
        Ok(())
    }
}

impl FixedElementwise for FixedFunction {
    fn eval(&self, x: i128) -> i128 {
        // Whatever is beyond 64 bits is beyond the domain, too.
        self.at(x.clamp(i64::MIN.into(), i64::MAX.into()) as i64).into()
    }

    fn interval(&self, x: [i128; 2]) -> [i128; 2] {
        let [low, high] = x.map(|end| end.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
        let [least, most] = self.range(low, high);
        [least.min(0).into(), most.max(0).into()]
    }

    /// The largest difference of neighbours.
    fn gain(&self, _magnitude: i64, _error: i64) -> i64 {
        let values = (0..1_i64 << self.bits).map(|place| self.at_place(place));
        values.clone().zip(values.skip(1)).map(|(value, next)| (next - value).abs()).max().unwrap_or(0)
    }

    /// The domain must lie within the ring that is left, for comparisons with its ends, and the values within the ring that they enter.
    fn check(&self, before: Accumulator, after: Accumulator) -> Result<(), String> {
        self.check_sizes()?;
        let limit = before.domain_limit();
        if i128::from(self.low) < -limit || i128::from(self.last()) > limit {
            return Err(format!("its domain from {} to {} is outside the ring", self.low, self.last()));
        }
        let [least, most] = self.range(self.low, self.last());
        let limit = after.limit(0);
        if i128::from(least) < -limit || i128::from(most) > limit {
            return Err(format!("its values from {least} to {most} are outside the ring"));
        }
        Ok(())
    }

    fn changes_ring(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of 8 places, a parabola and a line.
    fn bent() -> FixedFunction {
        FixedFunction {
            low: -8,
            bits: 4,
            polynomials: vec![vec![160, -40, 4], vec![-96, 24, 0]],
            shift: 2,
            factors: None,
        }
    }

    #[test]
    fn values_are_those_of_the_formula() {
        let function = bent();
        function.check_sizes().unwrap();
        for x in -20..20_i64 {
            let u = (x + 8).clamp(0, 15);
            let e = u % 8;
            let p = if u < 8 { 160 - 40 * e + 4 * e * e } else { -96 + 24 * e };
            assert_eq!(function.at(x), (p + 2).div_euclid(4), "{x}");
            assert_eq!(function.eval(x.into()), function.at(x).into());
        }
        assert_eq!(function.at(i64::MIN), function.at(-8));
        assert_eq!(function.at(i64::MAX), function.at(7));
        assert_eq!(function.eval(i128::MAX), function.at(7).into());
        assert_eq!((function.segment_bits(), function.place_bits(), function.degree()), (1, 3, 2));
    }

    #[test]
    fn a_table_has_a_value_for_each_place() {
        let polynomials: Vec<Vec<i64>> = [5, -1, 7, 2].map(|value| vec![value]).to_vec();
        let table = FixedFunction { low: 3, bits: 2, polynomials, shift: 0, factors: None };
        table.check_sizes().unwrap();
        assert_eq!([2, 3, 4, 5, 6, 7].map(|x| table.at(x)), [5, 5, -1, 7, 2, 2]);
    }

    #[test]
    fn intervals_are_exact_and_hold_zero_and_the_gain_is_the_steepest_step() {
        let function = bent();
        for low in -10..=0_i64 {
            for high in 0..10_i64 {
                let values = || (low..=high).map(|x| i128::from(function.at(x)));
                let expected = [values().min().unwrap().min(0), values().max().unwrap().max(0)];
                assert_eq!(function.interval([low.into(), high.into()]), expected, "{low} {high}");
            }
        }
        let steps = (-10..10).map(|x| (function.at(x + 1) - function.at(x)).abs());
        assert_eq!(function.gain(8, 1), steps.max().unwrap());
        // A function that is nowhere 0.
        let flat = FixedFunction { low: 0, bits: 1, polynomials: vec![vec![9]], shift: 0, factors: None };
        assert_eq!((flat.interval([-1, 1]), flat.gain(1, 1)), ([0, 9], 0));
    }

    #[test]
    fn what_is_no_function_is_refused() {
        let refused = |change: fn(&mut FixedFunction)| {
            let mut function = bent();
            change(&mut function);
            function.check_sizes().unwrap_err()
        };
        assert!(refused(|f| f.bits = 0).contains("domain"));
        assert!(refused(|f| f.bits = 21).contains("domain"));
        assert!(refused(|f| f.low = i64::MIN).contains("domain"));
        assert!(refused(|f| f.polynomials.clear()).contains("0 segments"));
        assert!(refused(|f| f.polynomials.truncate(0)).contains("segments"));
        assert!(refused(|f| f.polynomials.push(vec![0; 3])).contains("3 segments"));
        assert!(refused(|f| f.polynomials = vec![vec![0]; 32]).contains("32 segments"));
        assert!(refused(|f| f.polynomials[1] = vec![0]).contains("degree"));
        assert!(refused(|f| f.polynomials = vec![vec![0; 5]; 2]).contains("degree"));
        assert!(refused(|f| f.polynomials = vec![Vec::new(); 2]).contains("degree"));
        assert!(refused(|f| f.shift = 59).contains("shift"));
        assert!(refused(|f| f.polynomials[0][2] = 1 << 53).contains("2^59"));
        assert!(refused(|f| f.polynomials[1] = vec![i64::MIN, i64::MAX, i64::MIN]).contains("2^59"));
        let factors = |values: Vec<i64>, shift| Some(Factors { values, shift });
        let scaled = |factors| {
            let function = FixedFunction { factors, ..bent() };
            function.check_sizes().unwrap_err()
        };
        assert!(FixedFunction { factors: factors(vec![3; 8], 2), ..bent() }.check_sizes().is_ok());
        assert!(scaled(factors(vec![], 0)).contains("0 factors"));
        assert!(scaled(factors(vec![1], 0)).contains("1 factors"));
        assert!(scaled(factors(vec![1; 3], 0)).contains("3 factors"));
        assert!(scaled(factors(vec![1; 32], 0)).contains("32 factors"));
        assert!(scaled(factors(vec![1; 512], 0)).contains("512 factors"));
        assert!(scaled(factors(vec![1; 16], 0)).contains("2 segments"));
        assert!(scaled(factors(vec![1; 2], 59)).contains("shift"));
        assert!(scaled(factors(vec![0, i64::MIN], 0)).contains("products"));
    }

    #[test]
    fn domain_and_values_lie_within_their_rings() {
        let [small, large] = [16, 20].map(|bits| Accumulator::from_modulus(1 << bits).unwrap());
        let mut function = bent();
        function.check(small, small).unwrap();
        // A quarter of the ring on either side of 0, and no more.
        (function.low, function.bits, function.polynomials) = (-(1 << 14), 15, vec![vec![9], vec![-9]]);
        function.check(small, large).unwrap();
        for (low, bits) in [(-(1 << 14) - 1, 15), (2 - (1 << 14), 15), (0, 15)] {
            (function.low, function.bits) = (low, bits);
            assert!(function.check(small, large).unwrap_err().contains("domain"), "{low}");
            function.check(large, large).unwrap();
        }
        function.polynomials[0][0] = 1 << 19;
        assert!(function.check(large, small).unwrap_err().contains("values"));
        function.check(large, large).unwrap();
    }
}
