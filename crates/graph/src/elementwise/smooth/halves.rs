//! A function near a pole over inputs that differ by orders of magnitude, as the sum of two: one of the small inputs, which changes fast and wants them
//! fine, and one of the large, to which coarse ones do.
//!
//! Each is constant beyond the place where they meet: `f(x) = f(min(x, t)) + (f(max(x, t)) - f(t))`.

use super::Function;
use super::domain::Domain;
use crate::elementwise::{Halves, Part, Wanted};
use crate::fit::Target;
use crate::network::{FixedOp, FunctionFit};

/// How many times the smallest input the largest must be.
const APART: f64 = 64.0;

impl Function {
    /// Where the halves of a function meet over a domain, if it is to be halved: in the middle of the doublings from end to end.
    pub(super) fn meeting(&self, domain: &Domain) -> Option<f64> {
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

    /// The half of the small inputs.
    pub(super) const fn below(domain: &Domain, meeting: f64) -> Domain {
        Domain { ends: [domain.ends[0], meeting], open: [domain.open[0], false] }
    }

    /// Both halves of a function that is to be halved.
    pub(super) fn lower_halves(&self, wanted: &Wanted<'_>) -> Result<Option<Halves>, String> {
        let &Wanted { scale, unit, reach, .. } = wanted;
        let domain = self.domain(wanted.seen, unit)?;
        let Some(meeting) = self.meeting(&domain) else { return Ok(None) };
        let part = |half: Domain, scale: f64, reach: [i64; 2], of: &dyn Fn(f64) -> f64| {
            let name = format!("{self:?} {half:?} {reach:?} {scale:e} {unit:e}");
            let fit = || {
                let places = self.places(&half, scale, reach)?;
                let fitted = Target::new(of, places.low, places.bits, [scale, unit]).fit(1.0);
                let unusable = || format!("a domain from {} to {}", half.ends[0], half.ends[1]);
                if fitted.error.is_finite() { Ok(fitted) } else { Err(unusable()) }
            };
            wanted.functions.get_or(name, fit).map(|fitted| (fitted.function, fitted.error, half.open))
        };
        let below = part(Self::below(&domain, meeting), scale, reach, &|x| self.at(x))?;
        // Its integers are a power of two, so it goes on a little.
        let meeting = below.0.last() as f64 * scale;
        let above =
            Domain { ends: [meeting, domain.ends[1].max(meeting + scale)], open: [false, domain.open[1]] };
        // As coarse as the slope from there on allows.
        let coarse = self.input_unit_over(&above, unit).unwrap_or(scale);
        let shift = (coarse / scale).log2().ceil().max(0.0) as u32;
        let rest = |x: f64| self.at(x.max(meeting)) - self.at(meeting);
        let above = part(above, scale * f64::from(shift).exp2(), reach.map(|end| end >> shift), &rest)?;
        let [below, above] =
            [("/small", below), ("/large", above)].map(|(suffix, (function, error, open))| Part {
                suffix,
                op: FixedOp::Function(function),
                scale: unit,
                fit: Some(FunctionFit { error, open }),
            });
        Ok(Some(Halves { below, shift, above }))
    }
}
