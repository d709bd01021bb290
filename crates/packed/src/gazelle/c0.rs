//! Packed slots in the first halves of ciphertexts: what is left of a layer when the second halves were evaluated before.

use lanner_bfv::halves::{C0, C0Combinations, Permutations};
use lanner_bfv::{Multiplier, Parameters};
use lanner_primitives::parallel;
use lanner_step::{ProtocolError, Result, Rotation, galois_element};

use super::encrypted::products;
use super::program::Term;
use super::scheme::PackedScheme;

/// First halves under BFV. No key is used: the layer is linear in the first halves.
pub struct FirstHalfSlots<'p> {
    parameters: &'p Parameters,
    permutations: &'p Permutations,
}

impl<'p> FirstHalfSlots<'p> {
    /// The scheme with the permutations of a layer's rotations.
    #[must_use]
    pub fn new(parameters: &'p Parameters, permutations: &'p Permutations) -> Self {
        Self { parameters, permutations }
    }
}

impl PackedScheme for FirstHalfSlots<'_> {
    type Ciphertext = C0;
    type Unreduced = C0;
    type Multiplier = Multiplier;
    type Sums = C0Combinations;
    type Error = ProtocolError;

    fn rotate_hoisted(
        &self,
        half: &C0,
        rotations: &[Rotation],
        mut visit: impl FnMut(&[C0]) -> Result<()>,
    ) -> Result<()> {
        for rotations in rotations.chunks(AT_A_TIME) {
            let rotated = parallel::map(rotations, |rotation| self.rotate(half, *rotation));
            visit(&rotated.into_iter().collect::<Result<Vec<_>, _>>()?)?;
        }
        Ok(())
    }

    fn empty_sums(&self, count: usize) -> Result<C0Combinations> {
        Ok(C0Combinations::new(self.parameters, count))
    }

    fn multiply_add(
        &self,
        sums: &mut C0Combinations,
        rotated: &[C0],
        terms: &[&[Term]],
        multipliers: &[Multiplier],
    ) -> Result<()> {
        Ok(sums.add_products(rotated, &products(terms, multipliers))?)
    }

    fn open(&self, sums: C0Combinations) -> Vec<C0> {
        sums.finish()
    }

    fn rotate_add(&self, sum: &mut C0, half: &C0, rotation: Rotation) -> Result<()> {
        self.add(sum, &self.rotate(half, rotation)?)
    }

    fn reduce(&self, sum: C0) -> C0 {
        sum
    }

    fn rotate(&self, half: &C0, rotation: Rotation) -> Result<C0> {
        Ok(half.apply(galois_element(rotation, self.parameters.degree())?, self.permutations)?)
    }

    fn add(&self, sum: &mut C0, other: &C0) -> Result<()> {
        Ok(sum.add_assign(other)?)
    }
}

/// Rotated halves that are in memory at the same time.
const AT_A_TIME: usize = 32;
