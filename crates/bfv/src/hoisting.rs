//! Rotations of one ciphertext that share its decomposition into digits ([HS18], <https://eprint.iacr.org/2018/244>).

use lanner_ring::{Eval, GaloisElement, Poly, RnsBasis};

use crate::keys::SwitchingKey;
use crate::{BfvError, Ciphertext, EvaluationKeys, NoiseBound, Parameters};

/// A ciphertext with the digits of its second half: what every rotation of it starts from.
pub struct Hoisted {
    parameters: Parameters,
    ciphertext: Ciphertext,
    /// Digit `i` is the centred residue of `c1` modulo limb `i`, over the limbs and the special modulus.
    digits: Vec<Poly<Eval>>,
}

/// A rotated ciphertext over the limbs and the special modulus `P`, multiplied by `P`.
#[derive(Clone)]
pub struct ExtendedCiphertext {
    pub(crate) c0: Poly<Eval>,
    pub(crate) c1: Poly<Eval>,
    /// In units of `P`.
    pub(crate) noise: NoiseBound,
}

impl Hoisted {
    pub(crate) fn new(parameters: &Parameters, ciphertext: &Ciphertext) -> Result<Self, BfvError> {
        let basis = parameters.key_switching()?;
        if !parameters.basis(parameters.limbs()).same(ciphertext.c1.basis()) {
            return Err(BfvError::Mismatch { what: "the ciphertext's modulus and that of the keys" });
        }
        let coefficients = ciphertext.c1.clone().into_coeff();
        let digits = coefficients.limbs().zip(ciphertext.c1.limbs()).enumerate();
        let digits = digits.map(|(i, (residues, values))| digit(basis, i, residues, values)).collect();
        Ok(Self { parameters: parameters.clone(), ciphertext: ciphertext.clone(), digits })
    }

    /// The encryption under an automorphism.
    ///
    /// # Errors
    /// [`BfvError::MissingKey`]; [`BfvError::Mismatch`] for keys of other parameters.
    pub fn apply(&self, element: GaloisElement, keys: &EvaluationKeys) -> Result<Ciphertext, BfvError> {
        if element.exponent() == 1 {
            return Ok(self.ciphertext.clone());
        }
        let key = self.key(element, keys)?;
        let [mut c0, mut c1] = self.switch(key);
        c0.divide_round_by_last();
        c1.divide_round_by_last();
        c0.add_assign(&self.ciphertext.c0);
        let noise = self.ciphertext.noise.switched_key(&self.parameters);
        Ok(Ciphertext { c0: c0.automorphism(&key.permutation), c1: c1.automorphism(&key.permutation), noise })
    }

    /// The encryption rotated: slot `i` of each row is slot `i + steps`.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn rotate(&self, steps: isize, keys: &EvaluationKeys) -> Result<Ciphertext, BfvError> {
        self.apply(GaloisElement::rotation(steps, self.parameters.degree())?, keys)
    }

    /// The encryption under an automorphism, before the division by the special modulus.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn apply_extended(
        &self,
        element: GaloisElement,
        keys: &EvaluationKeys,
    ) -> Result<ExtendedCiphertext, BfvError> {
        if element.exponent() == 1 {
            return Ok(self.extended());
        }
        let key = self.key(element, keys)?;
        let [mut c0, c1] = self.switch(key);
        self.add_scaled(&mut c0, &self.ciphertext.c0);
        let noise = self.ciphertext.noise.switched_key_extended(&self.parameters);
        let permutation = &key.permutation;
        Ok(ExtendedCiphertext { c0: c0.automorphism(permutation), c1: c1.automorphism(permutation), noise })
    }

    /// `P (c0, c1)`.
    fn extended(&self) -> ExtendedCiphertext {
        let Ciphertext { c0, c1, noise } = &self.ciphertext;
        let scale = |part| {
            let mut scaled = Poly::zero(self.parameters.extended());
            self.add_scaled(&mut scaled, part);
            scaled
        };
        ExtendedCiphertext { c0: scale(c0), c1: scale(c1), noise: *noise }
    }

    /// `sum += P part`, which is zero modulo `P`.
    fn add_scaled(&self, sum: &mut Poly<Eval>, part: &Poly<Eval>) {
        let special = self.parameters.special().map_or(1, lanner_ring::Modulus::value);
        let mut scaled = part.clone();
        scaled.mul_scalar(special);
        for ((modulus, out), limb) in self.parameters.moduli().iter().zip(sum.limbs_mut()).zip(scaled.limbs())
        {
            modulus.add_assign_slice(out, limb);
        }
    }

    fn key<'a>(
        &self,
        element: GaloisElement,
        keys: &'a EvaluationKeys,
    ) -> Result<&'a SwitchingKey, BfvError> {
        self.parameters.check_same(keys.parameters())?;
        keys.key(element)
    }

    /// The inner products of the digits with both halves of the key: `P c1 s` under the key's target secret.
    fn switch(&self, key: &SwitchingKey) -> [Poly<Eval>; 2] {
        let basis = self.parameters.extended();
        let mut products = [Poly::zero(basis), Poly::zero(basis)];
        let [c0, c1] = &mut products;
        for (j, modulus) in basis.moduli().iter().enumerate() {
            let digits: Vec<_> = self.digits.iter().map(|digit| digit.limb(j)).collect();
            let b: Vec<_> = key.digits.iter().map(|(b, _)| b.limb(j)).collect();
            let a: Vec<_> = key.digits.iter().map(|(_, a)| a.limb(j)).collect();
            modulus.dot(c0.limb_mut(j), &digits, &b);
            modulus.dot(c1.limb_mut(j), &digits, &a);
        }
        products
    }
}

/// Digit `i`: the residues of limb `i`, centred and lifted to every modulus of `basis`.
///
/// `values` is the transform of `residues`, and stays as it is in limb `i`.
fn digit(basis: &RnsBasis, i: usize, residues: &[u64], values: &[u64]) -> Poly<Eval> {
    let from = &basis.moduli()[i];
    let mut digit = Poly::zero(basis);
    for (j, (limb, ntt)) in digit.limbs_mut().zip(basis.ntts()).enumerate() {
        if i == j {
            limb.copy_from_slice(values);
        } else {
            ntt.modulus().lift_centered_slice(limb, residues, from);
            ntt.forward(limb);
        }
    }
    digit
}
