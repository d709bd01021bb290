//! Kernels for AVX-512 with 52-bit multiply-add (IFMA), for `q < 2^50`.
//!
//! `vpmadd52` multiplies the low 52 bits of two lanes and adds the low or the high half of the product to a third.
//! As it ignores the upper 12 bits of its factors, lazy values are kept modulo `2^52`: the low 52 bits of a lane hold
//! a value in `[0, 4q)`, and what is above them has no meaning until [`Ifma::finish`] clears it. So no masking
//! is needed between butterflies, and both halves of the Barrett step that keeps a value below `2q` are multiply-adds.
#![allow(unsafe_code)] // Vector loads and stores, and intrinsics in functions that inherit the instruction set.

mod slices;
mod sums;
mod transform;

use std::arch::x86_64::*;

use crate::Modulus;
use crate::arch::Kernels;

/// For moduli below `2^50`.
pub(super) const KERNELS: Kernels = Kernels {
    name: "Avx512",
    limit: 1 << 50,
    roots: transform::roots,
    capacity: |_| sums::CAPACITY,
    add_assign: slices::add_assign,
    sub_assign: slices::sub_assign,
    mul_assign: slices::mul_assign,
    mul_scalar: slices::mul_scalar,
    sub_mul: slices::sub_mul,
    lift_centered: slices::lift_centered,
    dot: [sums::dot::<false>, sums::dot::<true>],
    combine: [sums::combine::<false>, sums::combine::<true>],
    reduce: slices::reduce,
    permute: sums::permute,
    mul_add: sums::mul_add,
    reduce_sum: sums::reduce,
    quotients: sums::quotients,
    dot_permuted: sums::dot_permuted,
};

/// Constants of one modulus, each in all lanes.
#[derive(Clone, Copy)]
pub(super) struct Ifma {
    zero: __m512i,
    q: __m512i,
    /// `2^52 - q`, which subtracts multiples of `q` modulo `2^52`.
    minus_q: __m512i,
    twice_q: __m512i,
    /// `floor(2^52 / q)`.
    ratio: __m512i,
    minus_twice_q: __m512i,
    low_bits: __m512i,
}

/// A factor `w < q` and `floor(w * 2^52 / q)`.
#[derive(Clone, Copy)]
pub(super) struct Factor {
    w: __m512i,
    quotient: __m512i,
}

/// Bits of a multiply-add factor.
const BITS: u32 = 52;

/// `floor(w * 2^52 / q)` for `w < q < 2^50`.
pub(super) fn quotient(w: u64, q: u64) -> u64 {
    ((u128::from(w) << BITS) / u128::from(q)) as u64
}

// SAFETY of every function on registers below: the caller runs on a machine with the instruction set; arithmetic on
// registers has no other requirement.
impl Ifma {
    #[inline(always)]
    unsafe fn new(modulus: &Modulus) -> Self {
        let q = modulus.value();
        // SAFETY: see above.
        unsafe {
            Self {
                zero: _mm512_setzero_si512(),
                q: splat(q),
                minus_q: splat((1 << BITS) - q),
                twice_q: splat(2 * q),
                ratio: splat((1 << BITS) / q),
                minus_twice_q: splat((1 << BITS) - 2 * q),
                low_bits: splat((1 << BITS) - 1),
            }
        }
    }

    /// Barrett: the low 52 bits of `x`, any, to `[0, 2q)` in the low 52 bits.
    #[inline(always)]
    unsafe fn reduce(self, x: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe {
            let quotient = _mm512_madd52hi_epu64(self.zero, x, self.ratio);
            _mm512_madd52lo_epu64(x, quotient, self.minus_q)
        }
    }

    /// `x + y w` with the product in `[0, 2q)`, all in the low 52 bits; `y` below `2^52`.
    #[inline(always)]
    unsafe fn mul_add(self, x: __m512i, y: __m512i, w: Factor) -> __m512i {
        // SAFETY: see above.
        unsafe {
            let quotient = _mm512_madd52hi_epu64(self.zero, y, w.quotient);
            _mm512_madd52lo_epu64(_mm512_madd52lo_epu64(x, y, w.w), quotient, self.minus_q)
        }
    }

    /// A lane whose low 52 bits are below `2q`, to `[0, q)` without anything above.
    #[inline(always)]
    unsafe fn finish(self, x: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { self.subtract_once(_mm512_and_si512(x, self.low_bits)) }
    }

    /// `x - y mod q` for reduced `x` and `y`.
    #[inline(always)]
    unsafe fn subtract(self, x: __m512i, y: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe {
            let difference = _mm512_sub_epi64(x, y);
            _mm512_min_epu64(difference, _mm512_add_epi64(difference, self.q))
        }
    }

    /// `x < 2q` to `[0, q)`: a negative difference is large as an unsigned number.
    #[inline(always)]
    unsafe fn subtract_once(self, x: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_min_epu64(x, _mm512_sub_epi64(x, self.q)) }
    }
}

impl Factor {
    /// The factor `w`, in all lanes.
    #[inline(always)]
    unsafe fn new(w: u64, modulus: &Modulus) -> Self {
        // SAFETY: see above.
        unsafe { Self { w: splat(w), quotient: splat(quotient(w, modulus.value())) } }
    }
}

#[inline(always)]
unsafe fn splat(word: u64) -> __m512i {
    // SAFETY: see above.
    unsafe { _mm512_set1_epi64(word as i64) }
}

/// Reads eight words.
///
/// # Safety
/// They are readable, and the machine has the instruction set.
#[inline(always)]
unsafe fn load(from: *const u64) -> __m512i {
    // SAFETY: forwarded.
    unsafe { _mm512_loadu_si512(from.cast()) }
}

/// Writes eight words.
///
/// # Safety
/// They are writable, and the machine has the instruction set.
#[inline(always)]
unsafe fn store(to: *mut u64, vector: __m512i) {
    // SAFETY: forwarded.
    unsafe { _mm512_storeu_si512(to.cast(), vector) }
}
