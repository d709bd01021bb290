//! Products of coefficient encodings by fixed polynomials, half by half: no keys, no rotations.

use lanner_ring::{Buffer, Eval, Poly};
use zeroize::ZeroizeOnDrop;

use crate::halves::C0;
use crate::{BfvError, Ciphertext, NoiseBound, Parameters};

/// A polynomial with integer coefficients, ready to multiply ciphertexts.
///
/// It usually holds weights: it is erased when dropped and has neither `Debug` nor `==`.
#[derive(ZeroizeOnDrop)]
pub struct CoefficientFactor {
    poly: Poly<Eval>,
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
        Ok(Self { poly: Poly::from_signed(&parameters.basis(parameters.limbs()), coefficients)?.into_eval() })
    }

    /// Bytes in memory of a factor.
    #[must_use]
    pub fn bytes(parameters: &Parameters) -> usize {
        8 * parameters.degree() * parameters.limbs()
    }
}

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
        let polys: Vec<&Poly<Eval>> = inputs.iter().map(|input| &input.c1).collect();
        let largest = inputs.iter().map(|input| input.noise).fold(NoiseBound::NONE, larger);
        let c1 = inner_product(&polys, factors)?;
        Ok(Self { c0: Poly::zero(c1.basis()), c1, noise: largest.multiplied_by_norm(norm) })
    }
}

fn larger(a: NoiseBound, b: NoiseBound) -> NoiseBound {
    if a < b { b } else { a }
}

fn inner_product(inputs: &[&Poly<Eval>], factors: &[CoefficientFactor]) -> Result<Poly<Eval>, BfvError> {
    let Some(first) = factors.first().filter(|_| inputs.len() == factors.len()) else {
        return Err(BfvError::Mismatch { what: "the numbers of ciphertexts and factors" });
    };
    let basis = first.poly.basis();
    let same = |poly: &&Poly<Eval>| poly.basis().same(basis);
    if !inputs.iter().all(same) || !factors.iter().all(|factor| same(&&factor.poly)) {
        return Err(BfvError::Mismatch { what: "ciphertext moduli" });
    }
    let mut sum = Poly::zero(basis);
    for (limb, (modulus, out)) in basis.moduli().iter().zip(sum.limbs_mut()).enumerate() {
        let a: Vec<&[u64]> = inputs.iter().map(|input| input.limb(limb)).collect();
        let b: Vec<&[u64]> = factors.iter().map(|factor| factor.poly.limb(limb)).collect();
        let mut products = Buffer::zeroed(out.len());
        modulus.dot(&mut products, &a, &b);
        out.copy_from_slice(&products);
    }
    Ok(sum)
}
