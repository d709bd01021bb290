//! The network's input, as both parties know it.

use serde::{Deserialize, Serialize};

use crate::InputError;
use crate::accumulator::Accumulator;
use crate::float::check_input;

/// The network's input: shape, quantisation and the integers accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkInput {
    /// The name of the model's input.
    pub name: String,
    /// Its shape without the batch axis, in the model's own layout.
    pub shape: Vec<usize>,
    /// Real value of one unit.
    pub scale: f64,
    /// The smallest integer accepted: twice the calibrated minimum, or 0 if that is not negative.
    pub low: i64,
    /// The largest integer accepted: twice the calibrated maximum, or 0 if that is not positive.
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

    /// The smallest and the largest real value accepted: twice the calibrated range.
    #[must_use]
    pub fn limits(&self) -> [f64; 2] {
        [self.low as f64 * self.scale, self.high as f64 * self.scale]
    }

    /// The integers of a real input: `x / scale` in `f64`, rounded to nearest with ties to even.
    ///
    /// # Errors
    /// [`InputError`] if the length is wrong or a value is not finite or beyond [`NetworkInput::limits`].
    pub fn quantize(&self, input: &[f32]) -> Result<Vec<i64>, InputError> {
        check_input(input, &self.shape)?;
        let quantize = |(index, &x): (usize, &f32)| {
            let value = f64::from(x);
            let rounded = (value / self.scale).round_ties_even();
            if rounded < self.low as f64 || rounded > self.high as f64 {
                let [low, high] = self.limits();
                return Err(InputError::OutOfRange { index, value, low, high });
            }
            Ok(rounded as i64)
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
                Err(InputError::OutOfRange { index, value: input[index] as f64 * self.scale, low, high })
            }
        }
    }
}
