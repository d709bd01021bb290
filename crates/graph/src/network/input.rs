//! The network's input, as both parties know it.

use serde::{Deserialize, Serialize};

use crate::InputError;
use crate::accumulator::Accumulator;
use crate::float::check_input;
use crate::grid::GridFactor;

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
    pub(crate) fn nearest(&self, real: f64) -> i64 {
        (real / self.unit()).round_ties_even() as i64
    }
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

    /// The smallest and the largest real value accepted: the stated range, or else twice the calibrated one, rounded up to the grid.
    /// What is less than half a unit beyond is accepted too.
    #[must_use]
    pub fn limits(&self) -> [f64; 2] {
        match self.scale {
            InputScale::Stated { low, high, .. } => [low, high],
            InputScale::Grid(_) => [self.low, self.high].map(|end| end as f64 * self.scale.unit()),
        }
    }

    /// The integers of a real input: `x / scale` in `f64`, rounded to nearest with ties to even.
    ///
    /// # Errors
    /// [`InputError`] if the length is wrong or a value is not finite or beyond [`NetworkInput::limits`].
    pub fn quantize(&self, input: &[f32]) -> Result<Vec<i64>, InputError> {
        check_input(input, &self.shape)?;
        let quantize = |(index, &x): (usize, &f32)| {
            let value = f64::from(x);
            let rounded = self.scale.nearest(value);
            if !(self.low..=self.high).contains(&rounded) {
                let [low, high] = self.limits();
                return Err(InputError::OutOfRange { index, value, low, high });
            }
            Ok(rounded)
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
        match input.iter().position(|x| !(self.low..=self.high).contains(x)) {
            None => Ok(()),
            Some(index) => {
                let [low, high] = self.limits();
                Err(InputError::OutOfRange {
                    index,
                    value: input[index] as f64 * self.scale.unit(),
                    low,
                    high,
                })
            }
        }
    }
}
