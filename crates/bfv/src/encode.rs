//! Encodings of vectors into plaintext polynomials.

mod coefficients;
mod periodic;
mod slots;

pub use coefficients::CoefficientEncoder;
pub use periodic::{PeriodicEncoder, PeriodicMultiplier};
pub use slots::SlotEncoder;

use std::ops::Deref;

use lanner_ring::{Buffer, Eval, Modulus, Poly, RnsBasis};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::{BfvError, Parameters, Plaintext};

/// A plaintext polynomial lifted to centred integers, for products with ciphertexts.
///
/// Its coefficients are kept, 4 or 8 bytes each. A *prepared* one also keeps its values modulo limbs, ready to multiply, which takes
/// [`Self::bytes`] several times larger; all others are computed by a transform whenever they are needed.
///
/// It usually holds weights: it is zeroized when dropped and has neither `Debug` nor `==`.
#[derive(Clone)]
pub struct Multiplier {
    parameters: Parameters,
    coefficients: Coefficients,
    /// A public bound on their magnitudes.
    largest: u64,
    /// Over some limbs, and perhaps the special modulus behind them.
    prepared: Option<Poly<Eval>>,
    /// A public bound on the 2-norm of its coefficients.
    pub(crate) norm: f64,
}

/// Centred coefficients, in the smallest words that hold any modulo `t`.
#[derive(Clone)]
enum Coefficients {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
}

/// The values of a multiplier modulo one prime.
pub(crate) enum Values<'m> {
    Prepared(&'m [u64]),
    Lifted(Buffer),
}

impl Multiplier {
    /// Lifts the coefficients of `plaintext` to `(-t/2, t/2]`.
    pub(crate) fn new(plaintext: &Plaintext) -> Self {
        let t = plaintext.modulus().value();
        let lifted = plaintext.coefficients().iter().map(|value| center(*value, t));
        let coefficients = if is_narrow(t) {
            Coefficients::Narrow(lifted.map(|value| value as i32).collect())
        } else {
            Coefficients::Wide(lifted.collect())
        };
        let parameters = plaintext.modulus().parameters().clone();
        let norm = largest_norm(parameters.degree(), t);
        Self { parameters, coefficients, largest: t / 2, prepared: None, norm }
    }

    /// The same integer in every slot: one coefficient, so that products have less noise. `bound` is public and not below its
    /// magnitude.
    ///
    /// # Errors
    /// [`BfvError::Range`] if the magnitude exceeds the bound.
    pub fn constant(parameters: &Parameters, value: i64, bound: u64) -> Result<Self, BfvError> {
        if value.unsigned_abs() > bound {
            return Err(BfvError::Range { index: 0, modulus: bound });
        }
        let mut coefficients = vec![0; parameters.degree()];
        coefficients[0] = value;
        let coefficients = Coefficients::Wide(coefficients);
        let parameters = parameters.clone();
        Ok(Self { parameters, coefficients, largest: bound, prepared: None, norm: bound as f64 })
    }

    /// Computes the values modulo all limbs, once for all products.
    #[must_use]
    pub fn prepare(self) -> Self {
        let basis = self.parameters.basis(self.parameters.limbs());
        self.prepare_over(&basis)
    }

    /// Computes the values modulo as many limbs as the ciphertexts have.
    ///
    /// # Errors
    /// [`BfvError::Limbs`] unless the parameters have so many.
    pub fn prepare_at(self, limbs: usize) -> Result<Self, BfvError> {
        self.parameters.check_limbs(limbs)?;
        let basis = self.parameters.basis(limbs);
        Ok(self.prepare_over(&basis))
    }

    /// Computes the values modulo so many limbs and the special modulus: what [extended](crate::ExtendedCombinations) products take.
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`]; as [`Self::prepare_at`].
    pub fn prepare_extended(self, limbs: usize) -> Result<Self, BfvError> {
        let basis = self.parameters.key_switching(limbs)?.clone();
        Ok(self.prepare_over(&basis))
    }

    fn prepare_over(mut self, basis: &RnsBasis) -> Self {
        let mut poly = Poly::zero(basis);
        for (j, values) in poly.limbs_mut().enumerate() {
            self.lift(self.place(basis, j), values);
        }
        self.prepared = Some(poly);
        self
    }

    /// Bytes that a multiplier modulo `t` takes, prepared or not.
    #[must_use]
    pub fn bytes(parameters: &Parameters, t: u64, prepared: bool) -> usize {
        Self::bytes_with(parameters, t, if prepared { parameters.limbs() } else { 0 })
    }

    /// Bytes that one takes that is prepared modulo so many limbs, the special modulus counted among them.
    #[must_use]
    pub fn bytes_with(parameters: &Parameters, t: u64, moduli: usize) -> usize {
        let coefficient = if is_narrow(t) { size_of::<i32>() } else { size_of::<i64>() };
        parameters.degree() * (coefficient + moduli * size_of::<u64>())
    }

    /// Whether the values modulo that limb of a basis that [`Self::check_covers`] are at hand.
    pub(crate) fn is_prepared(&self, basis: &RnsBasis, limb: usize) -> bool {
        self.at_hand(basis, limb).is_some()
    }

    /// The values modulo that limb of a basis that [`Self::check_covers`].
    pub(crate) fn values(&self, basis: &RnsBasis, limb: usize) -> Values<'_> {
        if let Some(values) = self.at_hand(basis, limb) {
            return Values::Prepared(values);
        }
        let mut values = Buffer::zeroed(self.parameters.degree());
        self.lift(self.place(basis, limb), &mut values);
        Values::Lifted(values)
    }

    fn at_hand(&self, basis: &RnsBasis, limb: usize) -> Option<&[u64]> {
        let poly = self.prepared.as_ref()?;
        let same = |j: &usize| poly.basis().moduli()[*j].value() == basis.moduli()[limb].value();
        // The special modulus stands behind as many limbs as there are.
        let last = poly.basis().len() - 1;
        [limb.min(last), last].iter().find(|j| same(j)).map(|j| poly.limb(*j))
    }

    /// Where a limb of such a basis stands among all: there, unless it is the special modulus.
    fn place(&self, basis: &RnsBasis, limb: usize) -> usize {
        let same = |own: &Modulus| own.value() == basis.moduli()[limb].value();
        if self.parameters.moduli().get(limb).is_some_and(same) { limb } else { self.parameters.limbs() }
    }

    fn lift(&self, limb: usize, values: &mut [u64]) {
        let basis = self.parameters.extended();
        let modulus = &basis.moduli()[limb];
        match &self.coefficients {
            Coefficients::Narrow(words) => {
                self.reduce(modulus, values, words.iter().map(|word| i64::from(*word)));
            }
            Coefficients::Wide(words) => self.reduce(modulus, values, words.iter().copied()),
        }
        basis.ntts()[limb].forward(values);
    }

    /// The residues of the coefficients.
    fn reduce(&self, modulus: &Modulus, residues: &mut [u64], coefficients: impl Iterator<Item = i64>) {
        let q = modulus.value();
        let pairs = residues.iter_mut().zip(coefficients);
        if self.largest < q {
            // Nothing to reduce but the sign.
            for (residue, value) in pairs {
                *residue = (value as u64).wrapping_add(q & (value >> 63) as u64);
            }
        } else {
            for (residue, value) in pairs {
                *residue = modulus.reduce_signed(value);
            }
        }
    }

    /// # Errors
    /// [`BfvError::Mismatch`] unless `basis` is a ciphertext's of the factor's parameters, or that with the special modulus behind it.
    pub(crate) fn check_covers(&self, basis: &RnsBasis) -> Result<(), BfvError> {
        let covers = self.parameters.has_basis(basis);
        if covers { Ok(()) } else { Err(BfvError::Mismatch { what: "the bases of ciphertext and factor" }) }
    }
}

/// The integer in `(-t/2, t/2]` with this residue.
fn center(value: u64, t: u64) -> i64 {
    let above = (((t / 2).wrapping_sub(value) as i64) >> 63) as u64;
    value.wrapping_sub(t & above) as i64
}

/// Whether centred coefficients modulo `t` fit 32 bits.
const fn is_narrow(t: u64) -> bool {
    t >> 32 == 0
}

impl Deref for Values<'_> {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match self {
            Self::Prepared(values) => values,
            Self::Lifted(values) => values,
        }
    }
}

/// The largest 2-norm of a plaintext modulo `t`.
pub(crate) fn largest_norm(degree: usize, t: u64) -> f64 {
    (t as f64 / 2.0) * (degree as f64).sqrt()
}

impl Drop for Multiplier {
    fn drop(&mut self) {
        match &mut self.coefficients {
            Coefficients::Narrow(words) => words.zeroize(),
            Coefficients::Wide(words) => words.zeroize(),
        }
    }
}

impl ZeroizeOnDrop for Multiplier {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{ParameterSet, PlaintextModulus, parameters};

    /// The values by the long way: residues one by one, then the transform.
    fn naively(parameters: &Parameters, coefficients: &[u64], t: u64, limb: usize) -> Vec<u64> {
        let (modulus, ntt) = (&parameters.extended().moduli()[limb], &parameters.extended().ntts()[limb]);
        let centred = |c: &u64| if *c > t / 2 { -i128::from(t - c) } else { i128::from(*c) };
        let residue = |c| centred(c).rem_euclid(i128::from(modulus.value())) as u64;
        let mut values: Vec<u64> = coefficients.iter().map(residue).collect();
        ntt.forward(&mut values);
        values
    }

    /// Values that are prepared for some limbs serve every basis, at hand where they are in both.
    fn check_preparations(compact: &Multiplier, limbs: usize, extended: &RnsBasis) {
        let parameters = &compact.parameters;
        let few = compact.clone().prepare_at(limbs).unwrap();
        let special = compact.clone().prepare_extended(limbs).unwrap();
        for most in 1..=parameters.limbs() {
            let basis = parameters.key_switching(most).unwrap();
            for limb in 0..basis.len() {
                let expected = compact.values(basis, limb);
                assert!(*few.values(basis, limb) == *expected && *special.values(basis, limb) == *expected);
                let is_special = limb == most;
                assert_eq!(few.is_prepared(basis, limb), !is_special && limb < limbs);
                assert_eq!(special.is_prepared(basis, limb), is_special || limb < limbs);
            }
        }
        assert!((0..extended.len()).all(|limb| special.is_prepared(extended, limb)));
    }

    #[test]
    fn prepared_and_lifted_values_are_those_of_the_centred_coefficients() {
        for parameters in [ParameterSet::B.parameters().unwrap(), parameters::small()] {
            for t in [64, 114_689, (1 << 32) - 1, 1 << 32, 137_438_822_401, 1 << 41] {
                let modulus = PlaintextModulus::new(&parameters, t).unwrap();
                let edges = [0, 1, t / 2 - 1, t / 2, t / 2 + 1, t - 1];
                let coefficients: Vec<u64> =
                    (0..parameters.degree()).map(|i| (edges[i % 6] + 5 * i as u64) % t).collect();
                let compact = Multiplier::new(&Plaintext::new(&modulus, coefficients.clone()).unwrap());
                let prepared = compact.clone().prepare();
                for limb in 0..=parameters.limbs() {
                    let expected = naively(&parameters, &coefficients, t, limb);
                    let basis = parameters.extended();
                    assert!(*compact.values(basis, limb) == expected, "{t} at limb {limb}");
                    assert!(*prepared.values(basis, limb) == expected, "{t} at limb {limb}, prepared");
                    assert!(!compact.is_prepared(basis, limb));
                    assert_eq!(prepared.is_prepared(basis, limb), limb < parameters.limbs());
                }
                let special = naively(&parameters, &coefficients, t, parameters.limbs());
                for limbs in 1..=parameters.limbs() {
                    let basis = parameters.key_switching(limbs).unwrap();
                    assert!(*prepared.values(basis, limbs) == special, "{t} behind {limbs} limbs");
                    assert!(!prepared.is_prepared(basis, limbs));
                    check_preparations(&compact, limbs, basis);
                }
            }
        }
    }

    #[test]
    fn bytes_are_those_that_are_kept() {
        let parameters = ParameterSet::B.parameters().unwrap();
        for t in [114_689, 137_438_822_401] {
            let modulus = PlaintextModulus::new(&parameters, t).unwrap();
            let plaintext = Plaintext::new(&modulus, vec![1; parameters.degree()]).unwrap();
            let kept = |factor: &Multiplier| {
                let coefficients = match &factor.coefficients {
                    Coefficients::Narrow(words) => size_of_val(&words[..]),
                    Coefficients::Wide(words) => size_of_val(&words[..]),
                };
                coefficients + factor.prepared.as_ref().map_or(0, |poly| size_of_val(poly.words()))
            };
            let compact = Multiplier::new(&plaintext);
            assert_eq!(kept(&compact), Multiplier::bytes(&parameters, t, false));
            let extended = compact.clone().prepare_extended(2).unwrap();
            assert_eq!(kept(&extended), Multiplier::bytes_with(&parameters, t, 3));
            assert_eq!(kept(&compact.prepare()), Multiplier::bytes(&parameters, t, true));
        }
    }
}
