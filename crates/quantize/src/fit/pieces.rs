//! Polynomials on segments, and what rounding their coefficients to few bits does.

use std::borrow::Cow;
use std::f64::consts::PI;

/// A function on segments of one size, to be a polynomial of one degree on each.
pub(super) struct Pieces<'a> {
    /// The places of a segment that are looked at: all of them, or some of a large domain's.
    places: Vec<usize>,
    /// The values there.
    segments: Vec<Cow<'a, [f64]>>,
    place_bits: u32,
    degree: usize,
    /// For each power from 1 on, which of the places are those at which a polynomial of that degree is to be exact.
    nodes: Vec<Vec<usize>>,
}

/// The places of a domain that are looked at, but for the last of each segment: what lies between two is known from them.
const LOOKED_AT: usize = 1 << 16;

/// How coefficients become integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rounding {
    /// A coefficient is this many bits finer than a unit of the output.
    pub(super) shift: u32,
    /// For each power, the bits at the end of its coefficients that are 0.
    pub(super) zeros: Vec<u32>,
}

impl<'a> Pieces<'a> {
    /// The segments of all values; none if they are too short for the degree.
    pub(super) fn new(values: &'a [f64], segment_bits: u32, degree: usize) -> Option<Self> {
        let size = values.len() >> segment_bits;
        if size <= degree {
            return None;
        }
        let places = places(size, values.len());
        let at_places = |segment: &'a [f64]| {
            if places.len() == size {
                Cow::Borrowed(segment)
            } else {
                places.iter().map(|place| segment[*place]).collect()
            }
        };
        let segments = values.chunks(size).map(at_places).collect();
        let nodes = (1..=degree).map(|degree| nodes(&places, degree)).collect();
        Some(Self { places, segments, place_bits: size.ilog2(), degree, nodes })
    }

    /// What is left of what each segment may be off by, at the one with the least, when the polynomials, not rounded, are as far from the function as they are.
    pub(super) fn room(&self, allowed: impl Fn(usize) -> f64) -> f64 {
        let of_segment = |segment: &Cow<'a, [f64]>| {
            let mut rest = segment.to_vec();
            for power in (1..=self.degree).rev() {
                let leading = self.leading(&rest, power);
                self.subtract(&mut rest, leading, power);
            }
            let [low, high] = ends(&rest);
            (high - low) / 2.0
        };
        let left = |(segment, values)| allowed(segment) - of_segment(values);
        self.segments.iter().enumerate().map(left).fold(f64::INFINITY, f64::min)
    }

    /// The fewest bits with which rounding the coefficients might keep to `room` units.
    pub(super) fn least_shift(&self, room: f64) -> u32 {
        let power = self.degree as u32;
        if power == 0 {
            // A constant is rounded once: what was finer would be rounded again in the end.
            return 0;
        }
        let lost = f64::from(self.place_bits * power) - f64::from(absorbed(power)) - 1.0;
        (lost - room.log2()).ceil().max(0.0) as u32
    }

    /// The degree of the polynomials.
    pub(super) const fn degree(&self) -> usize {
        self.degree
    }

    /// Bits of a place in a segment.
    pub(super) const fn place_bits(&self) -> u32 {
        self.place_bits
    }

    /// As many zeros as leave each coefficient's rounding a `share` of a unit.
    pub(super) fn rounding(&self, shift: u32, share: f64) -> Rounding {
        let zeros = |power: u32| {
            // Half of the last bit, times the largest place to that power, less what lower powers make up for.
            let finest = f64::from(self.place_bits * power) - f64::from(absorbed(power)) - 1.0;
            (f64::from(shift) + share.log2() - finest).floor().max(0.0) as u32
        };
        Rounding { shift, zeros: (0..=self.degree as u32).map(zeros).collect() }
    }

    /// The places of a segment that are looked at.
    pub(super) fn places(&self) -> &[usize] {
        &self.places
    }

    /// The coefficients of every segment as integers, the highest power's first chosen and the others to what it leaves; none if one is
    /// far beyond what a function may have, or `is_usable` says no to those of a segment.
    pub(super) fn rounded(
        &self,
        rounding: &Rounding,
        is_usable: impl Fn(usize, &[i64]) -> bool,
    ) -> Option<Vec<Vec<i64>>> {
        let unit = f64::from(rounding.shift).exp2();
        let round = |coefficient: f64, power: usize| {
            let step = f64::from(rounding.zeros[power]).exp2();
            let rounded = (coefficient * unit / step).round() * step;
            // Beyond what polynomials may have anyway.
            (rounded.abs() < 1e18).then_some(rounded)
        };
        let of_segment = |(number, segment): (usize, &Cow<'a, [f64]>)| {
            let mut rest = segment.to_vec();
            let mut coefficients = vec![0; self.degree + 1];
            for power in (1..=self.degree).rev() {
                let coefficient = round(self.leading(&rest, power), power)?;
                coefficients[power] = coefficient as i64;
                self.subtract(&mut rest, coefficient / unit, power);
            }
            let [low, high] = ends(&rest);
            coefficients[0] = round(f64::midpoint(low, high), 0)? as i64;
            is_usable(number, &coefficients).then_some(coefficients)
        };
        self.segments.iter().enumerate().map(of_segment).collect()
    }

    /// The coefficient of this power in the polynomial of this degree that is exact at its nodes: the divided difference there.
    fn leading(&self, values: &[f64], power: usize) -> f64 {
        let nodes = &self.nodes[power - 1];
        let mut differences: Vec<f64> = nodes.iter().map(|&node| values[node]).collect();
        for order in 1..=power {
            for index in 0..=power - order {
                let [near, far] = [index, index + order].map(|index| self.places[nodes[index]] as f64);
                differences[index] = (differences[index + 1] - differences[index]) / (far - near);
            }
        }
        differences[0]
    }

    /// Takes a multiple of a power of the place from every value.
    fn subtract(&self, values: &mut [f64], coefficient: f64, power: usize) {
        for (place, value) in self.places.iter().zip(values) {
            let place = *place as f64;
            *value -= coefficient * (1..power).fold(place, |product, _| product * place);
        }
    }
}

/// The places of a segment of a domain that are looked at: equally far apart but for the last.
pub(super) fn places(size: usize, domain: usize) -> Vec<usize> {
    let apart = (domain / LOOKED_AT).clamp(1, size);
    let last = (apart > 1).then_some(size - 1);
    (0..size).step_by(apart).chain(last).collect()
}

/// Bits by which lower powers, chosen afterwards, make up for an error of the coefficient of this power: x^n on an interval of length 1 is
/// within 2^(1 - 2n) of a polynomial of a lower degree.
const fn absorbed(power: u32) -> u32 {
    (2 * power).saturating_sub(1)
}

/// Which places are nearest to Chebyshev's nodes for a degree, of more places than that.
fn nodes(places: &[usize], degree: usize) -> Vec<usize> {
    let middle = (places.len().max(1) - 1) as f64 / 2.0;
    let angle = |index: usize| PI * (2 * index + 1) as f64 / (2 * (degree + 1)) as f64;
    (0..=degree).map(|index| (middle - middle * angle(index).cos()).round() as usize).collect()
}

/// The smallest and the largest value.
fn ends(values: &[f64]) -> [f64; 2] {
    values.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], &x| [low.min(x), high.max(x)])
}
