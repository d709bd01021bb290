//! What the circuit computes, in the clear too: known to both parties.

use lanner_gc::library::{self, Sharing};

use super::Precision;
use crate::ProtocolError;
use crate::nonlinear::yao::{Reading, Revealed};

/// What the client learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Likely {
    /// The index of the largest score, ties to the lowest.
    pub label: usize,
    /// Its probability in units of `10^-digits`, within one unit of the exact softmax.
    pub parts: u64,
    /// The digits.
    pub digits: u32,
}

impl Likely {
    /// What a softmax of these scores, each unit of which stands for `scale`, gives over a ring of `bits` bits: the same in every run.
    ///
    /// # Errors
    /// As [`Precision::new`]; [`ProtocolError::Shape`] for a score beyond 64 bits.
    pub fn of<S: Copy + TryInto<i64>>(
        scores: &[S],
        digits: u32,
        scale: f64,
        bits: u32,
    ) -> Result<Self, ProtocolError> {
        let small = |score: &S| (*score).try_into().map_err(|_| ProtocolError::Shape { what: "a score" });
        let scores = scores.iter().map(small).collect::<Result<Vec<i64>, _>>()?;
        let precision = Precision::new(scores.len(), digits, scale, bits)?;
        let exponential = precision.exponential()?;
        let (label, parts) = library::softmax_parts(&scores, precision.dropped(), &exponential, digits);
        Ok(Self { label, parts, digits })
    }

    /// What was told of `classes` classes; none if no scores have it.
    pub(crate) fn told(label: usize, parts: u64, classes: usize, digits: u32) -> Option<Self> {
        (label < classes && parts <= 10_u64.pow(digits)).then_some(Self { label, parts, digits })
    }

    /// The probability, in 0..=1.
    #[must_use]
    pub fn probability(self) -> f64 {
        self.parts as f64 / 10_f64.powi(self.digits as i32)
    }
}

/// The softmax of `classes` scores shared so, each unit of which stands for `scale`, to some decimal digits.
///
/// # Errors
/// As [`Precision::new`]; [`ProtocolError::Gc`] if the ring has no circuit.
pub fn softmax(
    classes: usize,
    digits: u32,
    scale: f64,
    from: impl Into<Sharing>,
) -> Result<Revealed, ProtocolError> {
    let from = from.into();
    let precision = Precision::new(classes, digits, scale, from.value_bits())?;
    let exponential = precision.exponential()?;
    let circuit = library::softmax(from, classes, precision.dropped(), &exponential, digits)?;
    Ok(Revealed::new(circuit, Reading::Probability { digits }))
}
