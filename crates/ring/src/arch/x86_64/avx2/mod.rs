//! Kernels for AVX2 with fused multiply-add, for `q < 2^50`.
//!
//! AVX2 multiplies only 32-bit integers, but its doubles hold integers below `2^53` exactly. With `p = fl(a b)`, the
//! rounding error `a b - p` and `p - c q` for the rounded quotient `c` are both exact by fused multiply-add, so their
//! sum is `a b mod q` in a small signed range ([HLQ16], <https://arxiv.org/abs/1407.3383>, section 4).
//! Every value below is an integer. Fused multiply-add and addition take the same time whatever the operands, as no
//! subnormal number, infinity or NaN can occur.
#![allow(unsafe_code)] // Vector loads and stores, and intrinsics in functions that inherit the instruction set.

mod slices;
mod sums;
mod transform;

use std::arch::x86_64::*;

use crate::Modulus;
use crate::arch::{Kernels, portable};

/// For moduli below `2^50`.
pub(super) const KERNELS: Kernels = Kernels {
    name: "Avx2",
    limit: 1 << 50,
    roots: transform::roots,
    add_assign: slices::add_assign,
    sub_assign: slices::sub_assign,
    mul_assign: slices::mul_assign,
    mul_scalar: slices::mul_scalar,
    sub_mul: slices::sub_mul,
    lift_centered: slices::lift_centered,
    dot: [sums::dot::<false>, sums::dot::<true>],
    combine: [sums::combine::<false>, sums::combine::<true>],
    ..portable::KERNELS
};

/// Constants of one modulus, each in all lanes.
#[derive(Clone, Copy)]
pub(super) struct Floats {
    q: __m256d,
    /// `fl(1 / q)`.
    inverse: __m256d,
    /// `1.5 * 2^52`: adding it to a value below `2^51` rounds the sum to an integer.
    rounder: __m256d,
    /// `2^52`, whose last bits are those of an integer added to it.
    shift: __m256d,
}

/// A factor `w` in `(-q/2, q/2]` and `fl(w / q)`.
#[derive(Clone, Copy)]
pub(super) struct Factor {
    w: __m256d,
    quotient: __m256d,
}

/// The words of a [`Factor`] of one lane.
pub(super) fn parts(w: u64, modulus: &Modulus) -> [f64; 2] {
    let centered = modulus.center(w) as f64;
    [centered, centered / modulus.value() as f64]
}

// SAFETY of every function on registers below: the caller runs on a machine with the instruction set; arithmetic on
// registers has no other requirement.
impl Floats {
    #[inline(always)]
    unsafe fn new(modulus: &Modulus) -> Self {
        let q = modulus.value() as f64;
        // SAFETY: see above.
        unsafe {
            Self {
                q: _mm256_set1_pd(q),
                inverse: _mm256_set1_pd(1.0 / q),
                rounder: _mm256_set1_pd(1.5 * 2f64.powi(52)),
                shift: _mm256_set1_pd(2f64.powi(52)),
            }
        }
    }

    /// Integers below `2^52` to doubles.
    #[inline(always)]
    unsafe fn to_doubles(self, x: __m256i) -> __m256d {
        // SAFETY: see above.
        unsafe { _mm256_sub_pd(_mm256_or_pd(_mm256_castsi256_pd(x), self.shift), self.shift) }
    }

    /// Doubles in `[0, 2^52)` to integers.
    #[inline(always)]
    unsafe fn to_integers(self, x: __m256d) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_castpd_si256(_mm256_xor_pd(_mm256_add_pd(x, self.shift), self.shift)) }
    }

    /// `y w mod q` for `|y| < 4q`; the result is at most `(1/2 + |y| / 16q) q` in absolute value.
    #[inline(always)]
    unsafe fn mul(self, y: __m256d, w: Factor) -> __m256d {
        // SAFETY: see above.
        unsafe {
            let quotient = _mm256_sub_pd(_mm256_fmadd_pd(y, w.quotient, self.rounder), self.rounder);
            self.product_minus(y, w.w, quotient)
        }
    }

    /// `x y mod q` for `x, y` in `[0, q)`; the result is at most `11q/16` in absolute value.
    #[inline(always)]
    unsafe fn mul_pair(self, x: __m256d, y: __m256d) -> __m256d {
        // SAFETY: see above.
        unsafe {
            // The rounded x / q is off by 3 * 2^-54 at most, so x y / q by 3/16.
            let ratio = _mm256_mul_pd(x, self.inverse);
            let quotient = _mm256_sub_pd(_mm256_fmadd_pd(ratio, y, self.rounder), self.rounder);
            self.product_minus(x, y, quotient)
        }
    }

    /// `a b - c q`, exactly, where that is below `2^53`.
    #[inline(always)]
    unsafe fn product_minus(self, a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        // SAFETY: see above.
        unsafe {
            let product = _mm256_mul_pd(a, b);
            let error = _mm256_fmsub_pd(a, b, product);
            _mm256_add_pd(_mm256_fnmadd_pd(c, self.q, product), error)
        }
    }

    /// `x` of at most `8q` in absolute value to at most `q/2`.
    #[inline(always)]
    unsafe fn reduce(self, x: __m256d) -> __m256d {
        // SAFETY: see above.
        unsafe {
            let quotient = _mm256_sub_pd(_mm256_fmadd_pd(x, self.inverse, self.rounder), self.rounder);
            _mm256_fnmadd_pd(quotient, self.q, x)
        }
    }

    /// `x` in `(-q, q)` to `[0, q)`.
    #[inline(always)]
    unsafe fn lift(self, x: __m256d) -> __m256d {
        // SAFETY: see above.
        unsafe {
            let negative = _mm256_cmp_pd::<_CMP_LT_OQ>(x, _mm256_setzero_pd());
            _mm256_add_pd(x, _mm256_and_pd(negative, self.q))
        }
    }
}

impl Factor {
    /// The factor `w`, in all lanes.
    #[inline(always)]
    unsafe fn new(w: u64, modulus: &Modulus) -> Self {
        let [w, quotient] = parts(w, modulus);
        // SAFETY: see above.
        unsafe { Self { w: _mm256_set1_pd(w), quotient: _mm256_set1_pd(quotient) } }
    }
}

/// Reads four residues as doubles.
///
/// # Safety
/// They are readable and below `2^52`, and the machine has the instruction set.
#[inline(always)]
unsafe fn load(k: Floats, from: *const u64) -> __m256d {
    // SAFETY: forwarded.
    unsafe { k.to_doubles(_mm256_loadu_si256(from.cast())) }
}

/// Writes four doubles in `[0, 2^52)` as integers.
///
/// # Safety
/// They are writable, and the machine has the instruction set.
#[inline(always)]
unsafe fn store(k: Floats, to: *mut u64, x: __m256d) {
    // SAFETY: forwarded.
    unsafe { _mm256_storeu_si256(to.cast(), k.to_integers(x)) }
}
