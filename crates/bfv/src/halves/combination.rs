//! Sums of products of first halves by plaintexts.

use lanner_ring::{Buffer, Eval, Poly};

use super::FirstHalf;
use crate::{BfvError, Multiplier, NoiseBound, Parameters};

/// Many sums of the same first halves: row `j` is the sum of `half_k * factor_kj`.
pub struct FirstHalfCombinations {
    parameters: Parameters,
    rows: Vec<(Poly<Eval>, NoiseBound)>,
}

impl FirstHalfCombinations {
    /// Empty sums.
    #[must_use]
    pub fn new(parameters: &Parameters, rows: usize) -> Self {
        let basis = parameters.basis(parameters.limbs());
        let rows = (0..rows).map(|_| (Poly::zero(&basis), NoiseBound::NONE)).collect();
        Self { parameters: parameters.clone(), rows }
    }

    /// Adds `halves[k] * factors[k * rows + j]` to each row `j`.
    ///
    /// # Errors
    /// [`BfvError::Length`] unless there is a factor for each half and row; [`BfvError::Mismatch`] if an operand belongs to
    /// other parameters.
    pub fn add(&mut self, halves: &[FirstHalf], factors: &[Multiplier]) -> Result<(), BfvError> {
        let (expected, got) = (halves.len() * self.rows.len(), factors.len());
        if expected != got {
            return Err(BfvError::Length { expected, got });
        }
        let basis = self.parameters.basis(self.parameters.limbs());
        if halves.iter().any(|half| !half.c0.basis().same(&basis)) {
            return Err(BfvError::Mismatch { what: "the bases of ciphertext and sum" });
        }
        factors.iter().try_for_each(|factor| factor.check_covers(&basis))?;
        for (limb, modulus) in basis.moduli().iter().enumerate() {
            for start in (0..basis.degree()).step_by(BLOCK) {
                let block = start..basis.degree().min(start + BLOCK);
                let values: Vec<_> = halves.iter().map(|half| &half.c0.limb(limb)[block.clone()]).collect();
                let mut sum = Buffer::zeroed(block.len());
                let stride = self.rows.len();
                for (j, (row, _)) in self.rows.iter_mut().enumerate() {
                    let row_factors = factors.iter().skip(j).step_by(stride);
                    let weights: Vec<_> =
                        row_factors.map(|factor| &factor.poly.limb(limb)[block.clone()]).collect();
                    modulus.dot(&mut sum, &values, &weights);
                    modulus.add_assign_slice(&mut row.limb_mut(limb)[block.clone()], &sum);
                }
            }
        }
        self.follow_noise(halves, factors);
        Ok(())
    }

    fn follow_noise(&mut self, halves: &[FirstHalf], factors: &[Multiplier]) {
        let stride = self.rows.len();
        for (j, (_, noise)) in self.rows.iter_mut().enumerate() {
            for (half, factor) in halves.iter().zip(factors.iter().skip(j).step_by(stride)) {
                *noise = noise.plus(half.noise.multiplied(&self.parameters, factor.t));
            }
        }
    }

    /// The sums.
    #[must_use]
    pub fn finish(self) -> Vec<FirstHalf> {
        self.rows.into_iter().map(|(c0, noise)| FirstHalf { c0, noise }).collect()
    }
}

/// Values of a block: those of some tens of halves fit the second-level cache.
const BLOCK: usize = 1024;
