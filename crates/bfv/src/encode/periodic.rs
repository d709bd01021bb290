//! Slots that repeat along the rows.

use std::sync::Arc;

use lanner_ring::{Buffer, Extent, Ntt, RnsBasis, Words};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::encoded::{Encoded, check_length};
use super::slots::Slots;
use super::{center, largest_norm};
use crate::combination::BLOCK;
use crate::{BfvError, Parameters, PlaintextModulus};

/// Encodes vectors whose slots repeat along each row: slot `i` of a row is slot `i mod period`.
///
/// With `run = N / 2 / period` such a plaintext is a polynomial in `X^run`, and so are its residues: of `N` values modulo a limb each stands
/// `run` times, in a row. It takes as many times less memory, and products with it read as much less.
#[derive(Clone, Debug)]
pub struct PeriodicEncoder {
    modulus: PlaintextModulus,
    slots: Arc<Slots>,
    /// For each limb, and the special modulus.
    transforms: Arc<Vec<Ntt>>,
    run: usize,
}

/// A plaintext whose slots repeat, ready to multiply extended ciphertexts of some number of limbs and of fewer.
///
/// It usually holds weights: it is erased when dropped and has neither `Debug` nor `==`.
pub struct PeriodicMultiplier {
    parameters: Parameters,
    /// For each limb and then the special modulus, one value for each `run` of the transform's.
    values: Words,
    limbs: usize,
    run: usize,
    /// A public bound on the 2-norm of its coefficients.
    norm: f64,
}

/// What is known of a [`PeriodicMultiplier`] but its words.
pub struct PeriodicForm {
    encoder: PeriodicEncoder,
    limbs: usize,
}

impl PeriodicEncoder {
    /// Prepares the transforms.
    pub(super) fn new(modulus: &PlaintextModulus, period: usize) -> Result<Self, BfvError> {
        let parameters = modulus.parameters();
        let (row, degree) = (parameters.degree() / 2, 2 * period);
        let run = row.checked_div(period).unwrap_or(0);
        if run * period != row || !run.is_power_of_two() || !(8..=BLOCK).contains(&run) {
            return Err(BfvError::Length { expected: row / 8, got: period });
        }
        // All roots of unity are powers of one, so that a transform of this length gives every value of those of length N.
        let moduli = parameters.moduli().iter().chain(parameters.special());
        let transforms = moduli.map(|q| Ntt::new(q, degree)).collect::<Result<Vec<_>, _>>()?;
        let slots = Arc::new(Slots::new(modulus.value(), degree)?);
        Ok(Self { modulus: modulus.clone(), slots, transforms: Arc::new(transforms), run })
    }

    /// A factor for extended ciphertexts of so many limbs, with these values in one period of the first row and then of the second.
    ///
    /// # Errors
    /// [`BfvError::Length`] unless there are two periods; [`BfvError::Range`] if a value is not below `t`; [`BfvError::Limbs`] unless the
    /// parameters have so many; [`BfvError::NoSpecialModulus`].
    pub fn multiplier(&self, values: &[u64], limbs: usize) -> Result<PeriodicMultiplier, BfvError> {
        let (parameters, t) = (self.modulus.parameters(), self.modulus.value());
        let coefficients = Zeroizing::new(self.slots.interpolate(values, t)?);
        parameters.key_switching(limbs)?;
        let transforms = self.transforms[..limbs].iter().chain(self.transforms.last());
        let mut values = Buffer::zeroed(coefficients.len() * (limbs + 1));
        for (transform, values) in transforms.zip(values.chunks_exact_mut(coefficients.len())) {
            for (value, coefficient) in values.iter_mut().zip(coefficients.iter()) {
                *value = transform.modulus().reduce_signed(center(*coefficient, t));
            }
            transform.forward(values);
        }
        Ok(self.over(values.into(), limbs))
    }

    /// What is known of a [multiplier](Self::multiplier) of so many limbs but its words.
    ///
    /// # Errors
    /// [`BfvError::Limbs`] unless the parameters have so many; [`BfvError::NoSpecialModulus`].
    pub fn form(&self, limbs: usize) -> Result<PeriodicForm, BfvError> {
        self.modulus.parameters().key_switching(limbs)?;
        Ok(PeriodicForm { encoder: self.clone(), limbs })
    }

    /// Values of the transform that are kept modulo each prime.
    fn different(&self) -> usize {
        self.modulus.parameters().degree() / self.run
    }

    fn over(&self, values: Words, limbs: usize) -> PeriodicMultiplier {
        let (parameters, run) = (self.modulus.parameters().clone(), self.run);
        let norm = largest_norm(self.different(), self.modulus.value());
        PeriodicMultiplier { parameters, values, limbs, run, norm }
    }
}

impl PeriodicMultiplier {
    /// Bytes that one takes for ciphertexts of so many limbs.
    #[must_use]
    pub fn bytes(period: usize, limbs: usize) -> usize {
        2 * period * (limbs + 1) * size_of::<u64>()
    }

    pub(crate) fn norm(&self) -> f64 {
        self.norm
    }

    /// Places of a transform that have one value.
    pub(crate) fn run(&self) -> usize {
        self.run
    }

    /// The values modulo that limb of a basis that [`Self::check_covers`].
    pub(crate) fn values(&self, basis: &RnsBasis, limb: usize) -> &[u64] {
        let each = self.parameters.degree() / self.run;
        let place = if limb + 1 == basis.len() { self.limbs } else { limb };
        &self.values[place * each..(place + 1) * each]
    }

    /// # Errors
    /// [`BfvError::Mismatch`] unless `basis` is of the factor's parameters, of no more limbs, and has the special modulus behind them.
    pub(crate) fn check_covers(&self, basis: &RnsBasis) -> Result<(), BfvError> {
        let limbs = basis.len() - 1;
        let covers = (1..=self.limbs).contains(&limbs)
            && self.parameters.key_switching(limbs).is_ok_and(|own| own.same(basis));
        if covers { Ok(()) } else { Err(BfvError::Mismatch { what: "the bases of ciphertext and factor" }) }
    }
}

impl Encoded for PeriodicMultiplier {
    type Form = PeriodicForm;

    fn length(form: &PeriodicForm) -> usize {
        form.encoder.different() * (form.limbs + 1)
    }

    fn words(&self) -> Vec<&[u64]> {
        // A buffer's last line may be longer.
        vec![&self.values[..self.parameters.degree() / self.run * (self.limbs + 1)]]
    }

    fn over(form: &PeriodicForm, words: Extent) -> Result<Self, BfvError> {
        check_length(&words, Self::length(form))?;
        Ok(form.encoder.over(words.into(), form.limbs))
    }
}

/// The words erase themselves.
impl ZeroizeOnDrop for PeriodicMultiplier {}
