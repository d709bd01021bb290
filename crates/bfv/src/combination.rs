//! Sums of products of ciphertexts by plaintexts, with one reduction at their end.

use lanner_ring::{Accumulator, Eval, Poly, RnsBasis};

use crate::{BfvError, Ciphertext, ExtendedCiphertext, Multiplier, NoiseBound, Parameters};

/// The sum of ciphertexts multiplied by plaintexts.
pub struct LinearCombination {
    parameters: Parameters,
    sums: Sums,
}

impl LinearCombination {
    /// An empty sum of fresh or rotated ciphertexts, which have all limbs.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        Self { parameters: parameters.clone(), sums: Sums::new(&parameters.basis(parameters.limbs())) }
    }

    /// Adds `ciphertext * factor`.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] if either belongs to other parameters, or the ciphertext has fewer limbs.
    pub fn add(&mut self, ciphertext: &Ciphertext, factor: &Multiplier) -> Result<(), BfvError> {
        let Ciphertext { c0, c1, noise } = ciphertext;
        self.sums.add([c0, c1], factor, noise.multiplied(&self.parameters, factor.t))
    }

    /// The sum; an encryption of zero without noise if nothing was added.
    #[must_use]
    pub fn finish(self) -> Ciphertext {
        let ([c0, c1], noise) = self.sums.finish();
        Ciphertext { c0, c1, noise }
    }
}

/// The sum of rotated ciphertexts multiplied by plaintexts, over the limbs and the special modulus: the division by that
/// modulus is done once, for the sum ("double hoisting", [BMTPH20], <https://eprint.iacr.org/2020/1203>).
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
        self.sums.add([c0, c1], factor, noise.multiplied(&self.parameters, factor.t))
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
