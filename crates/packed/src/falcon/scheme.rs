//! The layer itself: sums of slotwise products, over ciphertexts, over their first halves alone, or over bounds on their noise.

use lanner_bfv::halves::{C0, C0Combinations};
use lanner_bfv::{Ciphertext, LinearCombination, Multiplier, Parameters, Product};
use lanner_step::{ProtocolError, Result};

use super::packing::Packing;

/// What a frequency-domain layer asks of an encryption scheme.
pub trait SlotProducts {
    /// An encrypted vector of slots.
    type Ciphertext;
    /// A vector of slots in the clear, ready to multiply.
    type Multiplier;

    /// The sum of slotwise products, at least one.
    ///
    /// # Errors
    /// If the operands do not fit together.
    fn sum_of_products(
        &self,
        inputs: &[Self::Ciphertext],
        multipliers: &[Self::Multiplier],
    ) -> Result<Self::Ciphertext>;
}

/// The outputs of a layer one by one. Slots hold partial sums: every one must be masked before the client may decrypt it.
pub fn evaluate<'e, S: SlotProducts>(
    scheme: &'e S,
    packing: &'e Packing,
    multipliers: &'e [S::Multiplier],
    inputs: &'e [S::Ciphertext],
) -> impl ExactSizeIterator<Item = Result<S::Ciphertext>> + use<'e, S> {
    packing.outputs().iter().map(|output| {
        let inputs = &inputs[output.inputs.clone()];
        scheme.sum_of_products(inputs, &multipliers[output.multiplier..][..inputs.len()])
    })
}

/// Products of whole ciphertexts.
pub struct EncryptedProducts<'p> {
    /// The ciphertexts' parameters.
    pub parameters: &'p Parameters,
}

impl SlotProducts for EncryptedProducts<'_> {
    type Ciphertext = Ciphertext;
    type Multiplier = Multiplier;

    fn sum_of_products(&self, inputs: &[Ciphertext], multipliers: &[Multiplier]) -> Result<Ciphertext> {
        Ok(LinearCombination::of(self.parameters, inputs, multipliers)?)
    }
}

/// Products of first halves.
pub struct FirstHalfProducts<'p> {
    /// The ciphertexts' parameters.
    pub parameters: &'p Parameters,
}

impl SlotProducts for FirstHalfProducts<'_> {
    type Ciphertext = C0;
    type Multiplier = Multiplier;

    fn sum_of_products(&self, inputs: &[C0], multipliers: &[Multiplier]) -> Result<C0> {
        let mut sum = C0Combinations::new(self.parameters, 1);
        let products = multipliers.iter().enumerate();
        let products: Vec<_> =
            products.map(|(operand, factor)| Product { operand, row: 0, factor: factor.into() }).collect();
        sum.add_products(inputs, &products)?;
        sum.finish().pop().ok_or(ProtocolError::Missing("sums of products"))
    }
}
