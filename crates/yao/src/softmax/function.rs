//! What the circuit computes, in the clear too: known to both parties.

use lanner_gc::library::{self, Sharing};
use lanner_step::{Likely, ProtocolError, Result};
use serde::{Deserialize, Serialize};

use super::Precision;
use crate::revealed::{Reading, Revealed};
use crate::scores::Learnt;

/// The index of the largest score, and its softmax probability to some decimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probability {
    /// Decimal digits.
    pub digits: u32,
    /// What one unit of a score stands for: finite and above zero.
    pub scale: f64,
}

// A checked network's output scale is a number.
impl Eq for Probability {}

impl Learnt for Probability {
    fn circuit(&self, classes: usize, from: Sharing) -> Result<Revealed> {
        softmax(classes, self.digits, self.scale, from)
    }
}

/// What a softmax of these scores, each unit of which stands for `scale`, gives over a ring of `bits` bits: the same in every run.
///
/// # Errors
/// As [`Precision::new`]; [`ProtocolError::Parameters`] for a score beyond 64 bits.
pub fn likeliest<S: Copy + TryInto<i64>>(scores: &[S], digits: u32, scale: f64, bits: u32) -> Result<Likely> {
    let small = |score: &S| (*score).try_into().map_err(|_| ProtocolError::Parameters("a score"));
    let scores = scores.iter().map(small).collect::<Result<Vec<i64>, _>>()?;
    let precision = Precision::new(scores.len(), digits, scale, bits)?;
    let exponential = precision.exponential()?;
    let (label, parts) = library::softmax_parts(&scores, precision.dropped(), &exponential, digits);
    Ok(Likely { label, parts, digits })
}

/// The softmax of `classes` scores shared so, each unit of which stands for `scale`, to some decimal digits.
///
/// # Errors
/// As [`Precision::new`]; [`ProtocolError::Gc`] if the ring has no circuit.
pub fn softmax(classes: usize, digits: u32, scale: f64, from: impl Into<Sharing>) -> Result<Revealed> {
    let from = from.into();
    let precision = Precision::new(classes, digits, scale, from.value_bits())?;
    let exponential = precision.exponential()?;
    let circuit = library::softmax(from, classes, precision.dropped(), &exponential, digits)?;
    Ok(Revealed::new(circuit, Reading::Probability { digits }))
}
