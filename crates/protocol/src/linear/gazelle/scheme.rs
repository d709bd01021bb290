//! What a packed layer asks of an encryption scheme, and the layer itself over it.
//!
//! The layer is written once and runs over BFV and over clear slots alike; tests hold the two against each other.

use super::packing::{Packing, Rotation};

/// Homomorphic operations on packed slots.
pub trait PackedScheme {
    /// An encrypted vector of slots.
    type Ciphertext;
    /// A rotated input, ready to be multiplied.
    type Rotated;
    /// A vector of slots in the clear, ready to multiply.
    type Multiplier;
    /// A sum of products that is not reduced yet.
    type Sum;
    /// Why an operation fails.
    type Error;

    /// Rotates one ciphertext in several ways, sharing its decomposition (hoisting); `visit` takes them one at a time.
    ///
    /// # Errors
    /// If an evaluation key is missing.
    fn rotate_hoisted(
        &self,
        ciphertext: &Self::Ciphertext,
        rotations: &[Rotation],
        visit: impl FnMut(usize, &Self::Rotated) -> Result<(), Self::Error>,
    ) -> Result<(), Self::Error>;

    /// An empty sum.
    ///
    /// # Errors
    /// If the parameters do not allow it.
    fn empty_sum(&self) -> Result<Self::Sum, Self::Error>;

    /// Adds a product to a sum.
    ///
    /// # Errors
    /// If the operands do not fit together.
    fn multiply_add(
        &self,
        sum: &mut Self::Sum,
        rotated: &Self::Rotated,
        multiplier: &Self::Multiplier,
    ) -> Result<(), Self::Error>;

    /// Reduces a sum.
    ///
    /// # Errors
    /// If the parameters do not allow it.
    fn finish(&self, sum: Self::Sum) -> Result<Self::Ciphertext, Self::Error>;

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
    let mut sums: Vec<S::Sum> =
        (0..outputs * giants).map(|_| scheme.empty_sum()).collect::<Result<_, _>>()?;
    let per_input = multipliers.chunks(rotations.len() * sums.len());
    for (input, multipliers) in inputs.iter().zip(per_input) {
        scheme.rotate_hoisted(input, &rotations, |index, rotated| {
            let row = &multipliers[index * sums.len()..];
            let mut pairs = sums.iter_mut().zip(row);
            pairs.try_for_each(|(sum, multiplier)| scheme.multiply_add(sum, rotated, multiplier))
        })?;
    }
    let mut sums = sums.into_iter();
    (0..outputs).map(|_| complete(scheme, packing, sums.by_ref().take(giants))).collect()
}

/// Brings the partial sums of one output into place, then rotates and adds.
fn complete<S: PackedScheme>(
    scheme: &S,
    packing: &Packing,
    sums: impl Iterator<Item = S::Sum>,
) -> Result<S::Ciphertext, S::Error> {
    let mut total = None;
    for (giant, sum) in sums.enumerate() {
        let partial = scheme.finish(sum)?;
        match &mut total {
            None => total = Some(partial),
            Some(total) => scheme.add(total, &scheme.rotate(&partial, packing.giant_rotation(giant))?)?,
        }
    }
    let mut total = match total {
        Some(total) => total,
        None => scheme.finish(scheme.empty_sum()?)?,
    };
    for fold in packing.folds() {
        let rotated = scheme.rotate(&total, fold)?;
        scheme.add(&mut total, &rotated)?;
    }
    Ok(total)
}
