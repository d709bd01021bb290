//! Computation on ciphertexts, without any key but those for automorphisms.

use lanner_ring::{Eval, GaloisElement, Poly};

use crate::{BfvError, Ciphertext, EvaluationKeys, Hoisted, Multiplier, Parameters, Plaintext};

/// Evaluates on ciphertexts of one set of parameters. Every result carries the bound on its noise.
#[derive(Clone, Debug)]
pub struct Evaluator {
    parameters: Parameters,
}

impl Evaluator {
    /// An evaluator.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        Self { parameters: parameters.clone() }
    }

    /// The automorphism that rotates each row of slots: slot `i` of the result is slot `i + steps`, mod `N/2`.
    ///
    /// # Errors
    /// None for parameters that were accepted.
    pub fn rotation(&self, steps: isize) -> Result<GaloisElement, BfvError> {
        Ok(GaloisElement::rotation(steps, self.parameters.degree())?)
    }

    /// The automorphism that swaps the two rows of slots.
    ///
    /// # Errors
    /// None for parameters that were accepted.
    pub fn row_swap(&self) -> Result<GaloisElement, BfvError> {
        Ok(GaloisElement::row_swap(self.parameters.degree())?)
    }

    /// The encryption of `a + b`.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] unless both live modulo the same `q`.
    pub fn add(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, BfvError> {
        let mut sum = a.clone();
        self.add_assign(&mut sum, b)?;
        Ok(sum)
    }

    /// Makes `a` the encryption of `a + b`.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn add_assign(&self, a: &mut Ciphertext, b: &Ciphertext) -> Result<(), BfvError> {
        a.check_same(b)?;
        a.c0.add_assign(&b.c0);
        a.c1.add_assign(&b.c1);
        a.noise = a.noise.plus(b.noise);
        Ok(())
    }

    /// The encryption of `a - b`.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn sub(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, BfvError> {
        a.check_same(b)?;
        let mut difference = a.clone();
        difference.c0.sub_assign(&b.c0);
        difference.c1.sub_assign(&b.c1);
        difference.noise = a.noise.plus(b.noise);
        Ok(difference)
    }

    /// The encryption of `a + m`.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] if the message belongs to other parameters.
    pub fn add_plain(&self, a: &Ciphertext, message: &Plaintext) -> Result<Ciphertext, BfvError> {
        let scaled = self.scaled(a, message)?;
        let mut sum = a.clone();
        sum.c0.add_assign(&scaled);
        sum.noise = a.noise.plus_plaintext();
        Ok(sum)
    }

    /// The encryption of `a - m`.
    ///
    /// # Errors
    /// As [`Self::add_plain`].
    pub fn sub_plain(&self, a: &Ciphertext, message: &Plaintext) -> Result<Ciphertext, BfvError> {
        let scaled = self.scaled(a, message)?;
        let mut difference = a.clone();
        difference.c0.sub_assign(&scaled);
        difference.noise = a.noise.plus_plaintext();
        Ok(difference)
    }

    fn scaled(&self, a: &Ciphertext, message: &Plaintext) -> Result<Poly<Eval>, BfvError> {
        self.parameters.check_same(message.modulus().parameters())?;
        self.check(a)?;
        Ok(message.modulus().scale(message, a.limbs()).into_eval())
    }

    /// The encryption of the product of `a` and a plaintext: slot by slot, or of polynomials.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] if an operand belongs to other parameters.
    pub fn mul_plain(&self, a: &Ciphertext, factor: &Multiplier) -> Result<Ciphertext, BfvError> {
        self.check(a)?;
        factor.check_covers(a.c0.basis())?;
        let mut product = a.clone();
        for part in [&mut product.c0, &mut product.c1] {
            for (j, (modulus, limb)) in self.parameters.moduli().iter().zip(part.limbs_mut()).enumerate() {
                modulus.mul_assign_slice(limb, &factor.values(a.c0.basis(), j));
            }
        }
        product.noise = a.noise.multiplied_by_norm(factor.norm);
        Ok(product)
    }

    /// Decomposes `a` once for any number of rotations.
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`]; [`BfvError::Mismatch`] for other parameters.
    pub fn hoist<'a>(&'a self, a: &'a Ciphertext) -> Result<Hoisted<'a>, BfvError> {
        Hoisted::new(&self.parameters, a)
    }

    /// The encryption of `a` under an automorphism: a rotation, the row swap, or any other.
    ///
    /// # Errors
    /// As [`Self::hoist`]; [`BfvError::MissingKey`]; [`BfvError::Limbs`] if the key is for fewer limbs.
    pub fn apply(
        &self,
        a: &Ciphertext,
        element: GaloisElement,
        keys: &EvaluationKeys,
    ) -> Result<Ciphertext, BfvError> {
        self.hoist(a)?.apply(element, keys)
    }

    /// The encryption of `a` rotated: slot `i` of each row is slot `i + steps` of `a`.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn rotate(
        &self,
        a: &Ciphertext,
        steps: isize,
        keys: &EvaluationKeys,
    ) -> Result<Ciphertext, BfvError> {
        self.apply(a, self.rotation(steps)?, keys)
    }

    /// The encryption of `a` with its two rows of slots swapped.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn swap_rows(&self, a: &Ciphertext, keys: &EvaluationKeys) -> Result<Ciphertext, BfvError> {
        self.apply(a, self.row_swap()?, keys)
    }

    /// The same message modulo `q / q_last`, with the noise divided by `q_last`.
    ///
    /// # Errors
    /// [`BfvError::LastLimb`] for a ciphertext of one limb; [`BfvError::Mismatch`] for other parameters.
    pub fn mod_switch(&self, a: &Ciphertext) -> Result<Ciphertext, BfvError> {
        self.check(a)?;
        let limbs = a.limbs();
        if limbs == 1 {
            return Err(BfvError::LastLimb);
        }
        let mut switched = a.clone();
        switched.c0.divide_round_by_last();
        switched.c1.divide_round_by_last();
        switched.noise = a.noise.switched_modulus(&self.parameters, limbs, limbs - 1);
        Ok(switched)
    }

    /// # Errors
    /// [`BfvError::Mismatch`] unless the ciphertext is of these parameters.
    fn check(&self, a: &Ciphertext) -> Result<(), BfvError> {
        self.parameters.check_basis(a.c0.basis())
    }
}
