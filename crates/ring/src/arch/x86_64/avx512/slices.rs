//! Element-wise operations on AVX-512 IFMA.
//!
//! Each function handles the whole vectors of its slices and returns how many elements that were; the portable twin
//! does the rest.

use std::arch::x86_64::*;

use super::{BITS, Factor, Ifma, load, splat, store};
use crate::Modulus;
use crate::modulus::Shoup;

/// Applies `map` to vectors of `a` and the same positions of `b`; returns the number of elements handled.
///
/// # Safety
/// The slices are of equal length, and the machine has the instruction set of `map`.
#[inline(always)]
unsafe fn zip(a: &mut [u64], b: &[u64], map: impl Fn(__m512i, __m512i) -> __m512i) -> usize {
    let whole = a.len() / 8 * 8;
    let (a, b) = (a.as_mut_ptr(), b.as_ptr());
    for i in (0..whole).step_by(8) {
        // SAFETY: eight words from `i` on are inside both slices.
        unsafe { store(a.add(i), map(load(a.add(i)), load(b.add(i)))) };
    }
    whole
}

/// `a += b`.
///
/// # Safety
/// As for every function here: slices of equal length, all values reduced unless said otherwise, and a machine
/// with AVX-512 F, DQ and IFMA.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn add_assign(modulus: &Modulus, a: &mut [u64], b: &[u64]) -> usize {
    // SAFETY: forwarded.
    unsafe {
        let k = Ifma::new(modulus);
        zip(a, b, |x, y| k.subtract_once(_mm512_add_epi64(x, y)))
    }
}

/// `a -= b`.
///
/// # Safety
/// See [`add_assign`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn sub_assign(modulus: &Modulus, a: &mut [u64], b: &[u64]) -> usize {
    // SAFETY: forwarded.
    unsafe {
        let k = Ifma::new(modulus);
        zip(a, b, |x, y| k.subtract(x, y))
    }
}

/// `a *= b`.
///
/// # Safety
/// See [`add_assign`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn mul_assign(modulus: &Modulus, a: &mut [u64], b: &[u64]) -> usize {
    // SAFETY: forwarded.
    unsafe {
        let k = Ifma::new(modulus);
        let carry = Factor::new(modulus.reduce(1 << BITS), modulus);
        zip(a, b, |x, y| {
            let low = _mm512_madd52lo_epu64(k.zero, x, y);
            let high = _mm512_madd52hi_epu64(k.zero, x, y);
            // 2q of each summand stay below 2^52.
            k.finish(k.reduce(k.mul_add(k.reduce(low), high, carry)))
        })
    }
}

/// `a *= w`.
///
/// # Safety
/// See [`add_assign`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn mul_scalar(modulus: &Modulus, a: &mut [u64], w: Shoup) -> usize {
    let whole = a.len() / 8 * 8;
    let a = a.as_mut_ptr();
    // SAFETY: eight words from `i` on are inside the slice; the rest is forwarded.
    unsafe {
        let k = Ifma::new(modulus);
        let factor = Factor::new(w.w, modulus);
        for i in (0..whole).step_by(8) {
            store(a.add(i), k.finish(k.mul_add(k.zero, load(a.add(i)), factor)));
        }
    }
    whole
}

/// `a = (a - b) w`.
///
/// # Safety
/// See [`add_assign`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn sub_mul(modulus: &Modulus, a: &mut [u64], b: &[u64], w: Shoup) -> usize {
    // SAFETY: forwarded.
    unsafe {
        let k = Ifma::new(modulus);
        let factor = Factor::new(w.w, modulus);
        zip(a, b, |x, y| {
            let difference = _mm512_sub_epi64(_mm512_add_epi64(x, k.q), y);
            k.finish(k.mul_add(k.zero, difference, factor))
        })
    }
}

/// `out = a mod q` for any words `a`.
///
/// # Safety
/// See [`add_assign`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn reduce(modulus: &Modulus, out: &mut [u64], a: &[u64]) -> usize {
    // SAFETY: forwarded.
    unsafe {
        let k = Ifma::new(modulus);
        let carry = Factor::new(modulus.reduce(1 << BITS), modulus);
        zip(out, a, |_, x| {
            let high = _mm512_srli_epi64::<BITS>(x);
            k.finish(k.reduce(k.mul_add(k.reduce(x), high, carry)))
        })
    }
}

/// `out = r mod q` with `r` the centred representative of `a mod from`, nothing if `from` is too large.
///
/// # Safety
/// See [`add_assign`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn lift_centered(modulus: &Modulus, out: &mut [u64], a: &[u64], from: &Modulus) -> usize {
    if from.value() >= 1 << 50 {
        return 0;
    }
    let (q, half) = (modulus.value(), from.value() / 2);
    // SAFETY: forwarded.
    unsafe {
        if half < q {
            // The representative is in (-q, q): above the half it is `x - from`, and that plus `q` is its residue.
            let (half, offset) = (splat(half), splat(q.wrapping_sub(from.value())));
            return zip(out, a, |_, x| _mm512_mask_add_epi64(x, _mm512_cmpgt_epu64_mask(x, half), x, offset));
        }
        let (k, source) = (Ifma::new(modulus), Ifma::new(from));
        let (half, shift) = (splat(half), splat(modulus.reduce(half)));
        zip(out, a, |_, x| {
            let shifted = source.subtract_once(_mm512_add_epi64(x, half));
            k.subtract(k.finish(k.reduce(shifted)), shift)
        })
    }
}
