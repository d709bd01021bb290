//! What is known of a multiplier but its words.

use lanner_ring::{Buffer, Extent, RnsBasis, Words};

use super::encoded::{Encoded, check_length};
use super::{Multiplier, is_narrow, largest_norm};
use crate::{BfvError, Parameters, PlaintextModulus};

/// What is known of a [`Multiplier`] but its words. All of it is public.
#[derive(Clone)]
pub struct MultiplierForm {
    pub(super) parameters: Parameters,
    /// Whether coefficients take 4 bytes, else 8.
    pub(super) is_narrow: bool,
    /// A bound on the coefficients' magnitudes.
    pub(super) largest: u64,
    /// A bound on their 2-norm.
    pub(super) norm: f64,
    /// The limbs, and perhaps the special modulus behind them, modulo which values are kept.
    pub(super) prepared: Option<RnsBasis>,
}

impl MultiplierForm {
    /// Of any plaintext of a modulus.
    #[must_use]
    pub fn new(modulus: &PlaintextModulus) -> Self {
        let (parameters, t) = (modulus.parameters().clone(), modulus.value());
        let norm = largest_norm(parameters.degree(), t);
        Self { parameters, is_narrow: is_narrow(t), largest: t / 2, norm, prepared: None }
    }

    /// Of [constants](Multiplier::constant) of magnitudes up to `bound`.
    #[must_use]
    pub fn constant(parameters: &Parameters, bound: u64) -> Self {
        let parameters = parameters.clone();
        Self { parameters, is_narrow: false, largest: bound, norm: bound as f64, prepared: None }
    }

    /// That of [`Multiplier::prepare`].
    #[must_use]
    pub fn prepare(self) -> Self {
        let prepared = Some(self.parameters.basis(self.parameters.limbs()));
        Self { prepared, ..self }
    }

    /// That of [`Multiplier::prepare_extended`].
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`]; [`BfvError::Limbs`] unless the parameters have so many.
    pub fn prepare_extended(self, limbs: usize) -> Result<Self, BfvError> {
        let prepared = Some(self.parameters.key_switching(limbs)?.clone());
        Ok(Self { prepared, ..self })
    }

    /// Words of the coefficients.
    pub(super) fn coefficients(&self) -> usize {
        self.parameters.degree() / if self.is_narrow { 2 } else { 1 }
    }
}

impl Encoded for Multiplier {
    type Form = MultiplierForm;

    fn length(form: &MultiplierForm) -> usize {
        let moduli = form.prepared.as_ref().map_or(0, RnsBasis::len);
        form.coefficients() + moduli * form.parameters.degree()
    }

    fn words(&self) -> Vec<&[u64]> {
        vec![&self.coefficients, &self.values]
    }

    fn over(form: &MultiplierForm, words: Extent) -> Result<Self, BfvError> {
        check_length(&words, Self::length(form))?;
        let [coefficients, values] = match words.split_at(form.coefficients()) {
            Some(parts) => parts.map(Words::from),
            None => [words.into(), Buffer::default().into()],
        };
        Ok(Self { form: form.clone(), coefficients, values })
    }
}
