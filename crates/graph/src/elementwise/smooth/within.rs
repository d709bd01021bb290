//! A function of values that are known to lie in a range: its domain needs no calibration at a known end.

use serde::{Deserialize, Serialize};

use super::Function;
use crate::elementwise::Elementwise;

/// A function whose inputs lie between ends that follow from what they are: differences from a largest element, sums of such exponentials; or are brought there, as a
/// norm is that is divided by.
///
/// What is beyond an end, by rounding or otherwise, is taken for the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Within {
    /// The function, which is defined at the ends and everywhere between them.
    pub of: Box<Function>,
    /// The smallest input, if it is known.
    pub low: Option<f32>,
    /// The largest input, if it is known.
    pub high: Option<f32>,
}

impl Within {
    /// The known ends.
    #[must_use]
    pub fn ends(&self) -> [Option<f64>; 2] {
        [self.low, self.high].map(|end| end.map(f64::from))
    }

    /// The value at x.
    pub(super) fn at(&self, x: f64) -> f64 {
        let [low, high] = self.ends();
        let x = low.map_or(x, |low| x.max(low));
        self.of.at(high.map_or(x, |high| x.min(high)))
    }

    pub(super) fn is_finite(&self) -> bool {
        self.of.is_finite() && [self.low, self.high].into_iter().flatten().all(f32::is_finite)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if matches!(*self.of, Function::Within(_) | Function::Tail(_)) {
            return Err(format!("{} has a domain already", self.of.name()));
        }
        self.of.check()?;
        let [low, high] = self.ends();
        if let (Some(low), Some(high)) = (low, high)
            && low >= high
        {
            return Err(format!("its inputs lie from {low} to {high}"));
        }
        // All of these go one way between ends at which they are defined on one side of 0.
        let is_defined =
            |end: f64| self.of.at(end).is_finite() && (end > 0.0 || self.of.limits()[0].is_some());
        match [low, high].into_iter().flatten().find(|end| !is_defined(*end)) {
            Some(end) => Err(format!("it is not defined at {end}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(of: Function, low: Option<f32>, high: Option<f32>) -> Within {
        Within { of: Box::new(of), low, high }
    }

    #[test]
    fn ranges_that_mean_nothing_are_refused() {
        let refusal = |of, low, high| within(of, low, high).check().unwrap_err();
        assert!(within(Function::Log, Some(1.0), Some(7.0)).check().is_ok());
        assert!(within(Function::Exp, None, Some(0.0)).check().is_ok());
        assert!(refusal(Function::Exp, Some(2.0), Some(2.0)).contains("from 2 to 2"));
        assert!(refusal(Function::Log, Some(0.0), Some(1.0)).contains("not defined at 0"));
        assert!(refusal(Function::Reciprocal, Some(-1.0), None).contains("not defined at -1"));
        let twice = Function::Within(within(Function::Exp, None, Some(0.0)));
        assert!(refusal(twice, None, Some(1.0)).contains("domain already"));
        assert!(!within(Function::Exp, None, Some(f32::INFINITY)).is_finite());
    }
}
