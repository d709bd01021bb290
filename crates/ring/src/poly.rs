//! Ring elements in residue form, with the domain in the type.

use std::marker::PhantomData;

use zeroize::ZeroizeOnDrop;

use crate::buffer::Buffer;
use crate::{EvalPermutation, GaloisElement, RingError, RnsBasis};

/// Marks coefficients of `1, X, .., X^(n-1)`.
#[derive(Clone, Copy, Debug)]
pub struct Coeff;

/// Marks values at the roots of `X^n + 1`, in the order of [`crate::Ntt`].
#[derive(Clone, Copy, Debug)]
pub struct Eval;

/// The two representations of a ring element.
pub trait Domain: sealed::Sealed {}
impl Domain for Coeff {}
impl Domain for Eval {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Coeff {}
    impl Sealed for super::Eval {}
}

/// An element of `Z_q[X]/(X^n + 1)` over an [`RnsBasis`].
///
/// Limb-major: limb `i` holds `n` residues in `[0, q_i)`, and limbs follow one another. It may be secret, so
/// there is neither `Debug` nor `==`, and it is erased when dropped.
///
/// Operations on two polynomials panic if their bases differ: that is a mistake of the program, never of data.
#[derive(Clone)]
pub struct Poly<D: Domain> {
    basis: RnsBasis,
    words: Buffer,
    domain: PhantomData<D>,
}

impl<D: Domain> Poly<D> {
    /// The zero polynomial.
    #[must_use]
    pub fn zero(basis: &RnsBasis) -> Self {
        let words = Buffer::zeroed(basis.len() * basis.degree());
        Self { basis: basis.clone(), words, domain: PhantomData }
    }

    /// Takes limb-major residues.
    ///
    /// # Errors
    /// [`RingError::Length`] unless there are `limbs * n` of them, [`RingError::NotReduced`] if one is not
    /// below its prime.
    pub fn from_limbs(basis: &RnsBasis, words: &[u64]) -> Result<Self, RingError> {
        let (n, expected) = (basis.degree(), basis.len() * basis.degree());
        if words.len() != expected {
            return Err(RingError::Length { expected, found: words.len() });
        }
        for (limb, (values, modulus)) in words.chunks_exact(n).zip(basis.moduli()).enumerate() {
            if let Some(index) = values.iter().position(|value| *value >= modulus.value()) {
                return Err(RingError::NotReduced { limb, index });
            }
        }
        Ok(Self { basis: basis.clone(), words: Buffer::from(words), domain: PhantomData })
    }

    /// The basis.
    #[must_use]
    pub fn basis(&self) -> &RnsBasis {
        &self.basis
    }

    /// All residues, limb-major.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The residues modulo prime `i`.
    ///
    /// # Panics
    /// If there is no such limb.
    #[must_use]
    pub fn limb(&self, i: usize) -> &[u64] {
        let n = self.basis.degree();
        &self.words[i * n..(i + 1) * n]
    }

    /// The residues modulo prime `i`, for writing values in `[0, q_i)` only.
    ///
    /// # Panics
    /// If there is no such limb.
    pub fn limb_mut(&mut self, i: usize) -> &mut [u64] {
        let n = self.basis.degree();
        &mut self.words[i * n..(i + 1) * n]
    }

    /// The limbs in order.
    #[must_use]
    pub fn limbs(&self) -> impl ExactSizeIterator<Item = &[u64]> {
        self.words.chunks_exact(self.basis.degree())
    }

    /// The limbs in order, for writing reduced values only.
    pub fn limbs_mut(&mut self) -> impl ExactSizeIterator<Item = &mut [u64]> {
        self.words.chunks_exact_mut(self.basis.degree())
    }

    /// `self += other`.
    ///
    /// # Panics
    /// If the bases differ.
    pub fn add_assign(&mut self, other: &Self) {
        assert!(self.basis.same(&other.basis), "bases differ");
        let n = self.basis.degree();
        for (modulus, (a, b)) in self.basis.moduli().iter().zip(chunks(&mut self.words, &other.words, n)) {
            modulus.add_assign_slice(a, b);
        }
    }

    /// `self -= other`.
    ///
    /// # Panics
    /// If the bases differ.
    pub fn sub_assign(&mut self, other: &Self) {
        assert!(self.basis.same(&other.basis), "bases differ");
        let n = self.basis.degree();
        for (modulus, (a, b)) in self.basis.moduli().iter().zip(chunks(&mut self.words, &other.words, n)) {
            modulus.sub_assign_slice(a, b);
        }
    }

    /// `self = -self`.
    pub fn negate(&mut self) {
        let n = self.basis.degree();
        for (modulus, limb) in self.basis.moduli().iter().zip(self.words.chunks_exact_mut(n)) {
            modulus.neg_slice(limb);
        }
    }

    /// Multiplies limb `i` by `scalars[i]`, any word: the residues of one public integer.
    ///
    /// # Panics
    /// If there is not one scalar for each limb.
    pub fn mul_scalars(&mut self, scalars: &[u64]) {
        assert_eq!(scalars.len(), self.basis.len(), "one scalar for each limb");
        let n = self.basis.degree();
        let limbs = self.words.chunks_exact_mut(n).zip(self.basis.moduli());
        for ((limb, modulus), scalar) in limbs.zip(scalars) {
            modulus.mul_scalar_slice(limb, modulus.shoup(*scalar));
        }
    }

    /// Multiplies by one public integer.
    pub fn mul_scalar(&mut self, scalar: u64) {
        self.mul_scalars(&vec![scalar; self.basis.len()]);
    }

    /// Keeps the residues modulo the first `len` primes: the same integer if it is small.
    ///
    /// # Panics
    /// If `len` is zero or exceeds the number of limbs.
    pub fn truncate_limbs(&mut self, len: usize) {
        self.basis = self.basis.prefix(len);
        self.words.truncate(len * self.basis.degree());
    }

    /// Consumes the polynomial and hands out its residues.
    #[must_use]
    pub fn into_words(self) -> Buffer {
        self.words
    }

    fn retype<E: Domain>(self) -> Poly<E> {
        Poly { basis: self.basis, words: self.words, domain: PhantomData }
    }
}

impl Poly<Coeff> {
    /// Reduces signed coefficients modulo each prime, in constant time.
    ///
    /// # Errors
    /// [`RingError::Length`] unless there are `n` of them.
    pub fn from_signed(basis: &RnsBasis, values: &[i32]) -> Result<Self, RingError> {
        if values.len() != basis.degree() {
            return Err(RingError::Length { expected: basis.degree(), found: values.len() });
        }
        let mut poly = Self::zero(basis);
        for (limb, modulus) in poly.limbs_mut().zip(basis.moduli()) {
            let q = modulus.value();
            let words = limb.iter_mut().zip(values.iter().map(|value| i64::from(*value)));
            if q > i32::MAX as u64 {
                // Nothing to reduce but the sign.
                words.for_each(|(word, value)| *word = (value as u64).wrapping_add(q & (value >> 63) as u64));
            } else {
                words.for_each(|(word, value)| *word = modulus.reduce_signed(value));
            }
        }
        Ok(poly)
    }

    /// Evaluates at the roots.
    #[must_use]
    pub fn into_eval(mut self) -> Poly<Eval> {
        let n = self.basis.degree();
        for (ntt, limb) in self.basis.ntts().iter().zip(self.words.chunks_exact_mut(n)) {
            ntt.forward(limb);
        }
        self.retype()
    }

    /// `a(X^g)`.
    ///
    /// # Panics
    /// If `element` is of another degree.
    #[must_use]
    pub fn automorphism(&self, element: GaloisElement) -> Self {
        let mut result = Self::zero(&self.basis);
        let limbs = result.limbs_mut().zip(self.limbs());
        for (modulus, (out, limb)) in self.basis.moduli().iter().zip(limbs) {
            element.apply(modulus, out, limb);
        }
        result
    }
}

impl Poly<Eval> {
    /// Interpolates the coefficients.
    #[must_use]
    pub fn into_coeff(mut self) -> Poly<Coeff> {
        let n = self.basis.degree();
        for (ntt, limb) in self.basis.ntts().iter().zip(self.words.chunks_exact_mut(n)) {
            ntt.inverse(limb);
        }
        self.retype()
    }

    /// `self *= other`, the product of the ring.
    ///
    /// # Panics
    /// If the bases differ.
    pub fn mul_assign(&mut self, other: &Self) {
        assert!(self.basis.same(&other.basis), "bases differ");
        let n = self.basis.degree();
        for (modulus, (a, b)) in self.basis.moduli().iter().zip(chunks(&mut self.words, &other.words, n)) {
            modulus.mul_assign_slice(a, b);
        }
    }

    /// `a(X^g)`, by the prepared permutation.
    ///
    /// # Panics
    /// If the permutation is of another degree.
    #[must_use]
    pub fn automorphism(&self, permutation: &EvalPermutation) -> Self {
        let mut result = Self::zero(&self.basis);
        for (out, limb) in result.limbs_mut().zip(self.limbs()) {
            permutation.apply(out, limb);
        }
        result
    }
}

/// The words erase themselves.
impl<D: Domain> ZeroizeOnDrop for Poly<D> {}

/// Pairs of limbs of two polynomials of the same basis.
fn chunks<'a>(a: &'a mut [u64], b: &'a [u64], n: usize) -> impl Iterator<Item = (&'a mut [u64], &'a [u64])> {
    a.chunks_exact_mut(n).zip(b.chunks_exact(n))
}
