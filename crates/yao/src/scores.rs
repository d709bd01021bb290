//! What the client learns of scores, as a step of a plan.

use lanner_gc::library::Sharing;
use lanner_primitives::Ring;
use lanner_step::{Built, ProtocolError, Samples, Sets, Spec, ValueType, is_zero};
use serde::{Deserialize, Serialize};

use super::Revealed;

/// Scores of which the client learns something, by a garbled circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scores<What> {
    /// Number of scores, at each place.
    pub classes: usize,
    /// What the client learns.
    #[serde(flatten)]
    pub what: What,
    /// The ring that they are shared in.
    pub from: Ring,
    /// Bits of guard below the scores' own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub guard: u32,
    /// Places of a sample, each with as many scores.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub places: usize,
    /// Samples, each with as many places.
    #[serde(default, skip_serializing_if = "Samples::is_one")]
    pub samples: Samples,
}

/// What the client learns of scores.
pub trait Learnt: Clone {
    /// The circuit for one sample's scores, shared so.
    ///
    /// # Errors
    /// [`ProtocolError`] if there is none.
    fn circuit(&self, classes: usize, from: Sharing) -> Result<Revealed, ProtocolError>;
}

/// The index of the largest score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Largest {}

/// The indices of the largest scores in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Best {
    /// How many of them.
    pub k: usize,
}

/// The indices of the scores above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AboveZero {}

impl<What: Learnt> Scores<What> {
    /// One sample's, at one place, with so many bits of guard.
    #[must_use]
    pub const fn new(classes: usize, what: What, from: Ring, guard: u32) -> Self {
        Self { classes, what, from, guard, places: 1, samples: Samples::ONE }
    }

    /// The same at each of several places.
    #[must_use]
    pub fn at(self, places: usize) -> Self {
        Self { places, ..self }
    }
}

impl Learnt for Largest {
    fn circuit(&self, classes: usize, from: Sharing) -> Result<Revealed, ProtocolError> {
        Revealed::label(classes, from)
    }
}

impl Learnt for Best {
    fn circuit(&self, classes: usize, from: Sharing) -> Result<Revealed, ProtocolError> {
        Revealed::top_k(classes, self.k, from)
    }
}

impl Learnt for AboveZero {
    fn circuit(&self, classes: usize, from: Sharing) -> Result<Revealed, ProtocolError> {
        Revealed::positive(classes, from)
    }
}

impl<What: Learnt> Spec for Scores<What> {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType, ProtocolError> {
        ValueType::only_known(
            inputs,
            self.from,
            self.samples.times(self.classes.saturating_mul(self.places)),
        )?;
        Ok(ValueType::Revealed)
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { samples, ..self.clone() })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>, ProtocolError> {
        let from = Sharing { ring: self.from, guard: self.guard };
        let circuit = self.what.circuit(self.classes, from)?;
        Ok(Box::new(circuit.at(self.places)?.of_samples(self.samples)))
    }
}

const fn one() -> usize {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde asks
const fn is_one(places: &usize) -> bool {
    *places == 1
}
