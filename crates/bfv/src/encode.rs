//! Encodings of vectors into plaintext polynomials.

mod coefficients;
mod encoded;
mod form;
mod periodic;
mod slots;

pub use coefficients::CoefficientEncoder;
pub use encoded::Encoded;
pub(crate) use encoded::check_length;
pub use form::MultiplierForm;
pub use periodic::{PeriodicEncoder, PeriodicForm, PeriodicMultiplier};
pub use slots::SlotEncoder;

use std::ops::Deref;

use bytemuck::{must_cast_slice, must_cast_slice_mut};
use lanner_ring::{Buffer, Modulus, RnsBasis, Words};
use zeroize::ZeroizeOnDrop;

use crate::{BfvError, Parameters, Plaintext};

/// A plaintext polynomial lifted to centred integers, for products with ciphertexts.
///
/// Its coefficients are kept, 4 or 8 bytes each. A *prepared* one also keeps its values modulo limbs, ready to multiply, which takes
/// [`Self::bytes`] several times larger; all others are computed by a transform whenever they are needed.
///
/// It usually holds weights: it is erased when dropped and has neither `Debug` nor `==`.
#[derive(Clone)]
pub struct Multiplier {
    form: MultiplierForm,
    /// Centred, in the smallest words that hold any modulo `t`: `i32` or `i64`.
    coefficients: Words,
    /// Modulo each prime of the form's prepared basis.
    values: Words,
}

/// The values of a multiplier modulo one prime.
pub(crate) enum Values<'m> {
    Prepared(&'m [u64]),
    Lifted(Buffer),
}

impl Multiplier {
    /// Lifts the coefficients of `plaintext` to `(-t/2, t/2]`.
    pub(crate) fn new(plaintext: &Plaintext) -> Self {
        let (form, t) = (MultiplierForm::new(plaintext.modulus()), plaintext.modulus().value());
        Self::of(form, plaintext.coefficients().iter().map(|value| center(*value, t)))
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
        Ok(Self::of(MultiplierForm::constant(parameters, bound), [value]))
    }

    /// One with these first coefficients and no others.
    fn of(form: MultiplierForm, coefficients: impl IntoIterator<Item = i64>) -> Self {
        let mut words = Buffer::zeroed(form.coefficients());
        if form.is_narrow {
            let places = must_cast_slice_mut::<u64, i32>(&mut words).iter_mut();
            places.zip(coefficients).for_each(|(place, value)| *place = value as i32);
        } else {
            let places = must_cast_slice_mut::<u64, i64>(&mut words).iter_mut();
            places.zip(coefficients).for_each(|(place, value)| *place = value);
        }
        Self { form, coefficients: words.into(), values: Buffer::default().into() }
    }

    /// Computes the values modulo all limbs, once for all products.
    #[must_use]
    pub fn prepare(self) -> Self {
        let basis = self.form.parameters.basis(self.form.parameters.limbs());
        self.prepare_over(&basis)
    }

    /// Computes the values modulo as many limbs as the ciphertexts have.
    ///
    /// # Errors
    /// [`BfvError::Limbs`] unless the parameters have so many.
    pub fn prepare_at(self, limbs: usize) -> Result<Self, BfvError> {
        self.form.parameters.check_limbs(limbs)?;
        let basis = self.form.parameters.basis(limbs);
        Ok(self.prepare_over(&basis))
    }

    /// Computes the values modulo so many limbs and the special modulus: what [extended](crate::ExtendedCombinations) products take.
    ///
    /// # Errors
    /// [`BfvError::NoSpecialModulus`]; as [`Self::prepare_at`].
    pub fn prepare_extended(self, limbs: usize) -> Result<Self, BfvError> {
        let basis = self.form.parameters.key_switching(limbs)?.clone();
        Ok(self.prepare_over(&basis))
    }

    fn prepare_over(mut self, basis: &RnsBasis) -> Self {
        let mut words = Buffer::zeroed(basis.len() * basis.degree());
        for (j, values) in words.chunks_exact_mut(basis.degree()).enumerate() {
            self.lift(self.place(basis, j), values);
        }
        (self.values, self.form.prepared) = (words.into(), Some(basis.clone()));
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
        let mut values = Buffer::zeroed(self.form.parameters.degree());
        self.lift(self.place(basis, limb), &mut values);
        Values::Lifted(values)
    }

    fn at_hand(&self, basis: &RnsBasis, limb: usize) -> Option<&[u64]> {
        let prepared = self.form.prepared.as_ref()?;
        let same = |j: &usize| prepared.moduli()[*j].value() == basis.moduli()[limb].value();
        // The special modulus stands behind as many limbs as there are.
        let (last, n) = (prepared.len() - 1, prepared.degree());
        [limb.min(last), last].iter().find(|j| same(j)).map(|j| &self.values[j * n..(j + 1) * n])
    }

    /// A public bound on the 2-norm of its coefficients.
    pub(crate) fn norm(&self) -> f64 {
        self.form.norm
    }

    /// Where a limb of such a basis stands among all: there, unless it is the special modulus.
    fn place(&self, basis: &RnsBasis, limb: usize) -> usize {
        let same = |own: &Modulus| own.value() == basis.moduli()[limb].value();
        let parameters = &self.form.parameters;
        if parameters.moduli().get(limb).is_some_and(same) { limb } else { parameters.limbs() }
    }

    fn lift(&self, limb: usize, values: &mut [u64]) {
        let basis = self.form.parameters.extended();
        let modulus = &basis.moduli()[limb];
        if self.form.is_narrow {
            let words = must_cast_slice::<u64, i32>(&self.coefficients);
            self.reduce(modulus, values, words.iter().map(|word| i64::from(*word)));
        } else {
            self.reduce(modulus, values, must_cast_slice::<u64, i64>(&self.coefficients).iter().copied());
        }
        basis.ntts()[limb].forward(values);
    }

    /// The residues of the coefficients.
    fn reduce(&self, modulus: &Modulus, residues: &mut [u64], coefficients: impl Iterator<Item = i64>) {
        let q = modulus.value();
        let pairs = residues.iter_mut().zip(coefficients);
        if self.form.largest < q {
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
        let covers = self.form.parameters.has_basis(basis);
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

/// The words erase themselves.
impl ZeroizeOnDrop for Multiplier {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use lanner_ring::{Extent, Region};

    use super::*;
    use crate::{CoefficientFactor, ParameterSet, PlaintextModulus, parameters};

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
        let parameters = &compact.form.parameters;
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

    /// Words that somebody else keeps.
    struct Kept(Buffer);

    impl Region for Kept {
        fn words(&self) -> &[u64] {
            &self.0
        }
    }

    /// What lies elsewhere has the words of what was put there, and no other number of words is taken.
    fn check_elsewhere<E: Encoded>(form: &E::Form, factor: &E) {
        let words = factor.words().concat();
        assert_eq!(words.len(), E::length(form));
        let kept: Arc<dyn Region> = Arc::new(Kept(Buffer::from(&words[..])));
        let extent = |range| Extent::new(Arc::clone(&kept), range).unwrap();
        let elsewhere = E::over(form, extent(0..words.len())).unwrap();
        assert!(elsewhere.words().concat() == words);
        for len in [0, words.len() - 1] {
            assert!(matches!(E::over(form, extent(0..len)), Err(BfvError::Length { .. })));
        }
    }

    #[test]
    fn factors_that_lie_elsewhere_are_those_that_were_put_there() {
        let parameters = ParameterSet::B.parameters().unwrap();
        for t in [114_689, 137_438_822_401] {
            let modulus = PlaintextModulus::new(&parameters, t).unwrap();
            let coefficients = (0..parameters.degree() as u64).map(|i| (i * i * 77) % t).collect();
            let compact = Multiplier::new(&Plaintext::new(&modulus, coefficients).unwrap());
            let constant = Multiplier::constant(&parameters, -5, t / 2).unwrap();
            let forms = [MultiplierForm::new(&modulus), MultiplierForm::constant(&parameters, t / 2)];
            for (form, factor) in forms.into_iter().zip([compact, constant]) {
                check_elsewhere(&form, &factor);
                check_elsewhere(&form.clone().prepare(), &factor.clone().prepare());
                check_elsewhere(&form.prepare_extended(2).unwrap(), &factor.prepare_extended(2).unwrap());
            }
        }
        let encoder = SlotEncoder::new(&parameters, 1_032_193).unwrap().periodic(64).unwrap();
        let values: Vec<u64> = (0..128).collect();
        check_elsewhere(&encoder.form(2).unwrap(), &encoder.multiplier(&values, 2).unwrap());
        let coefficients: Vec<i32> = (0..parameters.degree() as i32).collect();
        check_elsewhere(&parameters, &CoefficientFactor::new(&parameters, &coefficients).unwrap());
    }

    #[test]
    fn bytes_are_those_that_are_kept() {
        let parameters = ParameterSet::B.parameters().unwrap();
        for t in [114_689, 137_438_822_401] {
            let modulus = PlaintextModulus::new(&parameters, t).unwrap();
            let plaintext = Plaintext::new(&modulus, vec![1; parameters.degree()]).unwrap();
            let kept = |factor: &Multiplier| factor.words().into_iter().map(size_of_val).sum::<usize>();
            let compact = Multiplier::new(&plaintext);
            assert_eq!(kept(&compact), Multiplier::bytes(&parameters, t, false));
            let extended = compact.clone().prepare_extended(2).unwrap();
            assert_eq!(kept(&extended), Multiplier::bytes_with(&parameters, t, 3));
            assert_eq!(kept(&compact.prepare()), Multiplier::bytes(&parameters, t, true));
        }
    }
}
