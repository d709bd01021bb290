//! What a packed layer asks of an encryption scheme, and the layer itself over it.
//!
//! The layer is written once and runs over BFV, over clear slots and over noise bounds alike; tests hold them against each
//! other.

use super::packing::Packing;
use super::program::{Merge, Program};
use super::rotation::Rotation;

/// Homomorphic operations on packed slots.
pub trait PackedScheme {
    /// An encrypted vector of slots.
    type Ciphertext;
    /// A rotated input, ready to be multiplied.
    type Rotated;
    /// A vector of slots in the clear, ready to multiply.
    type Multiplier;
    /// A sum that is not reduced yet.
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

    /// Adds a rotated ciphertext to a sum.
    ///
    /// # Errors
    /// If an evaluation key is missing.
    fn rotate_add(
        &self,
        sum: &mut Self::Sum,
        ciphertext: &Self::Ciphertext,
        rotation: Rotation,
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
/// `multipliers` are those of [`Packing::weighting`], in order.
///
/// # Errors
/// Those of the scheme.
pub fn evaluate<S: PackedScheme>(
    scheme: &S,
    packing: &Packing,
    multipliers: &[S::Multiplier],
    inputs: &[S::Ciphertext],
) -> Result<Vec<S::Ciphertext>, S::Error> {
    let program = packing.program();
    let mut outputs = Vec::with_capacity(packing.operations().output_ciphertexts);
    for frame in inputs.chunks(program.inputs.len()) {
        let sums = products(scheme, program, multipliers, frame)?;
        let mut registers: Vec<_> = sums.into_iter().map(Register::Open).collect();
        for merge in &program.merges {
            registers[merge.from] = merged(scheme, &mut registers, *merge)?;
        }
        for output in &program.outputs {
            outputs.push(take(scheme, &mut registers[*output])?);
        }
    }
    Ok(outputs)
}

/// The sums of products.
fn products<S: PackedScheme>(
    scheme: &S,
    program: &Program,
    multipliers: &[S::Multiplier],
    inputs: &[S::Ciphertext],
) -> Result<Vec<S::Sum>, S::Error> {
    let mut sums = (0..program.sums).map(|_| scheme.empty_sum()).collect::<Result<Vec<_>, _>>()?;
    for (input, rotated) in inputs.iter().zip(&program.inputs) {
        let rotations: Vec<_> = rotated.iter().map(|rotated| rotated.rotation).collect();
        scheme.rotate_hoisted(input, &rotations, |index, ciphertext| {
            let mut terms = rotated[index].terms.iter();
            terms.try_for_each(|term| {
                scheme.multiply_add(&mut sums[term.sum], ciphertext, &multipliers[term.multiplier])
            })
        })?;
    }
    Ok(sums)
}

/// A sum during the merges.
enum Register<S: PackedScheme> {
    Open(S::Sum),
    Reduced(S::Ciphertext),
    /// It was merged into another one.
    Spent,
}

fn take<S: PackedScheme>(scheme: &S, register: &mut Register<S>) -> Result<S::Ciphertext, S::Error> {
    match std::mem::replace(register, Register::Spent) {
        Register::Open(sum) => scheme.finish(sum),
        Register::Reduced(ciphertext) => Ok(ciphertext),
        Register::Spent => scheme.finish(scheme.empty_sum()?),
    }
}

/// Performs a merge; returns what is left of its source.
fn merged<S: PackedScheme>(
    scheme: &S,
    registers: &mut [Register<S>],
    merge: Merge,
) -> Result<Register<S>, S::Error> {
    let mut from = take(scheme, &mut registers[merge.from])?;
    if merge.from == merge.into {
        let rotated = scheme.rotate(&from, merge.rotation)?;
        scheme.add(&mut from, &rotated)?;
        return Ok(Register::Reduced(from));
    }
    match &mut registers[merge.into] {
        Register::Open(sum) => scheme.rotate_add(sum, &from, merge.rotation)?,
        Register::Reduced(into) => scheme.add(into, &scheme.rotate(&from, merge.rotation)?)?,
        Register::Spent => {}
    }
    Ok(Register::Spent)
}
