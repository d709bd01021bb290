//! Small secret polynomials, in constant time.

use rand_core::CryptoRng;

use crate::buffer::Buffer;
use crate::modulus::Modulus;
use crate::{Coeff, Poly, RnsBasis};

/// Standard deviation of [`error`]: `sqrt(10.5) = 3.24`, the least of its family not below 3.2.
pub const ERROR_STD: f64 = 3.240_370_349_203_93;

/// Largest absolute value of [`error`].
pub const ERROR_BOUND: u64 = FLIPS as u64;

/// Coin flips on each side of the centred binomial.
const FLIPS: u32 = 21;

/// Independent coefficients, uniform in `{-1, 0, 1}` up to a bias of `2^-64`.
#[must_use]
pub fn ternary(basis: &RnsBasis, rng: &mut (impl CryptoRng + ?Sized)) -> Poly<Coeff> {
    // floor(3 w / 2^64) - 1.
    small(basis, rng, |word| ((u128::from(word) * 3) >> 64) as i64 - 1)
}

/// Independent coefficients from the centred binomial distribution with 21 flips a side.
///
/// Variance 10.5, bounded by [`ERROR_BOUND`]. It stands for the rounded Gaussian of deviation 3.2, as is customary
/// ([ADPS16](https://eprint.iacr.org/2015/1092) section 4): security rests on the variance, and two
/// population counts need no table.
#[must_use]
pub fn error(basis: &RnsBasis, rng: &mut (impl CryptoRng + ?Sized)) -> Poly<Coeff> {
    let mask = (1 << FLIPS) - 1;
    small(basis, rng, |word| {
        let heads = (word & mask).count_ones();
        let tails = (word >> FLIPS & mask).count_ones();
        i64::from(heads) - i64::from(tails)
    })
}

/// One word for each coefficient, mapped to an integer of at most [`ERROR_BOUND`], as residues modulo each prime.
fn small(basis: &RnsBasis, rng: &mut (impl CryptoRng + ?Sized), map: impl Fn(u64) -> i64) -> Poly<Coeff> {
    let mut words = Buffer::zeroed(basis.degree());
    rng.fill_bytes(bytemuck::must_cast_slice_mut(&mut words));
    for word in words.iter_mut() {
        *word = map(u64::from_le(*word)) as u64;
    }
    let mut poly = Poly::zero(basis);
    for (limb, modulus) in poly.limbs_mut().zip(basis.moduli()) {
        residues(modulus, limb, &words);
    }
    poly
}

/// `out = values mod q`, for signed values of at most [`ERROR_BOUND`].
fn residues(modulus: &Modulus, out: &mut [u64], values: &[u64]) {
    let q = modulus.value();
    for (residue, value) in out.iter_mut().zip(values) {
        let value = *value as i64;
        // Which of the two is public; adding q to the negative ones is enough where q exceeds them.
        *residue = if q > ERROR_BOUND {
            (value as u64).wrapping_add(q & (value >> 63) as u64)
        } else {
            modulus.reduce_signed(value)
        };
    }
}
