//! Element-wise operations on AVX2.
//!
//! Each function handles the whole vectors of its slices and returns how many elements that were; the portable twin
//! does the rest.

use std::arch::x86_64::*;

use super::{Factor, Floats, load, store};
use crate::Modulus;
use crate::modulus::Shoup;

/// Applies `map` to vectors of `a` and the same positions of `b`; returns the number of elements handled.
///
/// # Safety
/// The slices are of equal length and hold integers below `2^52`, as do the results of `map`, and the machine has the
/// instruction set.
#[inline(always)]
unsafe fn zip(k: Floats, a: &mut [u64], b: &[u64], map: impl Fn(__m256d, __m256d) -> __m256d) -> usize {
    let whole = a.len() / 4 * 4;
    let (a, b) = (a.as_mut_ptr(), b.as_ptr());
    for i in (0..whole).step_by(4) {
        // SAFETY: four words from `i` on are inside both slices.
        unsafe { store(k, a.add(i), map(load(k, a.add(i)), load(k, b.add(i)))) };
    }
    whole
}

/// `a += b`.
///
/// # Safety
/// As for every function here: slices of equal length, all values reduced, and a machine with AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(crate) unsafe fn add_assign(modulus: &Modulus, a: &mut [u64], b: &[u64]) -> usize {
    // SAFETY: forwarded.
    unsafe {
        let k = Floats::new(modulus);
        zip(k, a, b, |x, y| k.lift(_mm256_sub_pd(_mm256_add_pd(x, y), k.q)))
    }
}

/// `a -= b`.
///
/// # Safety
/// See [`add_assign`].
#[target_feature(enable = "avx2,fma")]
pub(crate) unsafe fn sub_assign(modulus: &Modulus, a: &mut [u64], b: &[u64]) -> usize {
    // SAFETY: forwarded.
    unsafe {
        let k = Floats::new(modulus);
        zip(k, a, b, |x, y| k.lift(_mm256_sub_pd(x, y)))
    }
}

/// `a *= b`.
///
/// # Safety
/// See [`add_assign`].
#[target_feature(enable = "avx2,fma")]
pub(crate) unsafe fn mul_assign(modulus: &Modulus, a: &mut [u64], b: &[u64]) -> usize {
    // SAFETY: forwarded.
    unsafe {
        let k = Floats::new(modulus);
        zip(k, a, b, |x, y| k.lift(k.mul_pair(x, y)))
    }
}

/// `a *= w`.
///
/// # Safety
/// See [`add_assign`].
#[target_feature(enable = "avx2,fma")]
pub(crate) unsafe fn mul_scalar(modulus: &Modulus, a: &mut [u64], w: Shoup) -> usize {
    let whole = a.len() / 4 * 4;
    let a = a.as_mut_ptr();
    // SAFETY: four words from `i` on are inside the slice; the rest is forwarded.
    unsafe {
        let (k, factor) = (Floats::new(modulus), Factor::new(w.w, modulus));
        for i in (0..whole).step_by(4) {
            store(k, a.add(i), k.lift(k.mul(load(k, a.add(i)), factor)));
        }
    }
    whole
}

/// `a = (a - b) w`.
///
/// # Safety
/// See [`add_assign`].
#[target_feature(enable = "avx2,fma")]
pub(crate) unsafe fn sub_mul(modulus: &Modulus, a: &mut [u64], b: &[u64], w: Shoup) -> usize {
    // SAFETY: forwarded.
    unsafe {
        let (k, factor) = (Floats::new(modulus), Factor::new(w.w, modulus));
        zip(k, a, b, |x, y| k.lift(k.mul(_mm256_sub_pd(x, y), factor)))
    }
}

/// `out = r mod q` with `r` the centred representative of `a mod from`; nothing if that exceeds what [`Floats::reduce`]
/// takes.
///
/// # Safety
/// See [`add_assign`].
#[target_feature(enable = "avx2,fma")]
pub(crate) unsafe fn lift_centered(modulus: &Modulus, out: &mut [u64], a: &[u64], from: &Modulus) -> usize {
    if from.value() >= 1 << 50 {
        return 0;
    }
    // SAFETY: forwarded.
    unsafe {
        let (k, source) = (Floats::new(modulus), Floats::new(from));
        let half = _mm256_set1_pd((from.value() / 2) as f64);
        zip(k, out, a, |_, x| {
            let above = _mm256_cmp_pd::<_CMP_GT_OQ>(x, half);
            let centered = _mm256_sub_pd(x, _mm256_and_pd(above, source.q));
            k.lift(k.reduce(centered))
        })
    }
}
