//! Sums of products of ciphertexts by plaintexts, with one reduction at their end.

use std::ops::Range;

use lanner_primitives::parallel;
use lanner_ring::{Accumulator, Eval, Modulus, Poly, RnsBasis};

use crate::encode::Values;
use crate::{
    BfvError, Ciphertext, ExtendedCiphertext, Multiplier, NoiseBound, Parameters, PeriodicMultiplier,
};

/// The sum of ciphertexts multiplied by plaintexts.
pub struct LinearCombination {
    sums: Sums,
}

impl LinearCombination {
    /// An empty sum of ciphertexts of all limbs.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        Self { sums: Sums::new(&parameters.basis(parameters.limbs())) }
    }

    /// An empty sum of ciphertexts of a number of limbs.
    ///
    /// # Errors
    /// [`BfvError::Limbs`] unless the parameters have so many.
    pub fn at(parameters: &Parameters, limbs: usize) -> Result<Self, BfvError> {
        parameters.check_limbs(limbs)?;
        Ok(Self { sums: Sums::new(&parameters.basis(limbs)) })
    }

    /// Adds `ciphertext * factor`.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] if either belongs to other parameters, or the ciphertext has another number of limbs.
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

    /// The sum of `ciphertexts[k] * factors[k]` at once, which takes less memory traffic: the sums stay in registers. It has the limbs of
    /// its terms, and all if there are none.
    ///
    /// # Errors
    /// [`BfvError::Length`] unless there is a factor for each ciphertext; as [`Self::add`].
    pub fn of(
        parameters: &Parameters,
        ciphertexts: &[Ciphertext],
        factors: &[Multiplier],
    ) -> Result<Ciphertext, BfvError> {
        let limbs = ciphertexts.first().map_or(parameters.limbs(), Ciphertext::limbs);
        parameters.check_limbs(limbs)?;
        let basis = parameters.basis(limbs);
        if ciphertexts.iter().any(|ciphertext| !ciphertext.c0.basis().same(&basis)) {
            return Err(BfvError::Mismatch { what: "the bases of ciphertext and sum" });
        }
        let products = Product::dense(ciphertexts.len(), 1, factors)?;
        let terms = Terms::by_row(ciphertexts, &products, 1, &basis)?;
        let noise = ciphertexts.iter().zip(factors).fold(NoiseBound::NONE, |sum, (ciphertext, factor)| {
            sum.plus(ciphertext.noise.multiplied_by_norm(factor.norm))
        });
        let mut sum = Ciphertext { c0: Poly::zero(&basis), c1: Poly::zero(&basis), noise };
        add_blocks(&basis, std::slice::from_mut(&mut sum), &terms, |sum, terms, values, limb, block| {
            let modulus = &basis.moduli()[limb];
            terms.add_block(|ciphertext| &ciphertext.c0, values, &mut sum.c0, modulus, limb, block);
            terms.add_block(|ciphertext| &ciphertext.c1, values, &mut sum.c1, modulus, limb, block);
        });
        Ok(sum)
    }
}

/// The sum of rotated ciphertexts multiplied by plaintexts, over the limbs and the special modulus: the division by that
/// modulus is done once, for the sum ("double hoisting", [BMTPH20](https://eprint.iacr.org/2020/1203)).
pub struct ExtendedCombination {
    parameters: Parameters,
    sums: Sums,
}

impl ExtendedCombination {
    /// An empty sum of ciphertexts of all limbs.
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`].
    pub fn new(parameters: &Parameters) -> Result<Self, BfvError> {
        Self::at(parameters, parameters.limbs())
    }

    /// An empty sum of ciphertexts of a number of limbs.
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`]; [`BfvError::Limbs`] unless the parameters have so many.
    pub fn at(parameters: &Parameters, limbs: usize) -> Result<Self, BfvError> {
        Ok(Self { parameters: parameters.clone(), sums: Sums::new(parameters.key_switching(limbs)?) })
    }

    /// Adds `ciphertext * factor`.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] if either belongs to other parameters, or the ciphertext has another number of limbs.
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
    basis: RnsBasis,
    rows: Vec<ExtendedCiphertext>,
}

/// One product, and the sum it goes to.
#[derive(Clone, Copy)]
pub struct Product<'f> {
    /// Index of the ciphertext.
    pub operand: usize,
    /// Index of the sum.
    pub row: usize,
    /// The factor.
    pub factor: Factor<'f>,
}

/// A plaintext to multiply by.
#[derive(Clone, Copy)]
pub enum Factor<'f> {
    /// Of any slots.
    Slots(&'f Multiplier),
    /// Of slots that repeat. All factors of a sum do then, with the same period.
    Periodic(&'f PeriodicMultiplier),
}

impl<'f> From<&'f Multiplier> for Factor<'f> {
    fn from(factor: &'f Multiplier) -> Self {
        Self::Slots(factor)
    }
}

impl<'f> Factor<'f> {
    pub(crate) fn norm(self) -> f64 {
        match self {
            Self::Slots(factor) => factor.norm,
            Self::Periodic(factor) => factor.norm(),
        }
    }

    /// Values of a transform in a row that are equal.
    fn run(self) -> usize {
        match self {
            Self::Slots(_) => 1,
            Self::Periodic(factor) => factor.run(),
        }
    }

    fn check_covers(self, basis: &RnsBasis) -> Result<(), BfvError> {
        match self {
            Self::Slots(factor) => factor.check_covers(basis),
            Self::Periodic(factor) => factor.check_covers(basis),
        }
    }

    fn is_prepared(self, basis: &RnsBasis, limb: usize) -> bool {
        match self {
            Self::Slots(factor) => factor.is_prepared(basis, limb),
            Self::Periodic(_) => true,
        }
    }

    fn values(self, basis: &RnsBasis, limb: usize) -> Values<'f> {
        match self {
            Self::Slots(factor) => factor.values(basis, limb),
            Self::Periodic(factor) => Values::Prepared(factor.values(basis, limb)),
        }
    }
}

impl<'f> Product<'f> {
    /// Every operand times a factor of each row: `factors[k * rows + j]` is that of operand `k` and row `j`.
    ///
    /// # Errors
    /// [`BfvError::Length`] unless there is a factor for each operand and row.
    pub(crate) fn dense(
        operands: usize,
        rows: usize,
        factors: &'f [Multiplier],
    ) -> Result<Vec<Self>, BfvError> {
        let (expected, got) = (operands * rows, factors.len());
        if expected != got {
            return Err(BfvError::Length { expected, got });
        }
        let product = |(i, factor)| Self { operand: i / rows, row: i % rows, factor: Factor::Slots(factor) };
        Ok(factors.iter().enumerate().map(product).collect())
    }
}

/// The products of one sum.
pub(crate) struct Terms<'a, T> {
    pub(crate) operands: Vec<&'a T>,
    pub(crate) factors: Vec<Factor<'a>>,
    /// The [run](Factor::run) of all factors.
    run: usize,
}

impl<'a, T> Terms<'a, T> {
    /// The products of each of `rows` sums.
    ///
    /// # Errors
    /// [`BfvError::Length`] if an index is out of range; [`BfvError::Mismatch`] if a factor does not cover `basis`, or factors of one sum
    /// repeat differently.
    pub(crate) fn by_row(
        operands: &'a [T],
        products: &[Product<'a>],
        rows: usize,
        basis: &RnsBasis,
    ) -> Result<Vec<Self>, BfvError> {
        let empty = |_| Self { operands: Vec::new(), factors: Vec::new(), run: 1 };
        let mut terms: Vec<Self> = (0..rows).map(empty).collect();
        for Product { operand, row, factor } in products {
            factor.check_covers(basis)?;
            let (expected, got) = (operands.len(), operand + 1);
            let operand = operands.get(*operand).ok_or(BfvError::Length { expected, got })?;
            let (expected, got) = (rows, row + 1);
            let terms = terms.get_mut(*row).ok_or(BfvError::Length { expected, got })?;
            if terms.factors.is_empty() {
                terms.run = factor.run();
            } else if terms.run != factor.run() {
                return Err(BfvError::Mismatch { what: "the periods of factors" });
            }
            terms.operands.push(operand);
            terms.factors.push(*factor);
        }
        Ok(terms)
    }

    /// Adds the sum of products with `factors`, over a block of one limb, to `total`.
    pub(crate) fn add_block(
        &self,
        part: impl Fn(&'a T) -> &'a Poly<Eval>,
        factors: &[Values<'_>],
        total: &mut Poly<Eval>,
        modulus: &Modulus,
        limb: usize,
        block: &Range<usize>,
    ) {
        let operands: Vec<_> =
            self.operands.iter().map(|operand| &part(operand).limb(limb)[block.clone()]).collect();
        let runs = block.start / self.run..block.end / self.run;
        let weights: Vec<_> = factors.iter().map(|factor| &factor[runs.clone()]).collect();
        let total = &mut total.limb_mut(limb)[block.clone()];
        if self.run == 1 {
            modulus.add_dot(total, &operands, &weights);
        } else {
            modulus.add_dot_repeated(total, &operands, &weights, self.run);
        }
    }

    /// The factors' values at one limb.
    fn values(&self, basis: &RnsBasis, limb: usize) -> Vec<Values<'a>> {
        self.factors.iter().map(|factor| factor.values(basis, limb)).collect()
    }
}

/// Adds the products of `terms` to their rows, one limb after another, with `add`: the row, its terms, their values, the limb, and a
/// block of slots.
///
/// Rows whose factors are at hand pass together, block by block, so that a block of all operands stays in the cache, as many on each
/// core. Those whose factors are lifted pass alone, so that few lifted factors are in memory.
pub(crate) fn add_blocks<T: Sync, R: Send>(
    basis: &RnsBasis,
    rows: &mut [R],
    terms: &[Terms<'_, T>],
    add: impl Fn(&mut R, &Terms<'_, T>, &[Values<'_>], usize, &Range<usize>) + Send + Sync,
) {
    for limb in 0..basis.len() {
        let prepared =
            terms.iter().flat_map(|terms| &terms.factors).all(|factor| factor.is_prepared(basis, limb));
        let together = if prepared { rows.len().div_ceil(parallel::threads()).max(1) } else { 1 };
        parallel::for_each(rows.chunks_mut(together).zip(terms.chunks(together)), |(rows, terms)| {
            let values: Vec<_> = terms.iter().map(|terms| terms.values(basis, limb)).collect();
            for block in blocks(basis.degree()) {
                for ((row, terms), values) in rows.iter_mut().zip(terms).zip(&values) {
                    add(row, terms, values, limb, &block);
                }
            }
        });
    }
}

/// The blocks of a polynomial: a block of some tens of operands fits the second-level cache.
pub(crate) fn blocks(degree: usize) -> impl Iterator<Item = Range<usize>> {
    (0..degree).step_by(BLOCK).map(move |start| start..degree.min(start + BLOCK))
}

/// Values of a block.
pub(crate) const BLOCK: usize = 1024;

impl ExtendedCombinations {
    /// Empty sums of ciphertexts of all limbs.
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`].
    pub fn new(parameters: &Parameters, rows: usize) -> Result<Self, BfvError> {
        Self::at(parameters, rows, parameters.limbs())
    }

    /// Empty sums of ciphertexts of a number of limbs.
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`]; [`BfvError::Limbs`] unless the parameters have so many.
    pub fn at(parameters: &Parameters, rows: usize, limbs: usize) -> Result<Self, BfvError> {
        let basis = parameters.key_switching(limbs)?;
        let row =
            |_| ExtendedCiphertext { c0: Poly::zero(basis), c1: Poly::zero(basis), noise: NoiseBound::NONE };
        Ok(Self { parameters: parameters.clone(), basis: basis.clone(), rows: (0..rows).map(row).collect() })
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
        self.add_products(ciphertexts, &Product::dense(ciphertexts.len(), self.rows.len(), factors)?)
    }

    /// Adds products of some of the ciphertexts to some of the sums.
    ///
    /// # Errors
    /// [`BfvError::Length`] if an index is out of range; [`BfvError::Mismatch`] if an operand belongs to other parameters or has another
    /// number of limbs.
    pub fn add_products(
        &mut self,
        ciphertexts: &[ExtendedCiphertext],
        products: &[Product<'_>],
    ) -> Result<(), BfvError> {
        let basis = &self.basis;
        if ciphertexts.iter().any(|ciphertext| !ciphertext.c0.basis().same(basis)) {
            return Err(BfvError::Mismatch { what: "the bases of ciphertext and sum" });
        }
        let terms = Terms::by_row(ciphertexts, products, self.rows.len(), basis)?;
        add_blocks(basis, &mut self.rows, &terms, |row, terms, values, limb, block| {
            let modulus = &basis.moduli()[limb];
            terms.add_block(|ciphertext| &ciphertext.c0, values, &mut row.c0, modulus, limb, block);
            terms.add_block(|ciphertext| &ciphertext.c1, values, &mut row.c1, modulus, limb, block);
        });
        for (row, terms) in self.rows.iter_mut().zip(&terms) {
            for (ciphertext, factor) in terms.operands.iter().zip(&terms.factors) {
                row.noise = row.noise.plus(ciphertext.noise.multiplied_by_norm(factor.norm()));
            }
        }
        Ok(())
    }

    /// The sums, divided by the special modulus.
    #[must_use]
    pub fn finish(self) -> Vec<Ciphertext> {
        let Self { parameters, rows, .. } = self;
        rows.into_iter().map(|row| row.reduce(&parameters)).collect()
    }

    /// The sums as they are.
    #[must_use]
    pub fn into_sums(self) -> Vec<ExtendedCiphertext> {
        self.rows
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
        for limb in 0..self.basis.len() {
            let weights = factor.values(&self.basis, limb);
            for (sums, part) in self.accumulators.iter_mut().zip(parts) {
                sums[limb].mul_add(part.limb(limb), &weights);
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
