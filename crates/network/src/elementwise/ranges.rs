//! What a function's values, and the sums that they are made of, lie between.

use std::cell::LazyCell;

use super::FixedFunction;
use crate::accumulator::rounding_constant;

impl FixedFunction {
    /// The smallest and the largest value over a range of inputs.
    #[must_use]
    pub fn range(&self, low: i64, high: i64) -> [i64; 2] {
        let last = (1_i64 << self.bits) - 1;
        let [from, to] = [low, high].map(|x| x.saturating_sub(self.low).clamp(0, last));
        let bits = self.within_bits();
        // The same for all factors but the first and the last.
        let whole = LazyCell::new(|| self.range_within(0, (1 << bits) - 1));
        let of_factor = |factor: i64| {
            let [start, end] = [factor << bits, ((factor + 1) << bits) - 1];
            let is_whole = from <= start && end <= to;
            let ends = if is_whole {
                *whole
            } else {
                self.range_within(start.max(from) - start, end.min(to) - start)
            };
            self.factors.as_ref().map_or(ends, |factors| ends.map(|value| factors.times(factor, value)))
        };
        let first = self.at_place(from);
        ((from >> bits)..=(to >> bits))
            .flat_map(of_factor)
            .fold([first; 2], |[least, most], value| [least.min(value), most.max(value)])
    }

    /// The smallest and the largest value that polynomials give over a range of places of one factor.
    fn range_within(&self, from: i64, to: i64) -> [i64; 2] {
        let (bits, first) = (self.place_bits(), self.within_at(from));
        let of_segment = |segment: i64| {
            let [start, end] = [segment << bits, ((segment + 1) << bits) - 1];
            // Rounding and the shift keep the order.
            let value = |place: i64| self.polynomial_at(place);
            turns(&value, self.degree(), start.max(from), end.min(to))
        };
        ((from >> bits)..=(to >> bits))
            .flat_map(of_segment)
            .map(|place| self.within_at(place))
            .fold([first; 2], |[least, most], value| [least.min(value), most.max(value)])
    }

    /// What its polynomials lie between on all segments, before anything is rounded: of the sum from each power on, those below left out.
    #[must_use]
    pub fn sum_ranges(&self) -> Vec<[i128; 2]> {
        let last = (1_i128 << self.place_bits()) - 1;
        let mut ranges = vec![[i128::MAX, i128::MIN]; self.degree() + 1];
        for polynomial in &self.polynomials {
            let [mut low, mut high] = [0, 0];
            for (range, c) in ranges.iter_mut().zip(polynomial).rev() {
                let c = i128::from(*c);
                [low, high] = [c + (low * last).min(0), c + (high * last).max(0)];
                *range = [range[0].min(low), range[1].max(high)];
            }
        }
        ranges
    }

    /// What its polynomials stay within, all terms taken as positive and the rounding included.
    #[must_use]
    pub fn magnitude(&self) -> i128 {
        let bits = self.place_bits();
        let of = |polynomial: &Vec<i64>| {
            let term = |(power, c): (u32, &i64)| i128::from(c.unsigned_abs()) << (bits * power);
            (0..).zip(polynomial).map(term).sum::<i128>()
        };
        let largest = self.polynomials.iter().map(of).max().unwrap_or(0);
        largest + i128::from(rounding_constant(self.shift))
    }
}

/// Both ends of a range and the places in between where a polynomial of this degree turns: its extremes are among its values there.
///
/// Between them it goes one way, and the places are found by halving, for its differences are a polynomial of one degree less.
fn turns(value: &dyn Fn(i64) -> i64, degree: usize, from: i64, to: i64) -> Vec<i64> {
    let mut found = vec![from, to];
    if degree < 2 || to - from < 2 {
        return found;
    }
    let step = |place: i64| value(place + 1) - value(place);
    for run in turns(&step, degree - 1, from, to - 1).windows(2) {
        let &[mut before, mut behind] = run else { continue };
        let (first, last) = (step(before).signum(), step(behind).signum());
        if last == 0 || first == last {
            continue;
        }
        while behind - before > 1 {
            let middle = i64::midpoint(before, behind);
            if step(middle).signum() == last {
                behind = middle;
            } else {
                before = middle;
            }
        }
        found.push(behind);
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elementwise::Factors;

    #[test]
    fn ranges_are_exact_wherever_polynomials_turn() {
        let mut state = 1_u64;
        let mut draw = |most: i64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as i64 % (2 * most + 1) - most
        };
        for number in 0..2000 {
            let terms = 1 + number % 4;
            // Coefficients that fall with the power let a polynomial turn within its segment.
            let mut polynomial = || (0..terms).map(|power| draw(40_000 >> (5 * power))).collect::<Vec<i64>>();
            let polynomials = vec![polynomial(), polynomial()];
            let values = (0..1 << (1 + number % 5)).map(|_| draw(9)).collect();
            let factors = (number % 3 == 0).then_some(Factors { values, shift: number as u32 % 4 });
            let shift = number as u32 % 3;
            let function = FixedFunction { low: -30, bits: 6, polynomials, shift, factors };
            function.check_sizes().unwrap();
            let (low, length) = (draw(40), draw(40).abs());
            let values = || (low..=low + length).map(|x| function.at(x));
            let expected = [values().min().unwrap(), values().max().unwrap()];
            assert_eq!(function.range(low, low + length), expected, "{function:?} {low} {length}");
        }
    }
}
