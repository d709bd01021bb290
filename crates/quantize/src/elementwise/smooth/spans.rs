//! A function near a pole over inputs that differ by orders of magnitude, as a sum: a function of the smallest inputs, which changes fast and wants them fine,
//! and others of larger and larger ones, to which coarser and coarser ones do.
//!
//! Each is constant beyond the places where it meets the next: `f(x) = f(min(x, t)) + (f(max(x, t)) - f(t))`. What is taken off behind such a place are the
//! integers that those before end with, so what they are off by there does not add up.

use lanner_network::{FixedOp, FunctionFit};

use super::domain::Domain;
use super::{Function, Smooth};
use crate::elementwise::{Coarser, Part, Spans, Wanted};
use crate::fit::{Fitted, Target};

/// How many times the smallest input the largest must be, of a function that is cut in two.
const APART: f64 = 64.0;

/// How many doublings of its input a span of an inverse power may have where values are of no more than so many bits: there are at most 256 segments of equal size,
/// of which the first, with polynomials of degree 3, has as many doublings as all others.
const LONGEST: Lengths = Lengths { by_bits: [(10.0, 8.0), (13.0, 7.0)], shortest: 6.0 };

/// The same of a root, which has fewer bits where a span begins.
const LONGEST_OF_ROOT: Lengths = Lengths { by_bits: [(10.0, 10.0), (13.0, 9.0)], shortest: 7.0 };

/// Roots and logarithms over no more doublings have two spans at most, whatever their bits.
const FEW: f64 = 16.0;

/// The doublings, and the bits of values, up to which one function will do from 0 on: it sends less.
const ENOUGH_FOR_ONE: [f64; 2] = [18.0, 9.0];

/// How many doublings a span may have, by the bits of values.
struct Lengths {
    by_bits: [(f64, f64); 2],
    shortest: f64,
}

impl Lengths {
    fn at(&self, bits: f64) -> f64 {
        self.by_bits.iter().find(|(most, _)| bits <= *most).map_or(self.shortest, |(_, longest)| *longest)
    }
}

/// What the first span of a root may be off by, in units, where it begins at 0: all that is near 0 has a few integers, which are off in one direction else.
const NEAR_0: f64 = 0.75;

/// The polynomials of a span of a root or a logarithm.
///
/// Whatever lies below a span has the value of its first place: where that is not 0, all smaller inputs are off by as much. So it is made 0; not where
/// that sends more and there are no more than two spans of a domain that does not begin at 0.
fn fit_joined(target: &Target, is_first: bool, is_worth_more: bool) -> Fitted {
    let tolerance = if is_first { NEAR_0 } else { 1.0 };
    let fitted = target.fit(tolerance);
    if fitted.function.at_place(0) == 0 {
        return fitted;
    }
    let at_0 = target.clone().starting_at_0().fit(tolerance);
    let is_taken = at_0.function.at_place(0) == 0
        && at_0.error <= tolerance.max(fitted.error)
        && (is_worth_more || at_0.function.sent_bits() <= fitted.function.sent_bits());
    if is_taken { at_0 } else { fitted }
}

impl Smooth<'_> {
    /// Where the spans of a function meet over a domain, in order; none of one that is not cut.
    fn meetings(self, domain: &Domain, seen: f64, unit: f64) -> Vec<f64> {
        let [low, high] = domain.ends;
        if let Some([exponent, term]) = self.inverse() {
            let (least, most) = (low + term, high + term);
            if least <= 0.0 {
                return Vec::new();
            }
            let doublings = (most / least).log2();
            // A larger exponent makes it bend more.
            let bits = (self.at(seen.max(low)) / unit).log2() + 2.0 * (2.0 * exponent).log2().max(0.0);
            let count = (doublings / LONGEST.at(bits)).ceil() as u32;
            let share = |index: u32| doublings * f64::from(index) / f64::from(count);
            return (1..count).map(|index| least * share(index).exp2() - term).collect();
        }
        let term = self.root().map_or(0.0, |[_, term]| term);
        let low = low.max(self.least_shown(high, unit) - term);
        let doublings = ((high + term) / (low + term)).log2();
        if !self.is_bent_at_0() || doublings.is_nan() {
            return self.meeting(domain).into_iter().collect();
        }
        let bits = [low, high].map(|end| (self.at(end) / unit).abs().log2());
        let bits = bits[0].max(bits[1]);
        if seen == 0.0 && doublings <= ENOUGH_FOR_ONE[0] && bits <= ENOUGH_FOR_ONE[1] {
            return Vec::new();
        }
        let lengths = if self.root().is_some() { LONGEST_OF_ROOT } else { LONGEST };
        if doublings <= FEW.max(2.0 * lengths.at(bits)) {
            let is_apart = high + term > APART * (low + term);
            return is_apart.then(|| ((low + term) * (high + term)).sqrt() - term).into_iter().collect();
        }
        let count = (doublings / lengths.at(bits)).ceil();
        let share = |index: u32| doublings * f64::from(index) / count;
        (1..count as u32).map(|index| (low + term) * share(index).exp2() - term).collect()
    }

    /// Where both spans of a function meet that is cut in two, if it is: in the middle of the doublings from end to end.
    fn meeting(self, domain: &Domain) -> Option<f64> {
        let term = match self.0 {
            Function::Power { exponent, term } if exponent.fract() != 0.0 || *exponent < 0.0 => {
                f64::from(*term)
            }
            Function::Reciprocal => 0.0,
            Function::Within(within) => return Smooth(&within.of).meeting(domain),
            _ => return None,
        };
        let [low, high] = domain.ends;
        let is_apart = low > 0.0 && high + term > APART * (low + term);
        is_apart.then(|| ((low + term) * (high + term)).sqrt() - term)
    }

    /// The inputs whose rounding all others' follows from: those of the first span, if it is cut.
    pub(super) fn finest(self, domain: &Domain, seen: f64, unit: f64) -> Domain {
        let end = self.meetings(domain, seen, unit).first().copied();
        end.map_or(*domain, |end| Domain { ends: [domain.ends[0], end], open: [domain.open[0], false] })
    }

    /// How many units a value at `x` may be off by where calibration saw inputs from `seen` on: as many times one as an inverse power is larger there
    /// than calibration's largest.
    pub(super) fn units_at(self, x: f64, seen: f64) -> f64 {
        let is_inverse = self.inverse().is_some();
        let times = if is_inverse { self.at(x) / self.at(seen) } else { 1.0 };
        // At a pole itself.
        if times.is_finite() { times.max(1.0) } else { 1.0 }
    }

    /// All spans of a function that is cut.
    pub(super) fn lower_spans(self, wanted: &Wanted<'_>) -> Result<Option<Spans>, String> {
        let &Wanted { scale, unit, reach, seen, .. } = wanted;
        let domain = self.domain(seen, unit)?;
        let meetings = self.meetings(&domain, seen[0], unit);
        if meetings.is_empty() {
            return Ok(None);
        }
        let (count, begins_at_0) = (meetings.len() + 1, domain.ends[0] == 0.0 && self.root().is_some());
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
            // Where the function is flat, the whole reach may be less than a unit: a rescale leaves two of its bits.
            let most = reach[1].max(2).ilog2() - 1;
            let shift = ((coarse / scale).log2().ceil().max(0.0) as u32).min(most);
            let scale = scale * f64::from(shift).exp2();
            let off = ended as f64 * unit;
            let of = |x: f64| self.at(if is_first { x } else { x.max(start) }) - off;
            let places = self.places(&span, scale, reach.map(|end| end >> shift))?;
            let name =
                format!("{:?} {span:?} {places:?} {scale:e} {unit:e} {ended} {count} {:e}", self.0, seen[0]);
            let fit = || {
                let allowed = |place: i64| self.units_at((places.low + place) as f64 * scale, seen[0]);
                let target = Target::new(of, places.low, places.bits, [scale, unit]);
                let is_inverse = self.inverse().is_some();
                let fitted = if is_inverse {
                    target.allowing(allowed).fit(1.0)
                } else if is_first && self.at(span.ends[0]) != 0.0 {
                    target.fit(if begins_at_0 { NEAR_0 } else { 1.0 })
                } else {
                    fit_joined(&target, is_first, begins_at_0 || count > 2)
                };
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
    use crate::fit::FitCache;
    use lanner_graph::elementwise::Within;
    use lanner_network::elementwise::FixedElementwise;
    use lanner_network::rescale;

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
            let scale = Smooth(&function).unit_of_input(seen, unit).unwrap().log2().floor().exp2();
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
            let spans = Smooth(&function).lower_spans(&wanted).unwrap().unwrap();
            assert!((1..=2).contains(&spans.others.len()), "{function:?}: {}", spans.others.len());
            let mut x = seen[0] / fainter;
            while x < 1.4 * seen[1] {
                let place = (x / scale).round();
                let expected = function.at(x) / unit;
                let off = (value(&spans, place as i64) as f64 - expected).abs();
                // What its span is off by, what the next is where it begins, and half as much for rounding the input.
                assert!(
                    off <= 2.0 * Smooth(&function).units_at(x, seen[0]),
                    "{function:?} at {x}: {off} of {expected}"
                );
                x *= 1.003;
            }
        }
    }

    /// What is wanted of a function of inputs seen over a range, at so many bits.
    fn wanted<'a>(function: &Function, seen: [f64; 2], bits: u32, functions: &'a FitCache) -> Wanted<'a> {
        let range = function.at(seen[1]) - function.at(seen[0]);
        let unit = (range / f64::from(bits).exp2()).log2().round().exp2();
        let scale = Smooth(function).unit_of_input(seen, unit).unwrap().log2().floor().exp2();
        Wanted { scale, activation_bits: bits, seen, reach: [0, 1 << 40], unit, vanishes: false, functions }
    }

    const fn power(exponent: f32, term: f32) -> Function {
        Function::Power { exponent, term }
    }

    /// From what is nearly 0, or from where the domain begins, to its end; and the errors of values of one size have no direction in common.
    #[test]
    fn roots_and_logarithms_are_right_over_their_whole_domain() {
        let cases = [
            (Function::Sqrt, [0.0, 4.0], [9, 12, 16]),
            (Function::Sqrt, [5e-10, 190.0], [7, 10, 14]),
            (Function::Sqrt, [1e-3, 190.0], [7, 9, 12]),
            (power(0.75, 0.0), [0.0, 190.0], [9, 11, 13]),
            (power(0.5, 1e-5), [0.0, 1.0], [9, 10, 11]),
            (power(0.25, 0.0), [0.0, 190.0], [5, 7, 8]),
            (Function::Log, [1e-4, 4.0], [6, 8, 10]),
            (Function::Log, [1e-6, 20.0], [6, 8, 9]),
        ];
        for (function, seen, bits) in
            cases.iter().flat_map(|(f, seen, bits)| bits.map(|bits| (f, *seen, bits)))
        {
            let functions = FitCache::default();
            let wanted = wanted(function, seen, bits, &functions);
            let Wanted { scale, unit, .. } = wanted;
            let domain = Smooth(function).domain(seen, unit).unwrap();
            let spans = Smooth(function).lower_spans(&wanted).unwrap().unwrap();
            let mut sizes = [[0.0_f64; 2]; 24];
            let mut x = domain.ends[0].max(scale / 16.0);
            while x < domain.ends[1] {
                let expected = function.at(x) / unit;
                let off = value(&spans, (x / scale).round() as i64) as f64 - expected;
                // What a span is off by, a unit of what another begins with, and half of one for rounding the input.
                assert!(off.abs() <= 2.5, "{function:?} of {bits} bits at {x}: {off} of {expected}");
                let [sum, count] = &mut sizes[expected.abs().max(1.0).log2() as usize];
                (*sum, *count) = (*sum + off, *count + 1.0);
                x *= 1.01;
            }
            // Not where all that is nearly 0 is of one size: one integer stands for it.
            let begins_at_0 = domain.ends[0] == 0.0 && function.at(0.0) == 0.0;
            let biased = sizes.iter().skip(1).find(|[sum, count]| begins_at_0 && sum.abs() > 0.5 * count);
            assert_eq!(biased, None, "{function:?} of {bits} bits");
            if begins_at_0 {
                assert_eq!([-5, 0].map(|x| value(&spans, x)), [0; 2], "{function:?} of {bits} bits");
            }
        }
    }

    /// One function where that is right, as before roots were cut from 0 on; and where it would be wrong no more than it would cost.
    #[test]
    fn roots_from_0_on_are_one_function_or_send_less_than_one() {
        let sent = |part: &Part| {
            let FixedOp::Function(function) = &part.op else { panic!("a function") };
            function.sent_bits()
        };
        for (function, seen) in [(Function::Sqrt, [0.0, 4.0]), (power(0.5, 1e-3), [0.0, 1.0])] {
            for bits in [6, 8, 9] {
                let functions = FitCache::default();
                let wanted = wanted(&function, seen, bits, &functions);
                let whole = Smooth(&function).domain(seen, wanted.unit).unwrap();
                let scale = Smooth(&function).input_unit_over(&whole, wanted.unit).unwrap();
                let Some(spans) = Smooth(&function).lower_spans(&wanted).unwrap() else {
                    assert!(bits < 9 && wanted.scale <= scale && scale < 2.0 * wanted.scale, "{function:?}");
                    continue;
                };
                let places = Smooth(&function).places(&whole, scale, wanted.reach).unwrap();
                let one = Smooth(&function).polynomials(&whole, places, [scale, wanted.unit]).unwrap();
                let cost: u64 =
                    sent(&spans.first) + spans.others.iter().map(|other| sent(&other.part)).sum::<u64>();
                assert!(
                    bits == 9 && one.error > 1.5 && cost < one.function.sent_bits(),
                    "{function:?}: {cost}"
                );
                assert_eq!(spans.others.len(), 1);
            }
        }
    }

    /// What no unit of the output shows is 0, and counts as no overflow; a wide domain takes no more room than rings have.
    #[test]
    fn a_root_begins_where_it_shows_and_its_integers_fit_rings() {
        let (unit, open) = (1.0 / 64.0, [true; 2]);
        let domain = Smooth(&Function::Sqrt).domain([5e-10, 190.0], unit).unwrap();
        assert_eq!((domain.ends[0], domain.open), (0.0, [false, true]));
        assert_eq!(Smooth(&Function::Sqrt).domain([1.0, 190.0], unit).unwrap().open, open);
        assert_eq!(Smooth(&Function::Log).domain([5e-10, 190.0], unit).unwrap().open, open);
        for function in [Function::Sqrt, power(0.25, 0.0), power(0.1, 0.0), power(0.1, 1e-3)] {
            for bits in [8, 16] {
                let functions = FitCache::default();
                let wanted = wanted(&function, [0.0, 190.0], bits, &functions);
                assert!(380.0 / wanted.scale <= (1_u64 << 36) as f64, "{function:?}: {}", wanted.scale);
            }
        }
    }

    /// A norm that is divided by, kept from going below a bound: from there on it is right for every input.
    #[test]
    fn a_known_end_that_is_near_is_where_the_domain_begins() {
        let of =
            |low| Function::Within(Within { of: Box::new(Function::Reciprocal), low: Some(low), high: None });
        let domain = Smooth(&of(0.1)).domain([0.5, 4.0], 0.01).unwrap();
        assert_eq!((domain.ends[0], domain.open), (f64::from(0.1_f32), [false, true]));
        let domain = Smooth(&of(1e-12)).domain([0.5, 4.0], 0.01).unwrap();
        assert!((0.014..=0.5 / 32.0).contains(&domain.ends[0]) && domain.open == [true; 2], "{domain:?}");
        // Rows of zeros among the samples are at the bound.
        assert!(Smooth(&of(1e-12)).domain([0.0, 4.0], 0.01).is_ok());
    }
}
