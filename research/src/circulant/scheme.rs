//! What the algorithms need of an encryption of slots, and the count of what they do with it.

use super::Operations;
use lanner_step::ProtocolError;
use lanner_step::Rotation;

/// Vectors of slots modulo a prime, two rows of equally many, that are computed on slot by slot.
pub trait SlotScheme {
    /// An encrypted vector.
    type Ciphertext: Clone;
    /// A vector in the clear, ready to multiply.
    type Multiplier;

    /// Makes a vector ready to multiply. All values are below the prime.
    ///
    /// # Errors
    /// If there are not as many values as slots, or one is too large.
    fn multiplier(&self, values: &[u64]) -> Result<Self::Multiplier, ProtocolError>;

    /// The slots of `x`, rotated.
    ///
    /// # Errors
    /// If a key is missing.
    fn rotate(&self, x: &Self::Ciphertext, rotation: Rotation) -> Result<Self::Ciphertext, ProtocolError>;

    /// Makes `sum` the sum of both.
    ///
    /// # Errors
    /// If they do not fit together.
    fn add_assign(&self, sum: &mut Self::Ciphertext, x: &Self::Ciphertext) -> Result<(), ProtocolError>;

    /// The product, slot by slot.
    ///
    /// # Errors
    /// If they do not fit together.
    fn multiply(
        &self,
        x: &Self::Ciphertext,
        factor: &Self::Multiplier,
    ) -> Result<Self::Ciphertext, ProtocolError>;
}

/// A scheme whose operations are counted.
pub struct Counted<'s, S> {
    scheme: &'s S,
    operations: Operations,
}

impl<'s, S: SlotScheme> Counted<'s, S> {
    /// With nothing counted yet.
    #[must_use]
    pub const fn new(scheme: &'s S) -> Self {
        Self { scheme, operations: Operations::NONE }
    }

    /// What was done so far.
    #[must_use]
    pub const fn operations(&self) -> Operations {
        self.operations
    }

    /// The slots of `x`, rotated.
    ///
    /// # Errors
    /// The scheme's.
    pub fn rotate(&mut self, x: &S::Ciphertext, rotation: Rotation) -> Result<S::Ciphertext, ProtocolError> {
        self.operations.rotations += 1;
        self.scheme.rotate(x, rotation)
    }

    /// Makes `sum` the sum of both.
    ///
    /// # Errors
    /// The scheme's.
    pub fn add_assign(&mut self, sum: &mut S::Ciphertext, x: &S::Ciphertext) -> Result<(), ProtocolError> {
        self.operations.additions += 1;
        self.scheme.add_assign(sum, x)
    }

    /// The product with a vector in the clear.
    ///
    /// # Errors
    /// The scheme's.
    pub fn multiply(
        &mut self,
        x: &S::Ciphertext,
        factor: &S::Multiplier,
    ) -> Result<S::Ciphertext, ProtocolError> {
        self.operations.multiplications += 1;
        self.scheme.multiply(x, factor)
    }

    /// Rotates and adds, once for each rotation, one after the other.
    ///
    /// # Errors
    /// The scheme's.
    pub fn fold(
        &mut self,
        mut sum: S::Ciphertext,
        rotations: &[Rotation],
    ) -> Result<S::Ciphertext, ProtocolError> {
        for rotation in rotations {
            let rotated = self.rotate(&sum, *rotation)?;
            self.add_assign(&mut sum, &rotated)?;
        }
        Ok(sum)
    }

    /// The sum of so many terms, which are made one after the other.
    ///
    /// # Errors
    /// The scheme's; those of the terms; [`ProtocolError::Parameters`] if there is none.
    pub fn sum(
        &mut self,
        terms: usize,
        mut term: impl FnMut(&mut Self, usize) -> Result<S::Ciphertext, ProtocolError>,
    ) -> Result<S::Ciphertext, ProtocolError> {
        ProtocolError::refuse_if(terms == 0, "a sum of nothing")?;
        let mut sum = term(self, 0)?;
        for number in 1..terms {
            let next = term(self, number)?;
            self.add_assign(&mut sum, &next)?;
        }
        Ok(sum)
    }
}
