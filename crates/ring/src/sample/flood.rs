//! Wide uniform noise, which hides what stands below it.

use rand_core::CryptoRng;
use zeroize::Zeroize;

use crate::buffer::Buffer;
use crate::{Coeff, Poly, RnsBasis};

/// Independent coefficients, uniform in `[-2^bits, 2^bits)`, as residues; constant time.
///
/// The range may exceed `q`; the result is then the residue class.
///
/// # Panics
/// If `bits` exceeds 120.
#[must_use]
pub fn flood(basis: &RnsBasis, bits: u32, rng: &mut (impl CryptoRng + ?Sized)) -> Poly<Coeff> {
    assert!(bits <= 120, "a flooding range of at most 2^121");
    let n = basis.degree();
    let mut words = Buffer::zeroed(2 * n);
    rng.fill_bytes(bytemuck::must_cast_slice_mut(&mut words));
    let (low, high) = words.split_at(n);
    let mask = (1u128 << (bits + 1)) - 1;
    let mut poly = Poly::zero(basis);
    for (limb, modulus) in poly.limbs_mut().zip(basis.moduli()) {
        let offset = modulus.reduce_u128(1 << bits);
        for (value, (low, high)) in limb.iter_mut().zip(low.iter().zip(high)) {
            let wide = u128::from(u64::from_le(*high)) << 64 | u128::from(u64::from_le(*low));
            *value = modulus.sub(modulus.reduce_u128(wide & mask), offset);
        }
    }
    words.zeroize();
    poly
}
