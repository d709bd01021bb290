//! What a packed layer asks of an encryption scheme, and the layer itself over it.
//!
//! The layer is written once: it runs over ciphertexts, over their first halves alone, over bounds on their noise, and in
//! tests over clear slots.

use lanner_step::Rotation;

use super::packing::Packing;
use super::program::{Merge, Program, Term};

/// Homomorphic operations on packed slots.
pub trait PackedScheme {
    /// An encrypted vector of slots.
    type Ciphertext;
    /// A ciphertext before its reduction: a rotated input, or a sum of products of such.
    type Unreduced;
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
        visit: impl FnMut(&[Self::Unreduced]) -> Result<(), Self::Error>,
    ) -> Result<(), Self::Error>;

    /// Empty sums.
    ///
    /// # Errors
    /// If the parameters do not allow it.
    fn empty_sums(&self, count: usize) -> Result<Self::Sums, Self::Error>;

    /// Adds the products of each rotated input to their sums.
    ///
    /// # Errors
    /// If the operands do not fit together.
    fn multiply_add(
        &self,
        sums: &mut Self::Sums,
        rotated: &[Self::Unreduced],
        terms: &[&[Term]],
        multipliers: &[Self::Multiplier],
    ) -> Result<(), Self::Error>;

    /// The sums, one by one.
    fn open(&self, sums: Self::Sums) -> Vec<Self::Unreduced>;

    /// Adds a rotated ciphertext to a sum.
    ///
    /// # Errors
    /// If an evaluation key is missing.
    fn rotate_add(
        &self,
        sum: &mut Self::Unreduced,
        ciphertext: &Self::Ciphertext,
        rotation: Rotation,
    ) -> Result<(), Self::Error>;

    /// Reduces a sum.
    fn reduce(&self, sum: Self::Unreduced) -> Self::Ciphertext;

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
        let sums = scheme.open(products(scheme, program, multipliers, frame)?);
        let mut registers: Vec<_> = sums.into_iter().map(Register::Sum).collect();
        for merge in &program.merges {
            perform(scheme, &mut registers, *merge)?;
        }
        for output in &program.outputs {
            outputs.extend(take(scheme, &mut registers[*output]));
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
) -> Result<S::Sums, S::Error> {
    let mut sums = scheme.empty_sums(program.sums)?;
    for (input, hoisted) in inputs.iter().zip(&program.inputs) {
        let rotations: Vec<_> = hoisted.iter().map(|hoisted| hoisted.rotation).collect();
        let terms: Vec<_> = hoisted.iter().map(|hoisted| hoisted.terms.as_slice()).collect();
        let mut rest = terms.as_slice();
        scheme.rotate_hoisted(input, &rotations, |rotated| {
            let (now, later) = rest.split_at(rest.len().min(rotated.len()));
            rest = later;
            scheme.multiply_add(&mut sums, rotated, now, multipliers)
        })?;
    }
    Ok(sums)
}

/// A sum during the merges.
enum Register<S: PackedScheme> {
    Sum(S::Unreduced),
    Reduced(S::Ciphertext),
    /// It was added to another one.
    Spent,
}

fn take<S: PackedScheme>(scheme: &S, register: &mut Register<S>) -> Option<S::Ciphertext> {
    match std::mem::replace(register, Register::Spent) {
        Register::Sum(sum) => Some(scheme.reduce(sum)),
        Register::Reduced(ciphertext) => Some(ciphertext),
        Register::Spent => None,
    }
}

fn perform<S: PackedScheme>(scheme: &S, registers: &mut [Register<S>], merge: Merge) -> Result<(), S::Error> {
    let Some(mut from) = take(scheme, &mut registers[merge.from]) else {
        return Ok(());
    };
    if merge.from == merge.into {
        let rotated = scheme.rotate(&from, merge.rotation)?;
        scheme.add(&mut from, &rotated)?;
        registers[merge.into] = Register::Reduced(from);
        return Ok(());
    }
    match &mut registers[merge.into] {
        // What is added before the sum is reduced takes no reduction of its own.
        Register::Sum(sum) => scheme.rotate_add(sum, &from, merge.rotation),
        Register::Reduced(into) => scheme.add(into, &scheme.rotate(&from, merge.rotation)?),
        Register::Spent => Ok(()),
    }
}
