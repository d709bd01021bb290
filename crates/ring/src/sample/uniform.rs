//! Uniform residues.

use rand_core::CryptoRng;

use crate::{Domain, Modulus, Poly, RnsBasis};

/// A uniform element of `R_q`, in either domain.
///
/// Limb after limb as [`uniform_below`]. The number of bytes drawn depends on the rejected words only, which
/// carry no information on the result.
#[must_use]
pub fn uniform<D: Domain>(basis: &RnsBasis, rng: &mut (impl CryptoRng + ?Sized)) -> Poly<D> {
    let mut poly = Poly::zero(basis);
    for (limb, modulus) in poly.limbs_mut().zip(basis.moduli()) {
        uniform_below(modulus, limb, rng);
    }
    poly
}

/// Fills `out` with uniform values in `[0, q)`.
///
/// Draws one word for each value, keeps its low `bits(q)` bits, then draws again for those not below `q`,
/// in order.
pub fn uniform_below(modulus: &Modulus, out: &mut [u64], rng: &mut (impl CryptoRng + ?Sized)) {
    let q = modulus.value();
    let mask = u64::MAX >> (u64::BITS - modulus.bits());
    rng.fill_bytes(bytemuck::must_cast_slice_mut(out));
    for value in out {
        *value = u64::from_le(*value) & mask;
        while *value >= q {
            *value = rng.next_u64() & mask;
        }
    }
}
