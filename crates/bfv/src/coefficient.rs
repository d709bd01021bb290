//! Products of coefficient encodings by fixed polynomials, half by half: no keys, no rotations.

use lanner_ring::{Buffer, Coeff, Eval, Extent, Poly, RnsBasis, Words};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::encode::{Encoded, check_length};
use crate::halves::C0;
use crate::{BfvError, Ciphertext, NoiseBound, Parameters};

/// A polynomial with integer coefficients, ready to multiply ciphertexts.
///
/// It usually holds weights: it is erased when dropped and has neither `Debug` nor `==`.
pub struct CoefficientFactor {
    basis: RnsBasis,
    /// Its values modulo each limb.
    values: Words,
}

impl CoefficientFactor {
    /// Transforms signed coefficients, one for each power of `X` below `N`.
    ///
    /// # Errors
    /// [`BfvError::Length`] unless there are `N`.
    pub fn new(parameters: &Parameters, coefficients: &[i32]) -> Result<Self, BfvError> {
        let (expected, got) = (parameters.degree(), coefficients.len());
        if got != expected {
            return Err(BfvError::Length { expected, got });
        }
        let basis = parameters.basis(parameters.limbs());
        let values = Poly::from_signed(&basis, coefficients)?.into_eval().into_words().into();
        Ok(Self { basis, values })
    }

    /// Transforms the centred representatives of coefficients modulo `2^bits`, one for each power of `X` below `N`; constant time.
    ///
    /// # Errors
    /// [`BfvError::Length`] unless there are `N`; [`BfvError::Mismatch`] unless `1 <= bits <= 63`.
    pub fn of_residues(parameters: &Parameters, coefficients: &[u64], bits: u32) -> Result<Self, BfvError> {
        let (expected, got) = (parameters.degree(), coefficients.len());
        if got != expected {
            return Err(BfvError::Length { expected, got });
        }
        if !(1..=63).contains(&bits) {
            return Err(BfvError::Mismatch { what: "bits of a factor's coefficients" });
        }
        // (x + 2^(b-1) mod 2^b) - 2^(b-1) is the centred representative.
        let half = 1_u64 << (bits - 1);
        let shifted = coefficients.iter().map(|value| value.wrapping_add(half) & (2 * half - 1));
        let shifted: Zeroizing<Vec<u64>> = Zeroizing::new(shifted.collect());
        let basis = parameters.basis(parameters.limbs());
        let mut poly = Poly::<Coeff>::zero(&basis);
        for (limb, q) in poly.limbs_mut().zip(parameters.moduli()) {
            q.reduce_slice(limb, &shifted);
            let offset = q.reduce(half);
            for value in limb {
                *value = q.sub(*value, offset);
            }
        }
        Ok(Self { basis, values: poly.into_eval().into_words().into() })
    }

    /// Of a polynomial over all limbs.
    pub(crate) fn of_poly(poly: Poly<Coeff>) -> Self {
        let basis = poly.basis().clone();
        Self { basis, values: poly.into_eval().into_words().into() }
    }

    /// Bytes in memory of a factor.
    #[must_use]
    pub fn bytes(parameters: &Parameters) -> usize {
        8 * parameters.degree() * parameters.limbs()
    }

    fn limb(&self, limb: usize) -> &[u64] {
        let n = self.basis.degree();
        &self.values[limb * n..(limb + 1) * n]
    }
}

impl Encoded for CoefficientFactor {
    type Form = Parameters;

    fn length(parameters: &Parameters) -> usize {
        parameters.degree() * parameters.limbs()
    }

    fn words(&self) -> Vec<&[u64]> {
        vec![&self.values]
    }

    fn over(parameters: &Parameters, words: Extent) -> Result<Self, BfvError> {
        check_length(&words, Self::length(parameters))?;
        Ok(Self { basis: parameters.basis(parameters.limbs()), values: words.into() })
    }
}

/// The words erase themselves.
impl ZeroizeOnDrop for CoefficientFactor {}

impl C0 {
    /// `sum_i inputs[i] factors[i]`, where `norm` is a public bound on the 2-norm of all factors' coefficients together.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] unless there is an input for each factor, of the same parameters.
    pub fn inner_product(
        inputs: &[Self],
        factors: &[CoefficientFactor],
        norm: f64,
    ) -> Result<Self, BfvError> {
        Self::inner_product_of(&refs(inputs), &refs(factors), norm)
    }

    /// As [`Self::inner_product`], of inputs and factors that lie anywhere.
    ///
    /// # Errors
    /// As [`Self::inner_product`].
    pub fn inner_product_of(
        inputs: &[&Self],
        factors: &[&CoefficientFactor],
        norm: f64,
    ) -> Result<Self, BfvError> {
        let polys: Vec<&Poly<Eval>> = inputs.iter().map(|input| &input.c0).collect();
        let largest = inputs.iter().map(|input| input.noise).fold(NoiseBound::NONE, larger);
        Ok(Self { c0: inner_product(&polys, factors)?, noise: largest.multiplied_by_norm(norm) })
    }
}

impl Ciphertext {
    /// As [`C0::inner_product`], of ciphertexts whose first halves are zero: what can be done before they come.
    ///
    /// # Errors
    /// As [`C0::inner_product`].
    pub fn inner_product_ahead(
        inputs: &[Self],
        factors: &[CoefficientFactor],
        norm: f64,
    ) -> Result<Self, BfvError> {
        Self::inner_product_ahead_of(&refs(inputs), &refs(factors), norm)
    }

    /// As [`Self::inner_product_ahead`], of inputs and factors that lie anywhere.
    ///
    /// # Errors
    /// As [`C0::inner_product`].
    pub fn inner_product_ahead_of(
        inputs: &[&Self],
        factors: &[&CoefficientFactor],
        norm: f64,
    ) -> Result<Self, BfvError> {
        let polys: Vec<&Poly<Eval>> = inputs.iter().map(|input| &input.c1).collect();
        let largest = inputs.iter().map(|input| input.noise).fold(NoiseBound::NONE, larger);
        let c1 = inner_product(&polys, factors)?;
        Ok(Self { c0: Poly::zero(c1.basis()), c1, noise: largest.multiplied_by_norm(norm) })
    }
}

fn refs<T>(all: &[T]) -> Vec<&T> {
    all.iter().collect()
}

fn larger(a: NoiseBound, b: NoiseBound) -> NoiseBound {
    if a < b { b } else { a }
}

fn inner_product(inputs: &[&Poly<Eval>], factors: &[&CoefficientFactor]) -> Result<Poly<Eval>, BfvError> {
    let Some(first) = factors.first().filter(|_| inputs.len() == factors.len()) else {
        return Err(BfvError::Mismatch { what: "the numbers of ciphertexts and factors" });
    };
    let basis = &first.basis;
    let (inputs_fit, factors_fit) = (
        inputs.iter().all(|input| input.basis().same(basis)),
        factors.iter().all(|factor| factor.basis.same(basis)),
    );
    if !inputs_fit || !factors_fit {
        return Err(BfvError::Mismatch { what: "ciphertext moduli" });
    }
    let mut sum = Poly::zero(basis);
    for (limb, (modulus, out)) in basis.moduli().iter().zip(sum.limbs_mut()).enumerate() {
        let a: Vec<&[u64]> = inputs.iter().map(|input| input.limb(limb)).collect();
        let b: Vec<&[u64]> = factors.iter().map(|factor| factor.limb(limb)).collect();
        let mut products = Buffer::zeroed(out.len());
        modulus.dot(&mut products, &a, &b);
        out.copy_from_slice(&products);
    }
    Ok(sum)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ParameterSet;

    #[test]
    fn residues_are_the_centred_integers_of_least_magnitude() {
        for set in [ParameterSet::C1, ParameterSet::C2, ParameterSet::A2] {
            let parameters = set.parameters().unwrap();
            let degree = parameters.degree();
            for bits in [1, 2, 16, 31] {
                let half = 1_i64 << (bits - 1);
                let edges = [-half, -half + 1, -1, 0, 1, half - 1].map(|value| value.clamp(-half, half - 1));
                let signed: Vec<i64> = edges.into_iter().cycle().take(degree).collect();
                let expected: Vec<i32> = signed.iter().map(|value| *value as i32).collect();
                let residues: Vec<u64> =
                    signed.iter().map(|value| *value as u64 & ((1 << bits) - 1)).collect();
                let expected = CoefficientFactor::new(&parameters, &expected).unwrap();
                let factor = CoefficientFactor::of_residues(&parameters, &residues, bits).unwrap();
                assert!(factor.words() == expected.words(), "{set:?}, {bits} bits");
            }
            // Larger ones than signed words of 32 bits: 2^62 modulo 2^63 is its own negative.
            let top = CoefficientFactor::of_residues(&parameters, &vec![1 << 62; degree], 63).unwrap();
            let mut constant = Poly::<Coeff>::zero(&parameters.basis(parameters.limbs()));
            for (limb, modulus) in constant.limbs_mut().zip(parameters.moduli()) {
                limb.fill(modulus.sub(0, modulus.reduce(1 << 62)));
            }
            assert!(*top.words()[0] == constant.into_eval().into_words()[..]);
        }
    }

    #[test]
    fn factors_of_another_length_or_of_too_many_bits_are_refused() {
        let parameters = ParameterSet::C1.parameters().unwrap();
        let of =
            |count: usize, bits| CoefficientFactor::of_residues(&parameters, &vec![0; count], bits).map(drop);
        for count in [0, 2047, 2049] {
            assert_eq!(of(count, 20), Err(BfvError::Length { expected: 2048, got: count }));
        }
        for bits in [0, 64, u32::MAX] {
            assert!(matches!(of(2048, bits), Err(BfvError::Mismatch { .. })));
        }
        assert_eq!(of(2048, 63), Ok(()));
    }
}
