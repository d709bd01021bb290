//! Reconstruction of the integer behind residues, by Garner's mixed-radix algorithm.
//!
//! For decoding and for measuring noise, at the holder of the key. Variable time only in the word count.

use crate::{Coeff, Modulus, Poly, RnsBasis};

/// An integer of any size: the centred representative of a residue vector.
#[derive(Clone)]
pub struct Centered {
    /// Whether the integer is below zero.
    pub negative: bool,
    /// The absolute value, least significant word first.
    pub magnitude: Vec<u64>,
}

impl Centered {
    /// `log2` of the absolute value, `-inf` for zero.
    #[must_use]
    pub fn log2(&self) -> f64 {
        let value = self.magnitude.iter().rev().fold((0.0, 0), |(value, scale): (f64, i32), word| {
            // Two leading words hold more than the precision of a double.
            if value > 2f64.powi(64) {
                (value, scale + 64)
            } else {
                (value * 2f64.powi(64) + *word as f64, scale)
            }
        });
        value.0.log2() + f64::from(value.1)
    }

    /// The integer, if it fits.
    #[must_use]
    pub fn to_i128(&self) -> Option<i128> {
        let (low, high) = self.magnitude.split_at(self.magnitude.len().min(2));
        let magnitude = low.iter().rev().fold(0u128, |value, word| value << 64 | u128::from(*word));
        let fits = high.iter().all(|word| *word == 0) && magnitude < 1 << 127;
        let magnitude = magnitude as i128;
        fits.then_some(if self.negative { -magnitude } else { magnitude })
    }
}

impl RnsBasis {
    /// The integer `x` with `|x| <= q/2` and `x = residues[i] mod q_i`.
    ///
    /// # Panics
    /// If there is not one reduced residue for each prime.
    #[must_use]
    pub fn reconstruct(&self, residues: &[u64]) -> Centered {
        assert_eq!(residues.len(), self.len(), "one residue for each prime");
        let digits = self.mixed_radix(residues);
        let value = self.from_mixed_radix(&digits);
        let all: Vec<_> = self.moduli().iter().map(|modulus| modulus.value() - 1).collect();
        // The digits q_i - 1 spell q - 1, and x is negative exactly if q - 1 - x < x.
        let complement = subtract(&self.from_mixed_radix(&all), &value);
        let negative = complement.iter().rev().lt(value.iter().rev());
        let magnitude = if negative { increment(complement) } else { value };
        Centered { negative, magnitude }
    }

    /// Digits `d_i < q_i` with `x = d_0 + q_0 (d_1 + q_1 (d_2 + ..))`.
    fn mixed_radix(&self, residues: &[u64]) -> Vec<u64> {
        let mut digits = residues.to_vec();
        for i in 0..digits.len() {
            for k in i + 1..digits.len() {
                let modulus = &self.moduli()[k];
                let difference = modulus.sub(digits[k], modulus.reduce(digits[i]));
                let inverse = modulus.inverse(self.moduli()[i].value());
                digits[k] = modulus.mul(difference, inverse);
            }
        }
        digits
    }

    #[allow(clippy::wrong_self_convention)] // "From" names the number system that is left.
    fn from_mixed_radix(&self, digits: &[u64]) -> Vec<u64> {
        let mut value = vec![0; digits.len()];
        for (digit, modulus) in digits.iter().zip(self.moduli()).rev() {
            multiply_add(&mut value, modulus, *digit);
        }
        value
    }
}

impl Poly<Coeff> {
    /// Coefficient `i` as an integer in `[-q/2, q/2]`.
    ///
    /// # Panics
    /// If `i` is not below the degree.
    #[must_use]
    pub fn coefficient(&self, i: usize) -> Centered {
        let residues: Vec<_> = self.limbs().map(|limb| limb[i]).collect();
        self.basis().reconstruct(&residues)
    }

    /// `log2` of the largest absolute coefficient, `-inf` for zero: the size of a noise polynomial.
    #[must_use]
    pub fn log2_norm(&self) -> f64 {
        (0..self.basis().degree()).map(|i| self.coefficient(i).log2()).fold(f64::NEG_INFINITY, f64::max)
    }
}

/// `value = value * q + digit`; the result fits.
fn multiply_add(value: &mut [u64], modulus: &Modulus, digit: u64) {
    let mut carry = u128::from(digit);
    for word in value {
        carry += u128::from(*word) * u128::from(modulus.value());
        *word = carry as u64;
        carry >>= 64;
    }
}

/// `a - b` for `a >= b` of equal length.
fn subtract(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut borrow = false;
    let difference = |(x, y): (&u64, &u64)| {
        let (partial, under) = x.overflowing_sub(*y);
        let (word, again) = partial.overflowing_sub(u64::from(borrow));
        borrow = under || again;
        word
    };
    a.iter().zip(b).map(difference).collect()
}

/// `value + 1`; the result fits.
fn increment(mut value: Vec<u64>) -> Vec<u64> {
    for word in &mut value {
        let (sum, carry) = word.overflowing_add(1);
        *word = sum;
        if !carry {
            break;
        }
    }
    value
}
