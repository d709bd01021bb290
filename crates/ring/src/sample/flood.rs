//! Wide noise, which hides what stands below it.

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::buffer::Buffer;
use crate::{Coeff, Poly, RnsBasis};

/// Independent coefficients, as residues; constant time. Each is the sum of three independent uniform integers in `[0, 2^bits)`,
/// less `3 * 2^(bits - 1)`: it lies in `[-1.5 * 2^bits, 1.5 * 2^bits)`.
///
/// The range may exceed `q`; the result is then the residue class.
///
/// # Panics
/// Unless `bits` lies in `1..=120`.
#[must_use]
pub fn flood(basis: &RnsBasis, bits: u32, rng: &mut (impl CryptoRng + ?Sized)) -> Poly<Coeff> {
    assert!((1..=120).contains(&bits), "a flooding range of at most 3 * 2^120");
    let n = basis.degree();
    let mask = (1u128 << bits) - 1;
    let mut sums = Zeroizing::new(vec![0u128; n]);
    let mut words = Buffer::zeroed(2 * n);
    for _ in 0..TERMS {
        rng.fill_bytes(bytemuck::must_cast_slice_mut(&mut words));
        let (low, high) = words.split_at(n);
        for (sum, (low, high)) in sums.iter_mut().zip(low.iter().zip(high)) {
            let wide = u128::from(u64::from_le(*high)) << 64 | u128::from(u64::from_le(*low));
            *sum += wide & mask;
        }
    }
    let mut poly = Poly::zero(basis);
    for (limb, modulus) in poly.limbs_mut().zip(basis.moduli()) {
        let offset = modulus.reduce_u128(TERMS << (bits - 1));
        for (value, sum) in limb.iter_mut().zip(&*sums) {
            *value = modulus.sub(modulus.reduce_u128(*sum), offset);
        }
    }
    poly
}

/// With two the distribution is not smooth enough for a shift to be hidden by its square; more are wider for no gain.
const TERMS: u128 = 3;
