//! Computation on ciphertexts, without any key but those for automorphisms and products.

use lanner_ring::{Eval, GaloisElement, Poly};

use crate::product::relinearize;
use crate::{
    BfvError, Ciphertext, EvaluationKeys, Hoisted, Multiplier, Parameters, Plaintext, PlaintextModulus,
};

/// Evaluates on ciphertexts of one set of parameters. Every result carries the bound on its noise.
#[derive(Clone, Debug)]
pub struct Evaluator {
    pub(crate) parameters: Parameters,
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
        product.noise = a.noise.multiplied_by_norm(factor.norm());
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
        Hoisted::once(&self.parameters, a)?.apply(element, keys)
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

    /// The encryption of the product of two messages modulo `t`: slot by slot, or of polynomials.
    ///
    /// # Errors
    /// [`BfvError::MissingProductKey`]; [`BfvError::Limbs`] if the key is for fewer limbs; [`BfvError::Mismatch`] if anything belongs to
    /// other parameters, or the ciphertexts have different numbers of limbs; [`BfvError::NoSpecialModulus`].
    pub fn multiply(
        &self,
        a: &Ciphertext,
        b: &Ciphertext,
        modulus: &PlaintextModulus,
        keys: &EvaluationKeys,
    ) -> Result<Ciphertext, BfvError> {
        self.multiply_to(a, b, modulus, keys, a.limbs())
    }

    /// The encryption of the product, switched down to `limbs` limbs before it is relinearized: that takes less time, and a key for fewer
    /// limbs.
    ///
    /// # Errors
    /// As [`Self::multiply`]; [`BfvError::Limbs`] for more limbs than the ciphertexts have, or none.
    pub fn multiply_to(
        &self,
        a: &Ciphertext,
        b: &Ciphertext,
        modulus: &PlaintextModulus,
        keys: &EvaluationKeys,
        limbs: usize,
    ) -> Result<Ciphertext, BfvError> {
        a.check_same(b)?;
        self.product(a, Some(b), modulus, keys, limbs)
    }

    /// The encryption of the square of a message modulo `t`: slot by slot, or of a polynomial.
    ///
    /// # Errors
    /// As [`Self::multiply`].
    pub fn square(
        &self,
        a: &Ciphertext,
        modulus: &PlaintextModulus,
        keys: &EvaluationKeys,
    ) -> Result<Ciphertext, BfvError> {
        self.square_to(a, modulus, keys, a.limbs())
    }

    /// The encryption of the square, switched down to `limbs` limbs before it is relinearized.
    ///
    /// # Errors
    /// As [`Self::multiply_to`].
    pub fn square_to(
        &self,
        a: &Ciphertext,
        modulus: &PlaintextModulus,
        keys: &EvaluationKeys,
        limbs: usize,
    ) -> Result<Ciphertext, BfvError> {
        self.product(a, None, modulus, keys, limbs)
    }

    /// The product, or the square where there is no second factor.
    fn product(
        &self,
        a: &Ciphertext,
        b: Option<&Ciphertext>,
        modulus: &PlaintextModulus,
        keys: &EvaluationKeys,
        limbs: usize,
    ) -> Result<Ciphertext, BfvError> {
        self.check(a)?;
        self.parameters.check_same(modulus.parameters())?;
        self.parameters.check_same(keys.parameters())?;
        let most = a.limbs();
        check_fewer(limbs, most)?;
        let basis = self.parameters.key_switching(limbs)?;
        let key = keys.product_key(limbs)?;
        let scaling = modulus.scaling(most)?;
        let (first, second) = (scaling.operand(a), b.map(|b| scaling.operand(b)));
        let mut parts = scaling.product(&first, second.as_ref().unwrap_or(&first));
        for part in &mut parts {
            part.divide_round_to(limbs);
        }
        let [c0, c1] = relinearize(basis, parts, key);
        let product = a.noise.product(b.unwrap_or(a).noise, &self.parameters, modulus.value(), most);
        let switched = product.switched_product(&self.parameters, most, limbs);
        Ok(Ciphertext { c0, c1, noise: switched.switched_key_at(&self.parameters, limbs) })
    }

    /// The same message modulo `q / q_last`, with the noise divided by `q_last`.
    ///
    /// # Errors
    /// [`BfvError::LastLimb`] for a ciphertext of one limb; [`BfvError::Mismatch`] for other parameters.
    pub fn mod_switch(&self, a: &Ciphertext) -> Result<Ciphertext, BfvError> {
        self.check(a)?;
        match a.limbs() {
            1 => Err(BfvError::LastLimb),
            limbs => self.mod_switch_to(a, limbs - 1),
        }
    }

    /// The same message modulo the product of the first `limbs` limbs, with the noise divided by the others.
    ///
    /// # Errors
    /// [`BfvError::Limbs`] for more limbs than there are, or none; [`BfvError::Mismatch`] for other parameters.
    pub fn mod_switch_to(&self, a: &Ciphertext, limbs: usize) -> Result<Ciphertext, BfvError> {
        self.check(a)?;
        let most = a.limbs();
        check_fewer(limbs, most)?;
        let mut switched = a.clone();
        switched.c0.divide_round_to(limbs);
        switched.c1.divide_round_to(limbs);
        switched.noise = a.noise.switched_modulus(&self.parameters, most, limbs);
        Ok(switched)
    }

    /// # Errors
    /// [`BfvError::Mismatch`] unless the ciphertext is of these parameters.
    fn check(&self, a: &Ciphertext) -> Result<(), BfvError> {
        self.parameters.check_basis(a.c0.basis())
    }
}

/// # Errors
/// [`BfvError::Limbs`] unless `limbs` are some of `most`.
fn check_fewer(limbs: usize, most: usize) -> Result<(), BfvError> {
    if (1..=most).contains(&limbs) { Ok(()) } else { Err(BfvError::Limbs { got: limbs, most }) }
}
