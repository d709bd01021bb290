//! Sums of products of ciphertexts by plaintexts, with one reduction at their end.

use std::ops::Range;

use lanner_primitives::parallel;
use lanner_ring::{Accumulator, Buffer, Eval, Modulus, Poly, RnsBasis};

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
        self.sums.add([c0, c1], factor, noise.multiplied_by_norm(factor.norm()))
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
        let terms = Terms::by_row(ciphertexts.len(), &products, 1, &basis)?;
        let noise = terms[0].noise(|k| ciphertexts[k].noise);
        let mut sum = Ciphertext { c0: Poly::zero(&basis), c1: Poly::zero(&basis), noise };
        for limb in 0..basis.len() {
            let operands: Vec<_> =
                ciphertexts.iter().map(|sum| [sum.c0.limb(limb), sum.c1.limb(limb)]).collect();
            let sum = [sum.c0.limb_mut(limb), sum.c1.limb_mut(limb)];
            add_limb(&basis, limb, vec![sum], &operands, &terms);
        }
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
        self.sums.add([c0, c1], factor, noise.multiplied_by_norm(factor.norm()))
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
            Self::Slots(factor) => factor.norm(),
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
pub(crate) struct Terms<'a> {
    /// The operand's number of each.
    operands: Vec<usize>,
    factors: Vec<Factor<'a>>,
    /// The [run](Factor::run) of all factors.
    run: usize,
}

impl<'a> Terms<'a> {
    /// The products of each of `rows` sums of so many operands.
    ///
    /// # Errors
    /// [`BfvError::Length`] if an index is out of range; [`BfvError::Mismatch`] if a factor does not cover `basis`, or factors of one sum
    /// repeat differently.
    pub(crate) fn by_row(
        operands: usize,
        products: &[Product<'a>],
        rows: usize,
        basis: &RnsBasis,
    ) -> Result<Vec<Self>, BfvError> {
        let empty = |_| Self { operands: Vec::new(), factors: Vec::new(), run: 1 };
        let mut terms: Vec<Self> = (0..rows).map(empty).collect();
        for Product { operand, row, factor } in products {
            factor.check_covers(basis)?;
            if *operand >= operands {
                return Err(BfvError::Length { expected: operands, got: operand + 1 });
            }
            let (expected, got) = (rows, row + 1);
            let terms = terms.get_mut(*row).ok_or(BfvError::Length { expected, got })?;
            if terms.factors.is_empty() {
                terms.run = factor.run();
            } else if terms.run != factor.run() {
                return Err(BfvError::Mismatch { what: "the periods of factors" });
            }
            terms.operands.push(*operand);
            terms.factors.push(*factor);
        }
        Ok(terms)
    }

    /// The noise of the sum of operands with this noise.
    pub(crate) fn noise(&self, of_operand: impl Fn(usize) -> NoiseBound) -> NoiseBound {
        self.operands.iter().zip(&self.factors).fold(NoiseBound::NONE, |sum, (operand, factor)| {
            sum.plus(of_operand(*operand).multiplied_by_norm(factor.norm()))
        })
    }

    /// Adds the sum of products, over a block of one limb, to `total`; of operands what is in the block.
    fn add_block(
        &self,
        operands: &[&[u64]],
        factors: &FactorValues<'_>,
        total: &mut [u64],
        modulus: &Modulus,
        block: &Range<usize>,
    ) {
        let operands: Vec<_> = self.operands.iter().map(|operand| operands[*operand]).collect();
        match factors {
            FactorValues::Each(factors) => {
                let weights: Vec<_> = factors.iter().map(|factor| &factor[block.clone()]).collect();
                modulus.add_dot(total, &operands, &weights);
            }
            FactorValues::Repeated(numbers) => {
                let number = |place: usize| place / self.run * operands.len();
                let numbers = &numbers[number(block.start)..number(block.end)];
                modulus.add_dot_repeated(total, &operands, numbers, self.run);
            }
        }
    }

    /// The factors' values at one limb.
    fn values(&self, basis: &RnsBasis, limb: usize) -> FactorValues<'a> {
        let each: Vec<_> = self.factors.iter().map(|factor| factor.values(basis, limb)).collect();
        if self.run == 1 {
            return FactorValues::Each(each);
        }
        let runs = basis.degree() / self.run;
        let mut numbers = Buffer::zeroed(runs * each.len());
        // A line of every factor at a time.
        for (first, numbers) in (0..runs).step_by(8).zip(numbers.chunks_mut(8 * each.len())) {
            for (k, values) in each.iter().enumerate() {
                let of_run = numbers.iter_mut().skip(k).step_by(each.len());
                of_run.zip(&values[first..]).for_each(|(number, value)| *number = *value);
            }
        }
        FactorValues::Repeated(numbers)
    }
}

/// The values of a sum's factors at one limb.
enum FactorValues<'a> {
    /// Of each factor.
    Each(Vec<Values<'a>>),
    /// Run by run a value of every factor.
    Repeated(Buffer),
}

/// Adds the products of `terms`, at one limb, to their rows. A row and an operand have `H` polynomials, which are those of the limb.
///
/// Rows whose factors are at hand pass together, block by block, so that a block of all operands stays in the cache, as many on each
/// core. Those whose factors are lifted pass alone, so that few lifted factors are in memory.
pub(crate) fn add_limb<const H: usize>(
    basis: &RnsBasis,
    limb: usize,
    mut rows: Vec<[&mut [u64]; H]>,
    operands: &[[&[u64]; H]],
    terms: &[Terms<'_>],
) {
    let modulus = &basis.moduli()[limb];
    let prepared =
        terms.iter().flat_map(|terms| &terms.factors).all(|factor| factor.is_prepared(basis, limb));
    let together = if prepared { rows.len().div_ceil(parallel::threads()).max(1) } else { 1 };
    let least = terms.iter().map(|terms| terms.run).max().unwrap_or(1);
    let block = (1 << (CACHED / operands.len().max(1)).max(1).ilog2()).clamp(least.max(64), BLOCK);
    parallel::for_each(rows.chunks_mut(together).zip(terms.chunks(together)), |(rows, terms)| {
        let values: Vec<_> = terms.iter().map(|terms| terms.values(basis, limb)).collect();
        let is_copied = rows.len() >= MANY;
        let mut copies = Buffer::zeroed(if is_copied { operands.len() * block } else { 0 });
        for (block, half) in
            blocks_of(block, basis.degree()).flat_map(|block| (0..H).map(move |half| (block.clone(), half)))
        {
            let blocks = operands.iter().map(|operand| &operand[half][block.clone()]);
            let blocks: Vec<&[u64]> = if is_copied {
                copies.chunks_mut(block.len()).zip(blocks).for_each(|(copy, own)| copy.copy_from_slice(own));
                copies.chunks(block.len()).collect()
            } else {
                blocks.collect()
            };
            for ((row, terms), values) in rows.iter_mut().zip(terms).zip(&values) {
                terms.add_block(&blocks, values, &mut row[half][block.clone()], modulus, &block);
            }
        }
    });
}

/// The blocks of a polynomial of which some tens are in work: they fit the second-level cache.
pub(crate) fn blocks(degree: usize) -> impl Iterator<Item = Range<usize>> {
    blocks_of(BLOCK, degree)
}

fn blocks_of(block: usize, degree: usize) -> impl Iterator<Item = Range<usize>> {
    (0..degree).step_by(block).map(move |start| start..degree.min(start + block))
}

/// Values of a block.
pub(crate) const BLOCK: usize = 1024;

/// Values of all operands' blocks, which take half a second-level cache of 512 KiB.
const CACHED: usize = 1 << 15;

/// Rows for which operands' blocks are copied to stand side by side: where each is, at the same place of a page, they are in each other's way in the cache.
const MANY: usize = 4;

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
        let terms = Terms::by_row(ciphertexts.len(), products, self.rows.len(), basis)?;
        for limb in 0..basis.len() {
            let operands: Vec<_> =
                ciphertexts.iter().map(|sum| [sum.c0.limb(limb), sum.c1.limb(limb)]).collect();
            let rows = self.rows.iter_mut().map(|row| row.limb_mut(limb)).collect();
            add_limb(basis, limb, rows, &operands, &terms);
        }
        for (row, terms) in self.rows.iter_mut().zip(&terms) {
            row.noise = row.noise.plus(terms.noise(|k| ciphertexts[k].noise));
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
