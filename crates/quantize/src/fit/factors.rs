//! Functions that are a factor of the high bits of the place times a function of the low ones: exponentials.

use lanner_network::elementwise::{Factors, FixedFunction};

use super::{Fitted, Target};

/// Bits that may choose a factor.
const FACTOR_BITS: std::ops::RangeInclusive<u32> = 1..=5;

/// Bits by which what is multiplied is finer than the product.
const FINER: std::ops::RangeInclusive<u32> = 1..=3;

/// Bits by which a factor is finer than the largest value needs.
const MARGIN: std::ops::RangeInclusive<u32> = 1..=3;

/// What is tried first of both.
const USUAL: [[u32; 2]; 2] = [[2, 2], [3, 3]];

/// All that is tried.
fn choices() -> impl Iterator<Item = [u32; 2]> {
    FINER.flat_map(|finer| MARGIN.map(move |margin| [finer, margin]))
}

/// What is no such function is off by more than this, in units of the output, at one of so many places.
const OFF: f64 = 0.01;
const PLACES: usize = 64;

/// A function as products.
struct Products<'t> {
    whole: &'t Target,
    /// Bits of the places of one factor.
    bits: u32,
    /// The values where they are largest.
    largest: &'t [f64],
    /// What the others are of these.
    ratios: Vec<f64>,
}

impl Target {
    /// The cheapest polynomials and factors that are nowhere farther than the tolerance; none where the function is no product.
    pub(super) fn fit_factors(&self, tolerance: f64) -> Option<Fitted> {
        let bits = FACTOR_BITS.filter(|bits| *bits < self.bits);
        // How many factors does not depend on how fine they are, more or less.
        let first = |bits: u32| {
            let products = self.products(bits)?;
            let fitted =
                USUAL.into_iter().chain(choices()).find_map(|choice| products.fit(tolerance, choice))?;
            Some((fitted.function.sent_bits(), bits))
        };
        let (_, bits) = bits.filter_map(first).min()?;
        let products = self.products(bits)?;
        let fitted = choices().filter_map(|choice| products.fit(tolerance, choice));
        fitted.min_by_key(|fitted| fitted.function.sent_bits())
    }

    /// The function as products of `2^factor_bits` factors, if it is.
    fn products(&self, factor_bits: u32) -> Option<Products<'_>> {
        let size = self.values.len() >> factor_bits;
        let rows: Vec<&[f64]> = self.values.chunks(size).collect();
        // Where it is largest nothing is lost.
        let largest = rows.iter().max_by(|a, b| a[0].abs().total_cmp(&b[0].abs()))?;
        let ratios: Vec<f64> = rows.iter().map(|row| row[0] / largest[0]).collect();
        let is_product = |(row, ratio): (&&[f64], &f64)| {
            let places = (0..size).step_by(size.div_ceil(PLACES)).chain([size - 1]);
            places.map(|place| row[place] - ratio * largest[place]).all(|off| off.abs() <= OFF)
        };
        if !ratios.iter().all(|ratio| ratio.is_finite()) || !rows.iter().zip(&ratios).all(is_product) {
            return None;
        }
        Some(Products { whole: self, bits: self.bits - factor_bits, largest, ratios })
    }
}

impl Products<'_> {
    /// The cheapest polynomials with factors, if they are close enough.
    fn fit(&self, tolerance: f64, [finer, margin]: [u32; 2]) -> Option<Fitted> {
        let most = self.largest.iter().fold(1.0, |most: f64, value| most.max(value.abs()));
        let factor_shift = most.log2().ceil() as u32 + margin;
        let [unit, factor_unit] = [finer, factor_shift].map(|bits| f64::from(bits).exp2());
        // Half of the last bit of a factor, and of the product.
        let left = (tolerance - 0.5 - most / factor_unit / 2.0) * unit;
        if left <= 0.5 + super::LEAST_ROOM {
            return None;
        }
        let values = self.largest.iter().map(|value| value * unit).collect();
        let within = Target { low: 0, bits: self.bits, values, allowed: None };
        let FixedFunction { polynomials, shift, .. } = within.fit_polynomials(left).function;
        let values = self.ratios.iter().map(|ratio| (ratio * factor_unit).round() as i64).collect();
        let factors = Some(Factors { values, shift: factor_shift + finer });
        let &Target { low, bits, .. } = self.whole;
        let function = FixedFunction { low, bits, polynomials, shift, factors };
        let fitted = function.check_sizes().is_ok().then(|| self.whole.measured(function))?;
        (fitted.error <= tolerance).then_some(fitted)
    }
}
