//! Slots that repeat along the rows.

use std::sync::Arc;

use lanner_ring::{Ntt, RnsBasis};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

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
/// It usually holds weights: it is zeroized when dropped and has neither `Debug` nor `==`.
pub struct PeriodicMultiplier {
    parameters: Parameters,
    /// For each limb and then the special modulus, one value for each `run` of the transform's.
    values: Vec<Vec<u64>>,
    run: usize,
    /// A public bound on the 2-norm of its coefficients.
    norm: f64,
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
        let special = self.transforms.last().into_iter();
        let over = |transform: &Ntt| {
            let residue = |value: &u64| transform.modulus().reduce_signed(center(*value, t));
            let mut values: Vec<u64> = coefficients.iter().map(residue).collect();
            transform.forward(&mut values);
            values
        };
        let values = self.transforms[..limbs].iter().chain(special).map(over).collect();
        let norm = largest_norm(coefficients.len(), t);
        Ok(PeriodicMultiplier { parameters: parameters.clone(), values, run: self.run, norm })
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
        let last = self.values.len() - 1;
        &self.values[if limb + 1 == basis.len() { last } else { limb }]
    }

    /// # Errors
    /// [`BfvError::Mismatch`] unless `basis` is of the factor's parameters, of no more limbs, and has the special modulus behind them.
    pub(crate) fn check_covers(&self, basis: &RnsBasis) -> Result<(), BfvError> {
        let limbs = basis.len() - 1;
        let covers = (1..self.values.len()).contains(&limbs)
            && self.parameters.key_switching(limbs).is_ok_and(|own| own.same(basis));
        if covers { Ok(()) } else { Err(BfvError::Mismatch { what: "the bases of ciphertext and factor" }) }
    }
}

impl Drop for PeriodicMultiplier {
    fn drop(&mut self) {
        self.values.iter_mut().for_each(Zeroize::zeroize);
    }
}

impl ZeroizeOnDrop for PeriodicMultiplier {}
