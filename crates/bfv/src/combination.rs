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

/// Many sums of products of the same rotated ciphertexts.
///
/// Worth it where a ciphertext goes into several sums: a block of slots of all ciphertexts stays in the cache while every
/// factor passes once.
pub struct ExtendedCombinations {
    parameters: Parameters,
    rows: Vec<ExtendedCiphertext>,
}

/// One product, and the sum it goes to.
#[derive(Clone, Copy)]
pub struct Product<'f> {
    /// Index of the ciphertext.
    pub ciphertext: usize,
    /// Index of the sum.
    pub row: usize,
    /// The factor: an [extended](crate::SlotEncoder::extended_multiplier) one.
    pub factor: &'f Multiplier,
}

impl ExtendedCombinations {
    /// Empty sums.
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`].
    pub fn new(parameters: &Parameters, rows: usize) -> Result<Self, BfvError> {
        let basis = parameters.key_switching()?;
        let row =
            |_| ExtendedCiphertext { c0: Poly::zero(basis), c1: Poly::zero(basis), noise: NoiseBound::NONE };
        Ok(Self { parameters: parameters.clone(), rows: (0..rows).map(row).collect() })
    }

    /// Adds `ciphertexts[k] * factors[k * rows + j]` to each row `j`.
    ///
    /// # Errors
    /// [`BfvError::Length`] unless there is a factor for each ciphertext and row; as [`Self::add_products`].
    pub fn add(
        &mut self,
        ciphertexts: &[ExtendedCiphertext],
        factors: &[Multiplier],
    ) -> Result<(), BfvError> {
        let rows = self.rows.len();
        let (expected, got) = (ciphertexts.len() * rows, factors.len());
        if expected != got {
            return Err(BfvError::Length { expected, got });
        }
        let product = |(i, factor)| Product { ciphertext: i / rows, row: i % rows, factor };
        self.add_products(ciphertexts, &factors.iter().enumerate().map(product).collect::<Vec<_>>())
    }

    /// Adds products of some of the ciphertexts to some of the sums.
    ///
    /// # Errors
    /// [`BfvError::Length`] if an index is out of range; [`BfvError::Mismatch`] if an operand belongs to other parameters
    /// or a factor is not extended.
    pub fn add_products(
        &mut self,
        ciphertexts: &[ExtendedCiphertext],
        products: &[Product<'_>],
    ) -> Result<(), BfvError> {
        let basis = self.parameters.extended();
        if ciphertexts.iter().any(|ciphertext| !ciphertext.c0.basis().same(basis)) {
            return Err(BfvError::Mismatch { what: "the bases of ciphertext and sum" });
        }
        let mut terms: Vec<Terms<'_>> = self.rows.iter().map(|_| Terms::default()).collect();
        for Product { ciphertext, row, factor } in products {
            factor.check_covers(basis)?;
            let (expected, got) = (ciphertexts.len(), ciphertext + 1);
            let ciphertext = ciphertexts.get(*ciphertext).ok_or(BfvError::Length { expected, got })?;
            let (expected, got) = (terms.len(), row + 1);
            let terms = terms.get_mut(*row).ok_or(BfvError::Length { expected, got })?;
            terms.ciphertexts.push(ciphertext);
            terms.factors.push(factor);
        }
        for limb in 0..basis.len() {
            for start in (0..basis.degree()).step_by(BLOCK) {
                let block = start..basis.degree().min(start + BLOCK);
                for (row, terms) in self.rows.iter_mut().zip(&terms) {
                    add_block(row, &basis.moduli()[limb], terms, limb, &block);
                }
            }
        }
        for (row, terms) in self.rows.iter_mut().zip(&terms) {
            for (ciphertext, factor) in terms.ciphertexts.iter().zip(&terms.factors) {
                row.noise = row.noise.plus(ciphertext.noise.multiplied_by_norm(factor.norm));
            }
        }
        Ok(())
    }

    /// The sums, divided by the special modulus.
    #[must_use]
    pub fn finish(self) -> Vec<Ciphertext> {
        let Self { parameters, rows } = self;
        rows.into_iter().map(|row| row.reduce(&parameters)).collect()
    }

    /// The sums as they are.
    #[must_use]
    pub fn into_sums(self) -> Vec<ExtendedCiphertext> {
        self.rows
    }
}

/// The products of one sum.
#[derive(Default)]
struct Terms<'a> {
    ciphertexts: Vec<&'a ExtendedCiphertext>,
    factors: Vec<&'a Multiplier>,
}

/// Values of a block: those of some tens of ciphertexts fit the second-level cache.
const BLOCK: usize = 1024;

fn add_block(
    row: &mut ExtendedCiphertext,
    modulus: &Modulus,
    terms: &Terms<'_>,
    limb: usize,
    block: &Range<usize>,
) {
    if terms.factors.is_empty() {
        return;
    }
    let mut sum = [0; BLOCK];
    let sum = &mut sum[..block.len()];
    let weights: Vec<_> = terms.factors.iter().map(|factor| &factor.poly.limb(limb)[block.clone()]).collect();
    let mut add = |parts: Vec<&[u64]>, total: &mut Poly<Eval>| {
        modulus.dot(sum, &parts, &weights);
        modulus.add_assign_slice(&mut total.limb_mut(limb)[block.clone()], sum);
    };
    let ciphertexts = || terms.ciphertexts.iter();
    add(ciphertexts().map(|ciphertext| &ciphertext.c0.limb(limb)[block.clone()]).collect(), &mut row.c0);
    add(ciphertexts().map(|ciphertext| &ciphertext.c1.limb(limb)[block.clone()]).collect(), &mut row.c1);
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
