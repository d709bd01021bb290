//! Sums of products of ciphertexts by plaintexts, with one reduction at their end.

use std::ops::Range;

use lanner_ring::{Accumulator, Eval, Modulus, Poly, RnsBasis};

use crate::{BfvError, Ciphertext, ExtendedCiphertext, Multiplier, NoiseBound, Parameters};

/// The sum of ciphertexts multiplied by plaintexts.
pub struct LinearCombination {
    sums: Sums,
}

impl LinearCombination {
    /// An empty sum of fresh or rotated ciphertexts, which have all limbs.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        Self { sums: Sums::new(&parameters.basis(parameters.limbs())) }
    }

    /// Adds `ciphertext * factor`.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] if either belongs to other parameters, or the ciphertext has fewer limbs.
    pub fn add(&mut self, ciphertext: &Ciphertext, factor: &Multiplier) -> Result<(), BfvError> {
        let Ciphertext { c0, c1, noise } = ciphertext;
        self.sums.add([c0, c1], factor, noise.multiplied_by_norm(factor.norm))
    }

    /// The sum; an encryption of zero without noise if nothing was added.
    #[must_use]
    pub fn finish(self) -> Ciphertext {
        let ([c0, c1], noise) = self.sums.finish();
        Ciphertext { c0, c1, noise }
    }
}

/// The sum of rotated ciphertexts multiplied by plaintexts, over the limbs and the special modulus: the division by that
/// modulus is done once, for the sum ("double hoisting", [BMTPH20](https://eprint.iacr.org/2020/1203)).
pub struct ExtendedCombination {
    parameters: Parameters,
    sums: Sums,
}

impl ExtendedCombination {
    /// An empty sum.
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`].
    pub fn new(parameters: &Parameters) -> Result<Self, BfvError> {
        Ok(Self { parameters: parameters.clone(), sums: Sums::new(parameters.key_switching()?) })
    }

    /// Adds `ciphertext * factor`; the factor is an
    /// [extended](crate::SlotEncoder::extended_multiplier) one.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] if either belongs to other parameters or the factor is not extended.
    pub fn add(&mut self, ciphertext: &ExtendedCiphertext, factor: &Multiplier) -> Result<(), BfvError> {
        let ExtendedCiphertext { c0, c1, noise } = ciphertext;
        self.sums.add([c0, c1], factor, noise.multiplied_by_norm(factor.norm))
    }

    /// The sum, divided by the special modulus.
    #[must_use]
    pub fn finish(self) -> Ciphertext {
        let ([mut c0, mut c1], noise) = self.sums.finish();
        c0.divide_round_by_last();
        c1.divide_round_by_last();
        Ciphertext { c0, c1, noise: noise.rescaled(&self.parameters) }
    }
}

/// Many sums of the same rotated ciphertexts: row `j` is the sum of `ciphertext_k * factor_kj`.
///
/// Worth it where a ciphertext goes into several rows: a block of slots of all ciphertexts stays in the cache while every
/// factor passes once.
pub struct ExtendedCombinations {
    parameters: Parameters,
    rows: Vec<Row>,
}

/// One sum, reduced.
struct Row {
    c0: Poly<Eval>,
    c1: Poly<Eval>,
    noise: NoiseBound,
}

impl ExtendedCombinations {
    /// Empty sums.
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`].
    pub fn new(parameters: &Parameters, rows: usize) -> Result<Self, BfvError> {
        let basis = parameters.key_switching()?;
        let row = |_| Row { c0: Poly::zero(basis), c1: Poly::zero(basis), noise: NoiseBound::NONE };
        Ok(Self { parameters: parameters.clone(), rows: (0..rows).map(row).collect() })
    }

    /// Adds `ciphertexts[k] * factors[k * rows + j]` to each row `j`; the factors are
    /// [extended](crate::SlotEncoder::extended_multiplier) ones.
    ///
    /// # Errors
    /// [`BfvError::Length`] unless there is a factor for each ciphertext and row; [`BfvError::Mismatch`] if an operand
    /// belongs to other parameters or a factor is not extended.
    pub fn add(
        &mut self,
        ciphertexts: &[ExtendedCiphertext],
        factors: &[Multiplier],
    ) -> Result<(), BfvError> {
        let (expected, got) = (ciphertexts.len() * self.rows.len(), factors.len());
        if expected != got {
            return Err(BfvError::Length { expected, got });
        }
        let basis = self.parameters.extended();
        if ciphertexts.iter().any(|ciphertext| !ciphertext.c0.basis().same(basis)) {
            return Err(BfvError::Mismatch { what: "the bases of ciphertext and sum" });
        }
        factors.iter().try_for_each(|factor| factor.check_covers(basis))?;
        for limb in 0..basis.len() {
            for start in (0..basis.degree()).step_by(BLOCK) {
                let block = start..basis.degree().min(start + BLOCK);
                add_block(&mut self.rows, &basis.moduli()[limb], ciphertexts, factors, limb, block);
            }
        }
        let stride = self.rows.len();
        for (j, row) in self.rows.iter_mut().enumerate() {
            for (ciphertext, factor) in ciphertexts.iter().zip(factors.iter().skip(j).step_by(stride)) {
                row.noise = row.noise.plus(ciphertext.noise.multiplied_by_norm(factor.norm));
            }
        }
        Ok(())
    }

    /// The sums, divided by the special modulus.
    #[must_use]
    pub fn finish(self) -> Vec<Ciphertext> {
        let finish = |Row { mut c0, mut c1, noise }| {
            c0.divide_round_by_last();
            c1.divide_round_by_last();
            Ciphertext { c0, c1, noise: noise.rescaled(&self.parameters) }
        };
        self.rows.into_iter().map(finish).collect()
    }
}

/// Values of a block: those of some tens of ciphertexts fit the second-level cache.
const BLOCK: usize = 1024;

fn add_block(
    rows: &mut [Row],
    modulus: &Modulus,
    ciphertexts: &[ExtendedCiphertext],
    factors: &[Multiplier],
    limb: usize,
    block: Range<usize>,
) {
    let c0: Vec<_> = ciphertexts.iter().map(|ciphertext| &ciphertext.c0.limb(limb)[block.clone()]).collect();
    let c1: Vec<_> = ciphertexts.iter().map(|ciphertext| &ciphertext.c1.limb(limb)[block.clone()]).collect();
    let mut sum = [0; BLOCK];
    let sum = &mut sum[..block.len()];
    let stride = rows.len();
    for (j, row) in rows.iter_mut().enumerate() {
        let row_factors = factors.iter().skip(j).step_by(stride);
        let weights: Vec<_> = row_factors.map(|factor| &factor.poly.limb(limb)[block.clone()]).collect();
        for (part, total) in [(&c0, &mut row.c0), (&c1, &mut row.c1)] {
            modulus.dot(sum, part, &weights);
            modulus.add_assign_slice(&mut total.limb_mut(limb)[block.clone()], sum);
        }
    }
}

/// Two polynomials of unreduced sums, and the bound on their noise.
struct Sums {
    basis: RnsBasis,
    accumulators: [Vec<Accumulator>; 2],
    noise: NoiseBound,
}

impl Sums {
    fn new(basis: &RnsBasis) -> Self {
        let empty = || basis.moduli().iter().map(|q| Accumulator::new(q, basis.degree())).collect();
        Self { basis: basis.clone(), accumulators: [empty(), empty()], noise: NoiseBound::NONE }
    }

    fn add(
        &mut self,
        parts: [&Poly<Eval>; 2],
        factor: &Multiplier,
        noise: NoiseBound,
    ) -> Result<(), BfvError> {
        if !parts[0].basis().same(&self.basis) {
            return Err(BfvError::Mismatch { what: "the bases of ciphertext and sum" });
        }
        factor.check_covers(&self.basis)?;
        for (sums, part) in self.accumulators.iter_mut().zip(parts) {
            for ((sum, limb), weights) in sums.iter_mut().zip(part.limbs()).zip(factor.poly.limbs()) {
                sum.mul_add(limb, weights);
            }
        }
        self.noise = self.noise.plus(noise);
        Ok(())
    }

    fn finish(self) -> ([Poly<Eval>; 2], NoiseBound) {
        let Self { basis, accumulators, noise } = self;
        let reduce = |sums: Vec<Accumulator>| {
            let mut poly = Poly::zero(&basis);
            for (limb, mut sum) in poly.limbs_mut().zip(sums) {
                sum.reduce_into(limb);
            }
            poly
        };
        (accumulators.map(reduce), noise)
    }
}
