//! Where a function needs polynomials, and which integers that takes.

use lanner_network::elementwise::MAX_DOMAIN_BITS;
use lanner_network::grid;

use super::{Function, Smooth};
use crate::fit::{Fitted, Target};

/// A function has reached its limit where it is within this share of a unit of the output.
const NEAR: f64 = 0.25;

/// How much larger than calibration's inputs may be whose function has no limit.
const MARGIN: f64 = 2.0;

/// How much fainter than calibration's faintest, and how much larger than its largest, what is divided by an inverse power's input may be.
const FAINTER: f64 = 32.0;
const BRIGHTER: f64 = 2.2;

/// The domain of an inverse power begins where its inputs do if it would reach as far as so many times that.
const NEGLIGIBLE: f64 = 8.0;

/// How many times the smallest input that is told from 0 the largest of a root may be, and how many units of it the largest of a root or a logarithm.
const SHOWN: f64 = (1_u64 << 32) as f64;
const PLACES: f64 = (1_u64 << 34) as f64;

/// Where limits are looked for: from this distance from 0 on, inwards in steps of an eighth of a doubling.
const FARTHEST: f64 = 4096.0;

/// Points at which slopes are looked at.
const POINTS: u32 = 512;

/// The inputs that a function has polynomials for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Domain {
    pub(super) ends: [f64; 2],
    /// Whether the function goes on beyond each end: what is beyond it is wrong then.
    pub(super) open: [bool; 2],
}

/// The integers of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) low: i64,
    pub(super) bits: u32,
}

/// An end that leaves inputs the margin, rounded away from 0 to the grid: it tells no more of samples than scales do.
fn beyond(end: f64) -> f64 {
    if end == 0.0 { 0.0 } else { grid::above(MARGIN * end.abs(), 1.0).copysign(end) }
}

/// The same of an end towards 0.
fn before(end: f64) -> f64 {
    1.0 / beyond(1.0 / end)
}

impl Smooth<'_> {
    /// Where a function changes, as far as a `unit` of its output shows, if its inputs are from `seen[0]` to `seen[1]` on the calibration
    /// samples.
    ///
    /// # Errors
    /// The reason why there are no polynomials for such inputs.
    pub(super) fn domain(self, seen: [f64; 2], unit: f64) -> Result<Domain, String> {
        let (low, high) = (seen[0], seen[1]);
        let farthest = beyond(low.abs().max(high.abs()));
        let inverse = self.inverse().and_then(|of| self.inverse_domain(of, seen));
        if let Some(domain) = inverse.or_else(|| self.root_domain(seen, unit)) {
            return Ok(domain);
        }
        match self.0 {
            Function::Log | Function::Sqrt | Function::Reciprocal | Function::Power { .. } if low > 0.0 => {
                Ok(Domain { ends: [before(low), beyond(high)], open: [true; 2] })
            }
            Function::Sqrt if low == 0.0 => Ok(Domain { ends: [0.0, beyond(high)], open: [false, true] }),
            Function::Power { exponent, term } if low >= 0.0 && (*exponent > 0.0 || *term > 0.0) => {
                Ok(Domain { ends: [0.0, beyond(high)], open: [false, true] })
            }
            Function::Power { exponent, .. } if *exponent > 0.0 && exponent.fract() == 0.0 => {
                Ok(Domain { ends: [-farthest, farthest], open: [true; 2] })
            }
            Function::Reciprocal if high < 0.0 => {
                Ok(Domain { ends: [beyond(low), before(high)], open: [true; 2] })
            }
            Function::Log | Function::Sqrt | Function::Reciprocal | Function::Power { .. } => {
                Err(format!("inputs from {low} to {high}"))
            }
            Function::Within(within) => {
                let known = within.ends();
                let (mut ends, mut open) = ([0.0; 2], [false; 2]);
                if known.contains(&None) {
                    let inside = |end: f64| known[0].map_or(end, |low| end.max(low));
                    let inside = |end: f64| known[1].map_or(inside(end), |high| inside(end).min(high));
                    Domain { ends, open } = Smooth(&within.of).domain(seen.map(inside), unit)?;
                }
                for (side, end) in known.into_iter().enumerate().filter_map(|(side, end)| Some((side, end?)))
                {
                    (ends[side], open[side]) = (end, false);
                }
                Ok(Domain { ends, open })
            }
            Function::Sin | Function::Cos => Ok(Domain { ends: [-farthest, farthest], open: [true; 2] }),
            Function::Exp => {
                let reached = self.reached(0, unit).unwrap_or(low);
                Ok(Domain { ends: [reached.min(high), beyond(high.exp()).ln()], open: [false, true] })
            }
            Function::Softsign => {
                // It comes near its limits far out only.
                let ends = [0, 1].map(|side| self.reached(side, unit));
                let within = |end: Option<f64>| end.filter(|end| end.abs() <= farthest);
                let open = ends.map(|end| within(end).is_none());
                let ends = [within(ends[0]).unwrap_or(-farthest), within(ends[1]).unwrap_or(farthest)];
                Ok(Domain { ends, open })
            }
            Function::Sigmoid | Function::Tanh | Function::Erf | Function::Tail(_) => {
                let end = |side, fallback| self.reached(side, unit).unwrap_or(fallback);
                Ok(Domain { ends: [end(0, -farthest), end(1, farthest)], open: [false; 2] })
            }
        }
    }

    /// The domain of an inverse power of this exponent and term: what is divided by its inputs may be far smaller, and a few times larger, than on the samples.
    ///
    /// Where the term, or the end that is known, is about as large as the smallest inputs are then, it begins there, and goes on nowhere below.
    fn inverse_domain(self, [exponent, term]: [f64; 2], [low, high]: [f64; 2]) -> Option<Domain> {
        let known = if let Function::Within(within) = self.0 { within.ends()[0].unwrap_or(0.0) } else { 0.0 };
        let (low, high) = (low.max(known), high.max(known));
        let (smallest, nearest) = (low + term, known + term);
        if low < 0.0 || smallest <= 0.0 {
            return None;
        }
        let times = |times: f64| times.powf(1.0 / exponent);
        let (least, most) = (smallest / times(FAINTER), (high + term) * times(BRIGHTER) - term);
        let is_closed = least <= NEGLIGIBLE * nearest;
        let least = if is_closed { known } else { 1.0 / grid::above(1.0 / (least - term), 1.0) };
        Some(Domain { ends: [least, grid::above(most, 1.0)], open: [!is_closed, true] })
    }

    /// The domain of a root where calibration saw inputs that are as good as 0: it begins there, and nothing is below.
    fn root_domain(self, [low, high]: [f64; 2], unit: f64) -> Option<Domain> {
        let (Function::Sqrt | Function::Power { .. }) = self.0 else { return None };
        let [_, term] = self.root()?;
        let end = beyond(high);
        let is_near_0 = || low == 0.0 || before(low) + term <= self.least_shown(end, unit);
        (low >= 0.0 && high > 0.0 && is_near_0()).then_some(Domain { ends: [0.0, end], open: [false, true] })
    }

    /// The smallest input, its term added, of which a root up to `high` makes a unit; 0 of other functions.
    pub(super) fn least_shown(self, high: f64, unit: f64) -> f64 {
        let of = |[exponent, term]: [f64; 2]| unit.powf(1.0 / exponent).max((high + term) / SHOWN);
        self.root().map_or(0.0, of)
    }

    /// From where on, far below or far above 0, the function is near its limit there.
    fn reached(self, side: usize, unit: f64) -> Option<f64> {
        let limit = self.limits()[side]?;
        let sign = if side == 0 { -1.0 } else { 1.0 };
        let is_near = |x: f64| (self.at(x) - limit).abs() <= NEAR * unit;
        let steps = (0..256).map(|step| sign * FARTHEST * (-f64::from(step) / 8.0).exp2());
        let near = steps.take_while(|x| is_near(*x)).last()?;
        // A function that is at its limit from 0 on.
        Some(if is_near(0.0) && near.abs() < 1e-5 { 0.0 } else { near })
    }

    /// The steepest slope over a domain.
    fn slope(self, domain: &Domain) -> f64 {
        let [low, high] = domain.ends;
        let step = (high - low) / f64::from(POINTS);
        let at = |point: u32| self.at(low + step * f64::from(point));
        let rise = (0..POINTS).map(|point| (at(point + 1) - at(point)).abs()).filter(|rise| rise.is_finite());
        rise.fold(0.0, f64::max) / step
    }

    /// The unit of the input that a unit of the output pays for: half as much changes by rounding the one as by rounding the other.
    pub(super) fn unit_of_input(self, seen: [f64; 2], unit: f64) -> Option<f64> {
        let domain = self.domain(seen, unit).ok()?;
        let finest = self.finest(&domain, seen[0], unit);
        let wanted = self.input_unit_over(&finest, unit * self.units_at(finest.ends[0], seen[0]))?;
        Some(wanted.max(self.finest_unit(&domain)))
    }

    /// The finest unit that a root's or a logarithm's input is wanted in, whatever its slope: rings have room for so many integers. 0 of other functions.
    fn finest_unit(self, domain: &Domain) -> f64 {
        let [low, high] = domain.ends;
        let unit = high / PLACES;
        match self.root() {
            Some(_) => unit,
            None if self.is_bent_at_0() => {
                unit.min((low * high).sqrt() / f64::from(MAX_DOMAIN_BITS - 1).exp2())
            }
            None => 0.0,
        }
    }

    /// As [`Self::unit_of_input`], over a domain.
    pub(super) fn input_unit_over(self, domain: &Domain, unit: f64) -> Option<f64> {
        let [low, high] = domain.ends;
        // What is left to be rounded up leaves one bit.
        let finest = (high - low) / f64::from(MAX_DOMAIN_BITS - 1).exp2();
        let slope = self.slope(domain);
        (slope > 0.0 && high > low).then(|| (unit / slope / 2.0).max(finest))
    }

    /// The integers of a domain in units of `scale`, of those from `reach[0]` to `reach[1]`.
    pub(super) fn places(self, domain: &Domain, scale: f64, reach: [i64; 2]) -> Result<Places, String> {
        let [low, high] = domain.ends.map(|end| end / scale);
        // Where it is not defined on both sides of 0, 0 is out of the question.
        let is_positive = domain.ends[0] > 0.0;
        let is_negative = domain.open[1] && domain.ends[1] < 0.0;
        let low = if domain.open[0] && is_positive { low.ceil() } else { low.floor() };
        let low = if is_positive { low.max(1.0) } else { low };
        let high = if is_negative { high.floor().min(-1.0) } else { high.ceil() };
        let low = (low as i64).max(reach[0]).min(reach[1]);
        let high = (high as i64).min(reach[1]).max(low + 1);
        let count = (high - low + 1).unsigned_abs();
        let bits = count.next_power_of_two().ilog2();
        if bits > MAX_DOMAIN_BITS {
            return Err(format!("inputs that take {bits} bits over its domain"));
        }
        let more = (1 << bits) - (high - low + 1);
        // The integers over go where they do no harm: on both sides of what has limits there, and where else it is flatter.
        let below = match self.0 {
            Function::Exp => more,
            Function::Within(within) if *within.of == Function::Exp => more,
            Function::Reciprocal if is_negative => more,
            Function::Within(_)
            | Function::Log
            | Function::Sqrt
            | Function::Reciprocal
            | Function::Power { .. } => 0,
            _ => (more + 1) / 2,
        };
        Ok(Places { low: low - below, bits })
    }

    /// The polynomials for the integers of a domain, whose unit is the first of two, in units of the second.
    ///
    /// # Errors
    /// That there are none.
    pub(super) fn polynomials(
        self,
        domain: &Domain,
        Places { low, bits }: Places,
        units: [f64; 2],
    ) -> Result<Fitted, String> {
        let fitted = Target::new(|x| self.at(x), low, bits, units).fit(1.0);
        if fitted.error.is_finite() {
            return Ok(fitted);
        }
        Err(format!("a domain from {} to {}", domain.ends[0], domain.ends[1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanner_graph::elementwise::Ramp;
    use lanner_graph::elementwise::Within;

    const UNIT: f64 = 1.0 / 256.0;

    #[test]
    fn functions_with_limits_are_within_a_quarter_of_a_unit_of_them_whatever_was_seen() {
        let bounded = [
            Function::Sigmoid,
            Function::Tanh,
            Function::Erf,
            Function::Tail(Ramp::Gelu { approximate: false }),
            Function::Tail(Ramp::Gelu { approximate: true }),
            Function::Tail(Ramp::Swish { alpha: 1.5 }),
            Function::Tail(Ramp::Softplus),
            Function::Tail(Ramp::Elu { alpha: 2.0 }),
            Function::Tail(Ramp::Selu { alpha: 1.6, gamma: 1.05 }),
            Function::Tail(Ramp::Celu { alpha: 0.5 }),
            Function::Tail(Ramp::Mish),
        ];
        for function in bounded {
            let domain = Smooth(&function).domain([-0.1, 0.2], UNIT).unwrap();
            assert_eq!(domain.open, [false; 2]);
            for side in 0..2 {
                let limit = function.limits()[side].unwrap();
                let (end, sign) = (domain.ends[side], [-1.0, 1.0][side]);
                for beyond in [0.0, 0.1, 1.0, 10.0, 1000.0] {
                    let off = function.at(end + sign * beyond) - limit;
                    assert!(off.abs() <= UNIT / 4.0, "{function:?} at {end}: {off}");
                }
                // And no farther out than it must be.
                assert!(end.abs() < 16.0, "{function:?} {end}");
            }
        }
        let elu = Smooth(&Function::Tail(Ramp::Elu { alpha: 1.0 })).domain([-1.0, 1.0], UNIT).unwrap();
        assert!(elu.ends[1].abs() < 2e-3, "{elu:?}");
    }

    #[test]
    fn functions_without_limits_reach_twice_as_far_as_what_was_seen_and_to_the_grid() {
        let domain = |function: Function, seen| Smooth(&function).domain(seen, UNIT);
        let of = |ends, open| Ok(Domain { ends, open });
        assert_eq!(domain(Function::Log, [0.5, 4.0]), of([0.25, 8.0], [true; 2]));
        assert_eq!(domain(Function::Reciprocal, [-4.0, -0.5]), of([-8.0, -0.25], [true; 2]));
        assert_eq!(domain(Function::Sqrt, [0.0, 4.0]), of([0.0, 8.0], [false, true]));
        assert!(domain(Function::Reciprocal, [-1.0, 1.0]).unwrap_err().contains("from -1 to 1"));
        let Ok(Domain { ends, .. }) = domain(Function::Log, [0.51, 4.1]) else { panic!() };
        assert!(grid::holds(ends[0], 1.0) && ends[0] < 0.255 && grid::holds(ends[1], 1.0) && ends[1] > 8.2);
        assert!(domain(Function::Log, [0.0, 1.0]).is_err());
        // A term alone keeps a root's reciprocal from infinity.
        let inverse = |term| domain(Function::Power { exponent: -0.5, term }, [0.0, 4.0]);
        let Ok(Domain { ends: [low, high], open }) = inverse(1e-5) else { panic!() };
        assert!((low, open) == (0.0, [false, true]) && (19.0..22.0).contains(&high));
        assert!(inverse(0.0).is_err());
        // Rows 32 times smaller have mean squares a thousand times as small, and a term may be all that is left of these.
        let inverse = |exponent, term| domain(Function::Power { exponent, term }, [0.5, 4.0]).unwrap();
        assert!((0.5 / 1140.0..=0.5 / 1024.0).contains(&inverse(-0.5, 0.0).ends[0]));
        assert!((0.5 / 36.0..=0.5 / 32.0).contains(&inverse(-1.0, 0.0).ends[0]));
        assert_eq!((inverse(-0.5, 1e-3).ends[0], inverse(-0.5, 1e-3).open), (0.0, [false, true]));
        assert_eq!(inverse(-0.5, 1e-6).open, [true; 2]);
        // A cube is defined everywhere, a root of a cube not below 0.
        assert_eq!(
            domain(Function::Power { exponent: 3.0, term: 0.0 }, [-2.0, 1.0]),
            of([-4.0, 4.0], [true; 2])
        );
        assert!(domain(Function::Power { exponent: 1.5, term: 0.0 }, [-2.0, 1.0]).is_err());
        let exp = domain(Function::Exp, [-3.0, 1.0]).unwrap();
        assert_eq!(exp.open, [false, true]);
        assert!(exp.ends[0].exp() <= UNIT / 4.0 && grid::holds(exp.ends[1].exp(), 1.0));
        assert!((0.0..=0.087).contains(&(exp.ends[1] - 1.0 - 2.0_f64.ln())));
        // Far out only it is near its limits: where that is too far, it has a margin.
        assert_eq!(domain(Function::Softsign, [-2.0, 4.0]), of([-8.0, 8.0], [true; 2]));
        assert_eq!(domain(Function::Sin, [-2.0, 4.0]), of([-8.0, 8.0], [true; 2]));
    }

    #[test]
    fn domains_end_where_inputs_are_known_to_whatever_was_seen() {
        let within = |of, low, high| Function::Within(Within { of: Box::new(of), low, high });
        let sum = within(Function::Reciprocal, Some(1.0), Some(64.0));
        let domain = Smooth(&sum).domain([3.0, 5.0], UNIT).unwrap();
        assert_eq!(domain, Domain { ends: [1.0, 64.0], open: [false; 2] });
        let places = Smooth(&sum).places(&domain, 1.0 / 256.0, [0, 1 << 20]).unwrap();
        assert_eq!((places.low, places.bits), (256, 14));
        let exp = within(Function::Exp, None, Some(0.0));
        let domain = Smooth(&exp).domain([-0.5, 0.0], UNIT).unwrap();
        assert!(domain.ends[0].exp() <= UNIT / 4.0 && domain.ends[1] == 0.0 && domain.open == [false; 2]);
        let places = Smooth(&exp).places(&domain, 1.0 / 256.0, [-(1 << 20), 1 << 20]).unwrap();
        assert_eq!(places.low + (1 << places.bits) - 1, 0);
        // An end that is not known is calibrated.
        let root = Smooth(&within(Function::Sqrt, Some(1.0), None)).domain([2.0, 8.0], UNIT).unwrap();
        assert_eq!(root, Domain { ends: [1.0, 16.0], open: [false, true] });
    }

    #[test]
    fn integers_cover_the_domain_and_are_of_as_few_bits_as_do() {
        let domain = Smooth(&Function::Sigmoid).domain([-1.0, 1.0], UNIT).unwrap();
        let places = |scale, reach| Smooth(&Function::Sigmoid).places(&domain, scale, reach).unwrap();
        let whole = places(1.0 / 64.0, [-10_000, 10_000]);
        assert_eq!((whole.low, whole.bits), (-512, 10));
        // What no input reaches needs none.
        assert_eq!(places(1.0 / 64.0, [-128, 127]), Places { low: -128, bits: 8 });
        assert!(Smooth(&Function::Sigmoid).places(&domain, 1e-5, [-(1 << 40), 1 << 40]).is_err());
        let domain = Smooth(&Function::Log).domain([0.5, 4.0], UNIT).unwrap();
        let places = Smooth(&Function::Log).places(&domain, 0.01, [-10_000, 10_000]).unwrap();
        assert_eq!((places.low, places.bits), (25, 10));
    }

    #[test]
    fn steep_functions_want_finer_inputs_than_flat_ones() {
        let unit = |function: Function| Smooth(&function).unit_of_input([-4.0, 4.0], UNIT).unwrap();
        assert!((unit(Function::Sigmoid) / (2.0 * UNIT) - 1.0).abs() < 0.01);
        assert!((unit(Function::Tanh) / (0.5 * UNIT) - 1.0).abs() < 0.01);
    }
}
