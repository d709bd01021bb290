//! Sums of products of first halves by plaintexts.

use lanner_ring::{Eval, Poly};

use super::C0;
use crate::combination::{Product, Terms, add_limb};
use crate::{BfvError, Multiplier, NoiseBound, Parameters};

/// Many sums of the same first halves: row `j` is the sum of `half_k * factor_kj`.
pub struct C0Combinations {
    parameters: Parameters,
    rows: Vec<(Poly<Eval>, NoiseBound)>,
}

impl C0Combinations {
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
    /// [`BfvError::Length`] unless there is a factor for each half and row; as [`Self::add_products`].
    pub fn add(&mut self, halves: &[C0], factors: &[Multiplier]) -> Result<(), BfvError> {
        self.add_products(halves, &Product::dense(halves.len(), self.rows.len(), factors)?)
    }

    /// Adds products of some of the halves to some of the sums.
    ///
    /// # Errors
    /// [`BfvError::Length`] if an index is out of range; [`BfvError::Mismatch`] if an operand belongs to other parameters.
    pub fn add_products(&mut self, halves: &[C0], products: &[Product<'_>]) -> Result<(), BfvError> {
        let basis = self.parameters.basis(self.parameters.limbs());
        if halves.iter().any(|half| !half.c0.basis().same(&basis)) {
            return Err(BfvError::Mismatch { what: "the bases of ciphertext and sum" });
        }
        let terms = Terms::by_row(halves.len(), products, self.rows.len(), &basis)?;
        for limb in 0..basis.len() {
            let operands: Vec<_> = halves.iter().map(|half| [half.c0.limb(limb)]).collect();
            let rows = self.rows.iter_mut().map(|(row, _)| [row.limb_mut(limb)]).collect();
            add_limb(&basis, limb, rows, &operands, &terms);
        }
        for ((_, noise), terms) in self.rows.iter_mut().zip(&terms) {
            *noise = noise.plus(terms.noise(|k| halves[k].noise));
        }
        Ok(())
    }

    /// The sums.
    #[must_use]
    pub fn finish(self) -> Vec<C0> {
        self.rows.into_iter().map(|(c0, noise)| C0 { c0, noise }).collect()
    }
}
