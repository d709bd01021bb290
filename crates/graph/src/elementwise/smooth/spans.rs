//! A function near a pole over inputs that differ by orders of magnitude, as a sum: a function of the smallest inputs, which changes fast and wants them fine,
//! and others of larger and larger ones, to which coarser and coarser ones do.
//!
//! Each is constant beyond the places where it meets the next: `f(x) = f(min(x, t)) + (f(max(x, t)) - f(t))`. What is taken off behind such a place are the
//! integers that those before end with, so what they are off by there does not add up.

use super::Function;
use super::domain::Domain;
use crate::elementwise::{Coarser, Part, Spans, Wanted};
use crate::fit::Target;
use crate::network::{FixedOp, FunctionFit};

/// How many times the smallest input the largest must be, of a function that is cut in two.
const APART: f64 = 64.0;

/// How many doublings of its input a span of an inverse power may have where values are of no more than so many bits: there are at most 256 segments of equal size,
/// of which the first, with polynomials of degree 3, has as many doublings as all others.
const LONGEST: [(f64, f64); 2] = [(10.0, 8.0), (13.0, 7.0)];
const SHORTEST: f64 = 6.0;

impl Function {
    /// Where the spans of a function meet over a domain, in order; none of one that is not cut.
    fn meetings(&self, domain: &Domain, seen: f64, unit: f64) -> Vec<f64> {
        let [low, high] = domain.ends;
        if let Some([exponent, term]) = self.inverse() {
            let (least, most) = (low + term, high + term);
            if least <= 0.0 {
                return Vec::new();
            }
            let doublings = (most / least).log2();
            // A larger exponent makes it bend more.
            let bits = (self.at(seen.max(low)) / unit).log2() + 2.0 * (2.0 * exponent).log2().max(0.0);
            let longest =
                LONGEST.iter().find(|(most, _)| bits <= *most).map_or(SHORTEST, |(_, longest)| *longest);
            let count = (doublings / longest).ceil() as u32;
            let share = |index: u32| doublings * f64::from(index) / f64::from(count);
            return (1..count).map(|index| least * share(index).exp2() - term).collect();
        }
        self.meeting(domain).into_iter().collect()
    }

    /// Where both spans of a function meet that is cut in two, if it is: in the middle of the doublings from end to end.
    fn meeting(&self, domain: &Domain) -> Option<f64> {
        let term = match self {
            Self::Power { exponent, term } if exponent.fract() != 0.0 || *exponent < 0.0 => f64::from(*term),
            Self::Log | Self::Sqrt | Self::Reciprocal => 0.0,
            Self::Within(within) => return within.of.meeting(domain),
            _ => return None,
        };
        let [low, high] = domain.ends;
        let is_apart = low > 0.0 && high + term > APART * (low + term);
        is_apart.then(|| ((low + term) * (high + term)).sqrt() - term)
    }

    /// The inputs whose rounding all others' follows from: those of the first span, if it is cut.
    pub(super) fn finest(&self, domain: &Domain, seen: f64, unit: f64) -> Domain {
        let end = self.meetings(domain, seen, unit).first().copied();
        end.map_or(*domain, |end| Domain { ends: [domain.ends[0], end], open: [domain.open[0], false] })
    }

    /// How many units a value at `x` may be off by where calibration saw inputs from `seen` on: as many times one as an inverse power is larger there
    /// than calibration's largest.
    pub(super) fn units_at(&self, x: f64, seen: f64) -> f64 {
        let is_inverse = self.inverse().is_some();
        let times = if is_inverse { self.at(x) / self.at(seen) } else { 1.0 };
        // At a pole itself.
        if times.is_finite() { times.max(1.0) } else { 1.0 }
    }

    /// All spans of a function that is cut.
    pub(super) fn lower_spans(&self, wanted: &Wanted<'_>) -> Result<Option<Spans>, String> {
        let &Wanted { scale, unit, reach, seen, .. } = wanted;
        let domain = self.domain(seen, unit)?;
        let meetings = self.meetings(&domain, seen[0], unit);
        if meetings.is_empty() {
            return Ok(None);
        }
        let mut spans: Vec<Coarser> = Vec::new();
        // Where the next begins, and what those before it end with, in units.
        let (mut start, mut ended) = (domain.ends[0], 0);
        for end in meetings.into_iter().chain([domain.ends[1]]) {
            let is_first = spans.is_empty();
            // The integers of a span are a power of two, so one may go on as far as the next.
            if !is_first && (end <= start || start >= reach[1] as f64 * scale) {
                continue;
            }
            let mut open = [is_first && domain.open[0], false];
            let span = Domain { ends: [start, end.max(start + scale)], open };
            // As coarse as the slope from there on allows.
            let allowed = unit * self.units_at(start, seen[0]);
            let coarse = self.input_unit_over(&span, allowed).filter(|_| !is_first).unwrap_or(scale);
            let shift = (coarse / scale).log2().ceil().max(0.0) as u32;
            let scale = scale * f64::from(shift).exp2();
            let off = ended as f64 * unit;
            let of = |x: f64| self.at(if is_first { x } else { x.max(start) }) - off;
            let reach = reach.map(|end| end >> shift);
            let name = format!("{self:?} {span:?} {reach:?} {scale:e} {unit:e} {ended} {:e}", seen[0]);
            let fit = || {
                let places = self.places(&span, scale, reach)?;
                let allowed = |place: i64| self.units_at((places.low + place) as f64 * scale, seen[0]);
                let target = Target::new(of, places.low, places.bits, [scale, unit]);
                let is_inverse = self.inverse().is_some();
                let fitted = if is_inverse { target.allowing(allowed) } else { target }.fit(1.0);
                let unusable = || format!("a domain from {} to {}", span.ends[0], span.ends[1]);
                if fitted.error.is_finite() { Ok(fitted) } else { Err(unusable()) }
            };
            let fitted = wanted.functions.get_or(name, fit)?;
            ended += fitted.function.at(fitted.function.last());
            start = fitted.function.last() as f64 * scale;
            open[1] = domain.open[1] && start >= domain.ends[1];
            let fit = Some(FunctionFit { error: fitted.error, open, vanishes: wanted.vanishes });
            let op = FixedOp::Function(fitted.function);
            spans.push(Coarser { shift, part: Part { suffix: "/middle", op, scale: unit, fit } });
        }
        let mut spans = spans.into_iter();
        let Some(first) = spans.next() else { return Ok(None) };
        let first = Part { suffix: "/small", ..first.part };
        let mut others: Vec<Coarser> = spans.collect();
        if let Some(last) = others.last_mut() {
            last.part.suffix = "/large";
        }
        Ok(Some(Spans { first, others }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elementwise::{FixedElementwise, Within};
    use crate::fit::FitCache;
    use crate::fixed::rescale;

    /// The sum of all spans for integers of `scale`.
    fn value(spans: &Spans, x: i64) -> i64 {
        let of = |part: &Part, x: i64| {
            let FixedOp::Function(function) = &part.op else { panic!("a function") };
            function.eval(x.into()) as i64
        };
        let coarser = spans.others.iter().map(|coarser| of(&coarser.part, rescale(x, coarser.shift)));
        of(&spans.first, x) + coarser.sum::<i64>()
    }

    #[test]
    fn inverse_powers_are_as_precise_relative_to_themselves_far_below_calibration() {
        let functions = [
            (Function::Power { exponent: -0.5, term: 1e-6 }, 1024.0),
            (Function::Power { exponent: -0.5, term: 0.0 }, 1024.0),
            (Function::Reciprocal, 32.0),
            (Function::Power { exponent: -2.0, term: 0.0 }, 5.6),
        ];
        for (function, fainter) in functions {
            let (seen, unit, functions) = ([0.5, 4.0], 1.0 / 256.0, FitCache::default());
            let scale = function.unit_of_input(seen, unit).unwrap().log2().floor().exp2();
            let reach = [0, 1 << 40];
            let wanted = Wanted {
                scale,
                activation_bits: 8,
                seen,
                reach,
                unit,
                vanishes: false,
                functions: &functions,
            };
            let spans = function.lower_spans(&wanted).unwrap().unwrap();
            assert!((1..=2).contains(&spans.others.len()), "{function:?}: {}", spans.others.len());
            let mut x = seen[0] / fainter;
            while x < 1.4 * seen[1] {
                let place = (x / scale).round();
                let expected = function.at(x) / unit;
                let off = (value(&spans, place as i64) as f64 - expected).abs();
                // What its span is off by, what the next is where it begins, and half as much for rounding the input.
                assert!(
                    off <= 2.0 * function.units_at(x, seen[0]),
                    "{function:?} at {x}: {off} of {expected}"
                );
                x *= 1.003;
            }
        }
    }

    /// A norm that is divided by, kept from going below a bound: from there on it is right for every input.
    #[test]
    fn a_known_end_that_is_near_is_where_the_domain_begins() {
        let of =
            |low| Function::Within(Within { of: Box::new(Function::Reciprocal), low: Some(low), high: None });
        let domain = of(0.1).domain([0.5, 4.0], 0.01).unwrap();
        assert_eq!((domain.ends[0], domain.open), (f64::from(0.1_f32), [false, true]));
        let domain = of(1e-12).domain([0.5, 4.0], 0.01).unwrap();
        assert!((0.014..=0.5 / 32.0).contains(&domain.ends[0]) && domain.open == [true; 2], "{domain:?}");
        // Rows of zeros among the samples are at the bound.
        assert!(of(1e-12).domain([0.0, 4.0], 0.01).is_ok());
    }
}
