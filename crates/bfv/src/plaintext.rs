//! Messages modulo `t` and their exact scale `round(q m / t)`.

use std::sync::{Arc, OnceLock};

use lanner_ring::{Coeff, Modulus, Poly, Shoup, product};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::product::Scaling;
use crate::reduce::{Factor, Reducer};
use crate::{BfvError, Parameters};

/// A plaintext modulus `2^6 <= t <= 2^41` with the constants that scale messages modulo `t` into ciphertexts and back.
///
/// Cloning shares the constants. Any number of plaintext moduli go with one set of keys.
#[derive(Clone, Debug)]
pub struct PlaintextModulus {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    parameters: Parameters,
    t: u64,
    reducer: Reducer,
    /// `-t^-1 mod q_i` for each limb.
    inverses: Vec<Shoup>,
    /// Constants for ciphertexts of `1, 2, ..., L` limbs.
    levels: Vec<Level>,
    /// Constants for products of ciphertexts of `1, 2, ..., L` limbs, made for the first product.
    scalings: Vec<OnceLock<Scaling>>,
}

/// Constants for `q = q_0 ... q_(l-1)`.
#[derive(Debug)]
struct Level {
    /// `q mod t`.
    residue: Factor,
    /// For each limb `(q / q_i)^-1 mod q_i`.
    punctured: Vec<Shoup>,
    /// For each limb `floor(t 2^shift / q_i)`.
    quotients: Vec<u64>,
    shift: u32,
}

impl PlaintextModulus {
    /// The largest `log2 t`.
    pub const BITS: u32 = 41;

    /// Prepares the constants.
    ///
    /// # Errors
    /// [`BfvError::PlaintextModulus`] unless `2^6 <= t <= 2^41` and `t` is a unit modulo every limb.
    pub fn new(parameters: &Parameters, t: u64) -> Result<Self, BfvError> {
        let refuse = |reason| Err(BfvError::PlaintextModulus { modulus: t, reason });
        if !(64..=1 << Self::BITS).contains(&t) {
            return refuse("it must lie between 2^6 and 2^41");
        }
        let moduli = parameters.moduli();
        if moduli.iter().any(|q| t.is_multiple_of(q.value())) {
            return refuse("it must not be a multiple of a ciphertext modulus");
        }
        let reducer = Reducer::new(t);
        let inverses = moduli.iter().map(|q| q.shoup(q.neg(q.inverse(q.reduce(t))))).collect();
        let levels = (1..=moduli.len()).map(|limbs| Level::new(&moduli[..limbs], t, reducer)).collect();
        let scalings = moduli.iter().map(|_| OnceLock::new()).collect();
        let parameters = parameters.clone();
        Ok(Self { inner: Arc::new(Inner { parameters, t, reducer, inverses, levels, scalings }) })
    }

    /// `t`.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.inner.t
    }

    /// The parameters of the ciphertexts.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.inner.parameters
    }

    /// Whether both have the same `t` and the same parameters.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        self.value() == other.value() && self.parameters().same(other.parameters())
    }

    /// `round(q m / t)` over the first `limbs` limbs, ties (only for even `t`) upwards.
    pub(crate) fn scale(&self, message: &Plaintext, limbs: usize) -> Poly<Coeff> {
        let Inner { parameters, t, reducer, inverses, levels, .. } = &*self.inner;
        let residue = levels[limbs - 1].residue;
        let half = t / 2;
        let mut poly = Poly::zero(&parameters.basis(limbs));
        // With u = (q m + h) mod t and h = floor(t / 2), the rounded quotient is (q m + h - u) / t, and q = 0 in each
        // limb: (u - h) (-1 / t).
        let residues = message.coefficients.iter().map(|m| reducer.add(reducer.mul(*m, residue), half));
        let residues = Zeroizing::new(residues.collect::<Vec<u64>>());
        for ((limb, modulus), inverse) in poly.limbs_mut().zip(parameters.moduli()).zip(inverses) {
            let offset = modulus.neg(modulus.reduce(half));
            modulus.reduce_slice(limb, &residues);
            for x in &mut *limb {
                *x = modulus.add(*x, offset);
            }
            modulus.mul_scalar_slice(limb, *inverse);
        }
        poly
    }

    /// `round(t x / q) mod t` for each coefficient `x` of a phase.
    ///
    /// The fraction is computed to within `2^-16` of the distance between two messages.
    pub(crate) fn unscale(&self, phase: &Poly<Coeff>) -> Plaintext {
        let Inner { parameters, reducer, levels, .. } = &*self.inner;
        let Level { punctured, quotients, shift, .. } = &levels[phase.basis().len() - 1];
        // x = sum_i y_i (q / q_i) mod q with y_i = x_i (q / q_i)^-1 mod q_i, so t x / q = sum_i t y_i / q_i mod t.
        let mut sums = Zeroizing::new(vec![1_u128 << (shift - 1); parameters.degree()]);
        let mut scaled = phase.clone();
        let constants = punctured.iter().zip(quotients);
        for ((limb, modulus), (inverse, quotient)) in
            scaled.limbs_mut().zip(parameters.moduli()).zip(constants)
        {
            modulus.mul_scalar_slice(limb, *inverse);
            for (sum, y) in sums.iter_mut().zip(&*limb) {
                *sum += product(*y, *quotient);
            }
        }
        // Each sum is below (L + 1) t 2^shift, so its integer part is a word.
        let coefficients = sums.iter().map(|sum| reducer.reduce((sum >> shift) as u64)).collect();
        Plaintext { modulus: self.clone(), coefficients }
    }

    /// The constants for products of ciphertexts of a number of limbs.
    ///
    /// # Errors
    /// None for parameters that were accepted.
    pub(crate) fn scaling(&self, limbs: usize) -> Result<&Scaling, BfvError> {
        let scaling = &self.inner.scalings[limbs - 1];
        if let Some(made) = scaling.get() {
            return Ok(made);
        }
        let made = Scaling::new(self.parameters(), self.value(), limbs)?;
        Ok(scaling.get_or_init(|| made))
    }

    /// # Errors
    /// [`BfvError::Mismatch`] unless both are the same.
    pub(crate) fn check_same(&self, other: &Self) -> Result<(), BfvError> {
        if self.same(other) { Ok(()) } else { Err(BfvError::Mismatch { what: "plaintext moduli" }) }
    }
}

impl Level {
    fn new(moduli: &[Modulus], t: u64, reducer: Reducer) -> Self {
        let residue = moduli.iter().fold(1, |product, q| reducer.mul(product, reducer.factor(q.value() % t)));
        let punctured = |i: usize| {
            let others = moduli.iter().enumerate().filter(|(k, _)| *k != i);
            let product = others.fold(1, |product, (_, q)| moduli[i].mul(product, q.value()));
            moduli[i].shoup(moduli[i].inverse(product))
        };
        // The largest shift for which every quotient is below 2^64.
        let bits = moduli.iter().map(Modulus::bits).min().unwrap_or(0);
        let shift = 62 + bits - (u64::BITS - t.leading_zeros());
        let quotient = |q: &Modulus| ((u128::from(t) << shift) / u128::from(q.value())) as u64;
        Self {
            residue: reducer.factor(residue),
            punctured: (0..moduli.len()).map(punctured).collect(),
            quotients: moduli.iter().map(quotient).collect(),
            shift,
        }
    }
}

/// A polynomial of degree below `N` with coefficients in `[0, t)`: what a ciphertext encrypts.
///
/// It may be secret: it is zeroized when dropped and has neither `Debug` nor `==`.
#[derive(Clone)]
pub struct Plaintext {
    modulus: PlaintextModulus,
    coefficients: Vec<u64>,
}

impl Plaintext {
    /// The polynomial with these coefficients.
    ///
    /// # Errors
    /// [`BfvError::Length`] unless there are `N`; [`BfvError::Range`] if one is not below `t`.
    pub fn new(modulus: &PlaintextModulus, coefficients: Vec<u64>) -> Result<Self, BfvError> {
        let plaintext = Self { modulus: modulus.clone(), coefficients };
        let (expected, got) = (modulus.parameters().degree(), plaintext.coefficients.len());
        if got != expected {
            return Err(BfvError::Length { expected, got });
        }
        let t = modulus.value();
        match plaintext.coefficients.iter().position(|value| *value >= t) {
            Some(index) => Err(BfvError::Range { index, modulus: t }),
            None => Ok(plaintext),
        }
    }

    /// The coefficients, each in `[0, t)`.
    #[must_use]
    pub fn coefficients(&self) -> &[u64] {
        &self.coefficients
    }

    /// The plaintext modulus.
    #[must_use]
    pub fn modulus(&self) -> &PlaintextModulus {
        &self.modulus
    }
}

impl Drop for Plaintext {
    fn drop(&mut self) {
        self.coefficients.zeroize();
    }
}

impl ZeroizeOnDrop for Plaintext {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ParameterSet;

    /// `round(q m / t)` by long division on 50-bit digits, modulo each limb.
    fn scale_naively(moduli: &[Modulus], t: u64, m: u64) -> Vec<u64> {
        // q m + floor(t / 2) as little-endian words.
        let mut words = vec![0_u64; 24];
        words[0] = m;
        for q in moduli {
            let mut carry = 0_u128;
            for word in &mut words {
                carry += u128::from(*word) * u128::from(q.value());
                *word = carry as u64;
                carry >>= 64;
            }
        }
        let mut carry = u128::from(t / 2);
        for word in &mut words {
            carry += u128::from(*word);
            *word = carry as u64;
            carry >>= 64;
        }
        let mut rest = 0_u128;
        for word in words.iter_mut().rev() {
            rest = rest << 64 | u128::from(*word);
            *word = (rest / u128::from(t)) as u64;
            rest %= u128::from(t);
        }
        let residue = |q: &Modulus| {
            let fold = |r: u128, word: &u64| (r << 64 | u128::from(*word)) % u128::from(q.value());
            words.iter().rev().fold(0, fold) as u64
        };
        moduli.iter().map(residue).collect()
    }

    #[test]
    fn scale_is_the_rounded_quotient_and_unscale_inverts_it() {
        for set in [ParameterSet::A1, ParameterSet::B, ParameterSet::L] {
            let parameters = set.parameters().unwrap();
            for t in [64, 65, 114_689, 1_073_692_673, 1 << 32, 137_438_822_401, (1 << 41) - 1, 1 << 41] {
                let modulus = PlaintextModulus::new(&parameters, t).unwrap();
                let edges = [0, 1, 2, t / 4, t / 2 - 1, t / 2, t / 2 + 1, t - 2, t - 1];
                let values: Vec<_> = (0..parameters.degree()).map(|i| edges[i % edges.len()]).collect();
                let message = Plaintext::new(&modulus, values.clone()).unwrap();
                for limbs in 1..=parameters.limbs() {
                    let scaled = modulus.scale(&message, limbs);
                    for (i, value) in values.iter().enumerate().take(edges.len()) {
                        let expected = scale_naively(&parameters.moduli()[..limbs], t, *value);
                        let got: Vec<_> = scaled.limbs().map(|limb| limb[i]).collect();
                        assert_eq!(got, expected, "{value} mod {t} at {limbs} limbs");
                    }
                    if parameters.log2_modulus(limbs) > (t as f64).log2() + 3.0 {
                        assert!(
                            modulus.unscale(&scaled).coefficients() == values,
                            "mod {t} at {limbs} limbs"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn noise_below_half_a_step_is_rounded_away() {
        let parameters = ParameterSet::A1.parameters().unwrap();
        let (t, limbs) = (1_073_692_673, 2);
        let modulus = PlaintextModulus::new(&parameters, t).unwrap();
        let values: Vec<_> = (0..parameters.degree() as u64).map(|i| i * 1_000_003 % t).collect();
        let message = Plaintext::new(&modulus, values.clone()).unwrap();
        let step = (parameters.log2_modulus(limbs) - (t as f64).log2()).exp2();
        for (fraction, survives) in [(0.499, true), (-0.499, true), (0.501, false), (-0.501, false)] {
            let mut phase = modulus.scale(&message, limbs);
            let noise = (step * fraction) as i128;
            for (limb, q) in phase.limbs_mut().zip(parameters.moduli()) {
                let noise = noise.rem_euclid(i128::from(q.value())) as u64;
                for x in limb {
                    *x = q.add(*x, noise);
                }
            }
            assert_eq!(modulus.unscale(&phase).coefficients() == values, survives, "{fraction}");
        }
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let parameters = ParameterSet::A1.parameters().unwrap();
        for t in [0, 1, 63, (1 << 41) + 1, u64::MAX] {
            assert!(matches!(PlaintextModulus::new(&parameters, t), Err(BfvError::PlaintextModulus { .. })));
        }
        let modulus = PlaintextModulus::new(&parameters, 65).unwrap();
        assert!(matches!(
            Plaintext::new(&modulus, vec![0; 5]),
            Err(BfvError::Length { expected: 4096, got: 5 })
        ));
        let mut values = vec![0; 4096];
        values[7] = 65;
        assert!(matches!(Plaintext::new(&modulus, values), Err(BfvError::Range { index: 7, modulus: 65 })));
    }
}
