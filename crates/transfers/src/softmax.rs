//! The label and its probability as a step of a plan.

use lanner_primitives::Ring;
use lanner_step::{Built, Known, Result, Sets, Spec, ValueType, softmax_ring};
use lanner_yao::softmax::Precision;
use serde::{Deserialize, Serialize};

use crate::Layer;

/// The label and its probability to some decimal digits by transfers, as two shared values of [`Self::to`] that are for the client to learn: the
/// same as [`lanner_yao::softmax::Probability`] gives.
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
impl Eq for RingSoftmax {}

impl RingSoftmax {
    fn layer(&self) -> Result<Layer> {
        let &Self { classes, digits, scale, bits } = self;
        let precision = Precision::new(classes, digits, scale, bits)?;
        Layer::softmax(classes, bits, precision.dropped(), &precision.exponential()?, digits)
    }

    /// The ring of both values.
    ///
    /// # Errors
    /// As [`softmax_ring`].
    pub fn to(&self) -> Result<Ring> {
        softmax_ring(self.classes, self.digits)
    }
}

impl Spec for RingSoftmax {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        ValueType::only(inputs, Ring::Pow2(self.bits), self.classes)?;
        Ok(ValueType::shared(self.to()?, 2, Known::NOBODY))
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(self.layer()?))
    }
}
