//! The public parameters of a step.

use super::{Built, Convolution, ProtocolError, Samples, Sets, ValueType};

/// The public parameters of one step: what a plan stores, and both parties build the step from.
pub trait Spec {
    /// The layer's shape, of a linear layer.
    fn shape(&self) -> Option<&Convolution> {
        None
    }

    /// The type of what the step makes of values of these types.
    ///
    /// # Errors
    /// [`ProtocolError::WrongInput`] if they are not what the step reads.
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType, ProtocolError>;

    /// Bounds on what the step costs, from its shapes alone and before anything is built: limits are held against them.
    fn work(&self) -> Work {
        Work::default()
    }

    /// The step for as many samples at once, whose elements follow one another in all values; none if it takes them one by one.
    fn of_samples(&self, _samples: Samples) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Builds what both parties need: circuits, layouts.
    ///
    /// # Errors
    /// [`ProtocolError`] if the protocol does not take the parameters.
    fn build(&self, sets: &Sets) -> Result<Box<dyn Built>, ProtocolError>;
}

/// Bounds on a step's cost, of the order of what building and running it takes. What would not fit 64 bits is the largest number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Elements read by all windows of a pool.
    pub window_elements: u64,
    /// Values that one instance of a circuit reads: circuits are built gate by gate.
    pub circuit_values: u64,
    /// Products of ciphertexts and plaintexts.
    pub products: u64,
    /// Ciphertexts whose coefficients both parties lay out one by one.
    pub ciphertexts: u64,
    /// Filter taps, each of which may need an evaluation key of its own.
    pub taps: u64,
}

impl Work {
    /// The same of what builds no circuit.
    #[must_use]
    pub const fn without_circuits(self) -> Self {
        Self { circuit_values: 0, ..self }
    }
}
