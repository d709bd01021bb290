//! The label and its probability as a step of a plan.

use lanner_gc::library::Sharing;
use lanner_primitives::Ring;
use lanner_step::{Built, Known, ProtocolError, Samples, Sets, Spec, ValueType, is_zero, softmax_ring};
use serde::{Deserialize, Serialize};

use super::{Precision, softmax};
use crate::Layer;

/// The label and its probability to some decimal digits, which the client learns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelAndProbability {
    /// Number of scores.
    pub classes: usize,
    /// Decimal digits.
    pub digits: u32,
    /// What one unit of a score stands for: finite and above zero.
    pub scale: f64,
    /// The ring that they are shared in.
    pub from: Ring,
    /// Bits of guard below the scores' own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub guard: u32,
    /// Samples, each with as many scores.
    #[serde(default, skip_serializing_if = "Samples::is_one")]
    pub samples: Samples,
}

/// The label and its probability to some decimal digits by transfers, as two shared values of [`Self::to`] that are for the client to learn: the
/// same as [`LabelAndProbability`] gives.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RingSoftmax {
    /// Number of scores.
    pub classes: usize,
    /// Decimal digits.
    pub digits: u32,
    /// What one unit of a score stands for: finite and above zero.
    pub scale: f64,
    /// Bits of the ring that they are shared in, of which they are below a quarter.
    pub bits: u32,
}

// A checked network's output scale is a number.
impl Eq for LabelAndProbability {}

impl Eq for RingSoftmax {}

impl RingSoftmax {
    fn layer(&self) -> Result<Layer, ProtocolError> {
        let &Self { classes, digits, scale, bits } = self;
        let precision = Precision::new(classes, digits, scale, bits)?;
        Layer::softmax(classes, bits, precision.dropped(), &precision.exponential()?, digits)
    }

    /// The ring of both values.
    ///
    /// # Errors
    /// As [`softmax_ring`].
    pub fn to(&self) -> Result<Ring, ProtocolError> {
        softmax_ring(self.classes, self.digits)
    }
}

impl Spec for LabelAndProbability {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType, ProtocolError> {
        ValueType::only_known(inputs, self.from, self.samples.times(self.classes))?;
        Ok(ValueType::Revealed)
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { samples, ..*self })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>, ProtocolError> {
        let sharing = Sharing { ring: self.from, guard: self.guard };
        Ok(Box::new(softmax(self.classes, self.digits, self.scale, sharing)?.of_samples(self.samples)))
    }
}

impl Spec for RingSoftmax {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType, ProtocolError> {
        ValueType::only(inputs, Ring::Pow2(self.bits), self.classes)?;
        Ok(ValueType::shared(self.to()?, 2, Known::NOBODY))
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>, ProtocolError> {
        Ok(Box::new(self.layer()?))
    }
}
