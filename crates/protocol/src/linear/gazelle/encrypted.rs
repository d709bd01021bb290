//! Packed slots under BFV, with the division by the special modulus once for each sum ("double hoisting", [BMTPH20],
//! <https://eprint.iacr.org/2020/1203>).

use lanner_bfv::{
    BfvError, Ciphertext, EvaluationKeys, Evaluator, ExtendedCiphertext, ExtendedCombination, Multiplier,
    Parameters,
};
use lanner_ring::GaloisElement;

use super::rotation::Rotation;
use super::scheme::PackedScheme;
use crate::ProtocolError;

/// BFV with a client's evaluation keys.
pub struct EncryptedSlots<'k> {
    parameters: &'k Parameters,
    evaluator: Evaluator,
    keys: &'k EvaluationKeys,
    one: Multiplier,
}

impl<'k> EncryptedSlots<'k> {
    /// The scheme over a client's keys.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if the parameters have no key switching.
    pub fn new(parameters: &'k Parameters, keys: &'k EvaluationKeys) -> Result<Self, ProtocolError> {
        let one = Multiplier::constant(parameters, 1, 1)?;
        Ok(Self { parameters, evaluator: Evaluator::new(parameters), keys, one })
    }

    fn element(&self, rotation: Rotation) -> Result<GaloisElement, ProtocolError> {
        galois_element(rotation, self.parameters.degree())
    }
}

/// The automorphism of a rotation.
///
/// # Errors
/// [`ProtocolError::Bfv`] if the degree is not a power of two.
pub fn galois_element(rotation: Rotation, degree: usize) -> Result<GaloisElement, ProtocolError> {
    let step = GaloisElement::rotation(rotation.step as isize, degree).map_err(BfvError::from)?;
    if !rotation.swap {
        return Ok(step);
    }
    let swap = GaloisElement::row_swap(degree).map_err(BfvError::from)?;
    let exponent = step.exponent() * swap.exponent() % (2 * degree);
    Ok(GaloisElement::new(exponent, degree).map_err(BfvError::from)?)
}

impl PackedScheme for EncryptedSlots<'_> {
    type Ciphertext = Ciphertext;
    type Rotated = ExtendedCiphertext;
    type Multiplier = Multiplier;
    type Sum = ExtendedCombination;
    type Error = ProtocolError;

    fn rotate_hoisted(
        &self,
        ciphertext: &Ciphertext,
        rotations: &[Rotation],
        mut visit: impl FnMut(usize, &ExtendedCiphertext) -> Result<(), ProtocolError>,
    ) -> Result<(), ProtocolError> {
        let hoisted = self.evaluator.hoist(ciphertext)?;
        for (index, rotation) in rotations.iter().enumerate() {
            visit(index, &hoisted.apply_extended(self.element(*rotation)?, self.keys)?)?;
        }
        Ok(())
    }

    fn empty_sum(&self) -> Result<ExtendedCombination, ProtocolError> {
        Ok(ExtendedCombination::new(self.parameters)?)
    }

    fn multiply_add(
        &self,
        sum: &mut ExtendedCombination,
        rotated: &ExtendedCiphertext,
        multiplier: &Multiplier,
    ) -> Result<(), ProtocolError> {
        Ok(sum.add(rotated, multiplier)?)
    }

    fn rotate_add(
        &self,
        sum: &mut ExtendedCombination,
        ciphertext: &Ciphertext,
        rotation: Rotation,
    ) -> Result<(), ProtocolError> {
        // Not divided by the special modulus on its own: the sum is divided once.
        let hoisted = self.evaluator.hoist(ciphertext)?;
        Ok(sum.add(&hoisted.apply_extended(self.element(rotation)?, self.keys)?, &self.one)?)
    }

    fn finish(&self, sum: ExtendedCombination) -> Result<Ciphertext, ProtocolError> {
        Ok(sum.finish())
    }

    fn rotate(&self, ciphertext: &Ciphertext, rotation: Rotation) -> Result<Ciphertext, ProtocolError> {
        Ok(self.evaluator.apply(ciphertext, self.element(rotation)?, self.keys)?)
    }

    fn add(&self, sum: &mut Ciphertext, other: &Ciphertext) -> Result<(), ProtocolError> {
        Ok(self.evaluator.add_assign(sum, other)?)
    }
}
