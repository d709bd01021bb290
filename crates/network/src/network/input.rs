//! The network's input, as both parties know it.

use serde::{Deserialize, Serialize};

use super::{Features, check};
use crate::accumulator::Accumulator;
use crate::grid::{GridFactor, power_of_two};
use crate::shape::check_input;
use crate::{CompileError, InputError};

/// What one unit of the input is worth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum InputScale {
    /// Found on calibration samples, rounded up to the grid.
    Grid(GridFactor),
    /// A range that the model's owner states, spread over a given number of steps.
    Stated {
        /// The smallest real value accepted, at most 0.
        low: f64,
        /// The largest real value accepted, at least 0.
        high: f64,
        /// The units from one to the other.
        steps: u32,
    },
}

impl InputScale {
    /// Real value of one unit.
    #[must_use]
    pub fn unit(&self) -> f64 {
        match *self {
            Self::Grid(factor) => factor.value(),
            Self::Stated { low, high, steps } => (high - low) / f64::from(steps),
        }
    }

    /// The integer nearest to a real value, ties to even; the largest there is for all beyond.
    #[must_use]
    pub fn nearest(&self, real: f64) -> i64 {
        nearest(real, self.unit())
    }
}

/// The multiple of a unit that is nearest to a real value.
fn nearest(real: f64, unit: f64) -> i64 {
    (real / unit).round_ties_even() as i64
}

/// The network's input: shape, quantisation and the integers accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkInput {
    /// The name of the model's input.
    pub name: String,
    /// Its shape without the batch axis, in the model's own layout.
    pub shape: Vec<usize>,
    /// Real value of one unit.
    pub scale: InputScale,
    /// Units, centres and preprocessing by feature, where one unit does not serve all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Features>,
    /// The smallest integer accepted: that of the stated minimum, or else twice the calibrated one, rounded away from 0 to the grid.
    pub low: i64,
    /// The largest integer accepted, likewise.
    pub high: i64,
    /// The ring of the first layer, where the client's shares live.
    #[serde(rename = "modulus")]
    pub accumulator: Accumulator,
}

impl NetworkInput {
    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements; never so in a checked network.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The feature that element `index` is a value of, where features have units of their own.
    #[must_use]
    pub fn feature(&self, index: usize) -> Option<usize> {
        self.features.as_ref().map(|features| features.of(&self.shape, index))
    }

    /// Real value of one unit of element `index`, after the preprocessing.
    #[must_use]
    pub fn unit(&self, index: usize) -> f64 {
        let exponent = |features: &Features| features.exponents[features.of(&self.shape, index)];
        self.scale.unit() * power_of_two(self.features.as_ref().map_or(0, exponent))
    }

    /// The real value that an integer of element `index` stands for.
    #[must_use]
    pub fn real(&self, index: usize, integer: i64) -> f64 {
        let Some(features) = &self.features else { return integer as f64 * self.scale.unit() };
        let feature = features.of(&self.shape, index);
        features.before(feature, integer.saturating_add(features.centres[feature]) as f64 * self.unit(index))
    }

    /// The smallest and the largest real value accepted of any element.
    #[must_use]
    pub fn limits(&self) -> [f64; 2] {
        let of_features = self.features.iter().flat_map(|features| features.first_elements(&self.shape));
        let hull = |a: [f64; 2], b: [f64; 2]| [a[0].min(b[0]), a[1].max(b[1])];
        of_features.map(|index| self.limits_of(index)).fold(self.limits_of(0), hull)
    }

    /// The smallest and the largest real value of element `index` that is accepted: the stated range, or else twice the calibrated one or
    /// more, as it was rounded up. What is less than half a unit beyond is accepted too.
    #[must_use]
    pub fn limits_of(&self, index: usize) -> [f64; 2] {
        match self.scale {
            InputScale::Stated { low, high, .. } => [low, high],
            InputScale::Grid(_) => {
                let [a, b] = [self.low, self.high].map(|end| self.real(index, end));
                // A negative factor of the preprocessing exchanges the ends.
                [a.min(b), a.max(b)]
            }
        }
    }

    /// The step of element `index`, before the preprocessing: real values are rounded to multiples of it, counted from a limit.
    #[must_use]
    pub fn step(&self, index: usize) -> f64 {
        let constants = self.features.as_ref().and_then(|features| features.preprocessing.as_ref());
        let factor = constants.zip(self.feature(index)).map_or(1.0, |(of, feature)| of.factors[feature]);
        self.unit(index) / factor.abs()
    }

    /// Checks what describes the input, which may come from anyone: its shape, ring, range, scale and features.
    ///
    /// # Errors
    /// [`CompileError::Network`] naming what no compiler writes.
    pub fn check_description(&self) -> Result<(), CompileError> {
        check::check_input(self)
    }

    /// The place of the first value, of inputs one after the other, that [`NetworkInput::quantize`] would find beyond the range.
    #[must_use]
    pub fn first_outside(&self, inputs: &[f32]) -> Option<usize> {
        let length = self.len();
        let beyond = |(place, &x): (usize, &f32)| !self.accepts(self.integer(place % length, x.into()));
        inputs.iter().enumerate().position(beyond)
    }

    /// The integers of a real input: `x / scale` in `f64`, rounded to nearest with ties to even; where features have units of their own,
    /// as [`Features`] says.
    ///
    /// # Errors
    /// [`InputError`] if the length is wrong or a value is not finite or beyond [`NetworkInput::limits_of`].
    pub fn quantize(&self, input: &[f32]) -> Result<Vec<i64>, InputError> {
        check_input(input, &self.shape)?;
        let quantize = |(index, &x): (usize, &f32)| {
            let value = f64::from(x);
            let rounded = self.integer(index, value);
            if self.accepts(rounded) { Ok(rounded) } else { Err(self.refusal(index, value)) }
        };
        input.iter().enumerate().map(quantize).collect()
    }

    /// Checks integers that were quantised elsewhere.
    ///
    /// # Errors
    /// [`InputError::Length`] or [`InputError::OutOfRange`].
    pub fn check(&self, input: &[i64]) -> Result<(), InputError> {
        if input.len() != self.len() {
            return Err(InputError::Length {
                found: input.len(),
                expected: self.len(),
                shape: self.shape.clone(),
            });
        }
        match input.iter().position(|&x| !self.accepts(x)) {
            None => Ok(()),
            Some(index) => Err(self.refusal(index, self.real(index, input[index]))),
        }
    }

    /// The integer that a real value of element `index` is rounded to.
    fn integer(&self, index: usize, value: f64) -> i64 {
        let Some(features) = &self.features else { return self.scale.nearest(value) };
        let feature = features.of(&self.shape, index);
        let integer = nearest(features.preprocess(feature, value), self.unit(index));
        integer.saturating_sub(features.centres[feature])
    }

    fn accepts(&self, integer: i64) -> bool {
        (self.low..=self.high).contains(&integer)
    }

    /// The refusal of element `index` for its value.
    fn refusal(&self, index: usize, value: f64) -> InputError {
        let [low, high] = self.limits_of(index);
        InputError::OutOfRange { index, feature: self.feature(index), value, low, high }
    }
}
