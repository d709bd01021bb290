//! What a packed layer asks of an encryption scheme, and the layer itself over it.
//!
//! The layer is written once: it runs over ciphertexts, over their first halves alone, over bounds on their noise, and in
//! tests over clear slots.

use super::packing::{Packing, Rotation};

/// Homomorphic operations on packed slots.
pub trait PackedScheme {
    /// An encrypted vector of slots.
    type Ciphertext;
    /// A rotated input, ready to be multiplied.
    type Rotated;
    /// A vector of slots in the clear, ready to multiply.
    type Multiplier;
    /// Several sums of products of the same rotated inputs.
    type Sums;
    /// Why an operation fails.
    type Error;

    /// Rotates one ciphertext in several ways, sharing its decomposition (hoisting); `visit` takes a few of them at a time,
    /// in order.
    ///
    /// # Errors
    /// If an evaluation key is missing.
    fn rotate_hoisted(
        &self,
        ciphertext: &Self::Ciphertext,
        rotations: &[Rotation],
        visit: impl FnMut(&[Self::Rotated]) -> Result<(), Self::Error>,
    ) -> Result<(), Self::Error>;

    /// Empty sums.
    ///
    /// # Errors
    /// If the parameters do not allow it.
    fn empty_sums(&self, count: usize) -> Result<Self::Sums, Self::Error>;

    /// Adds the product of `rotated[k]` by `multipliers[k * count + j]` to each sum `j`.
    ///
    /// # Errors
    /// If the operands do not fit together.
    fn multiply_add(
        &self,
        sums: &mut Self::Sums,
        rotated: &[Self::Rotated],
        multipliers: &[Self::Multiplier],
    ) -> Result<(), Self::Error>;

    /// Reduces the sums.
    ///
    /// # Errors
    /// If the parameters do not allow it.
    fn finish(&self, sums: Self::Sums) -> Result<Vec<Self::Ciphertext>, Self::Error>;

    /// Rotates one ciphertext.
    ///
    /// # Errors
    /// If an evaluation key is missing.
    fn rotate(
        &self,
        ciphertext: &Self::Ciphertext,
        rotation: Rotation,
    ) -> Result<Self::Ciphertext, Self::Error>;

    /// Adds `other` to `sum`.
    ///
    /// # Errors
    /// If the ciphertexts do not fit together.
    fn add(&self, sum: &mut Self::Ciphertext, other: &Self::Ciphertext) -> Result<(), Self::Error>;
}

/// Evaluates a packed layer on encrypted inputs: every output slot that [`Packing::output_slots`] does not name holds a
/// partial sum, which must be masked before the client may decrypt it.
///
/// `multipliers` are in the order of [`Packing::terms`].
///
/// # Errors
/// Those of the scheme.
pub fn evaluate<S: PackedScheme>(
    scheme: &S,
    packing: &Packing,
    multipliers: &[S::Multiplier],
    inputs: &[S::Ciphertext],
) -> Result<Vec<S::Ciphertext>, S::Error> {
    let rotations = packing.input_rotations();
    let giants = packing.giants();
    let outputs = packing.operations().output_ciphertexts;
    let count = outputs * giants;
    let mut sums = scheme.empty_sums(count)?;
    let per_input = multipliers.chunks(rotations.len() * count);
    for (input, mut multipliers) in inputs.iter().zip(per_input) {
        scheme.rotate_hoisted(input, &rotations, |rotated| {
            let (now, later) = multipliers.split_at(multipliers.len().min(rotated.len() * count));
            multipliers = later;
            scheme.multiply_add(&mut sums, rotated, now)
        })?;
    }
    let mut partials = scheme.finish(sums)?.into_iter();
    let mut completed = Vec::with_capacity(outputs);
    while let Some(first) = partials.next() {
        completed.push(complete(scheme, packing, first, partials.by_ref().take(giants - 1))?);
    }
    Ok(completed)
}

/// Brings the partial sums of one output into place, then rotates and adds.
fn complete<S: PackedScheme>(
    scheme: &S,
    packing: &Packing,
    first: S::Ciphertext,
    rest: impl Iterator<Item = S::Ciphertext>,
) -> Result<S::Ciphertext, S::Error> {
    let mut total = first;
    for (giant, partial) in (1..).zip(rest) {
        scheme.add(&mut total, &scheme.rotate(&partial, packing.giant_rotation(giant))?)?;
    }
    for fold in packing.folds() {
        let rotated = scheme.rotate(&total, fold)?;
        scheme.add(&mut total, &rotated)?;
    }
    Ok(total)
}
