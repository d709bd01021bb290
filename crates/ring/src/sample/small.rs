//! Small secret polynomials, in constant time.

use rand_core::CryptoRng;
use zeroize::Zeroize;

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
/// ([ADPS16] section 4, <https://eprint.iacr.org/2015/1092>): security rests on the variance, and two
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

/// One word for each coefficient, mapped to a small integer and reduced modulo each prime.
fn small(basis: &RnsBasis, rng: &mut (impl CryptoRng + ?Sized), map: impl Fn(u64) -> i64) -> Poly<Coeff> {
    let mut words = Buffer::zeroed(basis.degree());
    rng.fill_bytes(bytemuck::must_cast_slice_mut(&mut words));
    let mut poly = Poly::zero(basis);
    for (limb, modulus) in poly.limbs_mut().zip(basis.moduli()) {
        for (value, word) in limb.iter_mut().zip(words.iter()) {
            *value = residue(modulus, map(u64::from_le(*word)));
        }
    }
    words.zeroize();
    poly
}

/// `value mod q`, by reduction as a small modulus need not exceed the values.
fn residue(modulus: &Modulus, value: i64) -> u64 {
    modulus.reduce_signed(value)
}
