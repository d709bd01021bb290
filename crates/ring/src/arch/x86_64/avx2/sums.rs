//! Sums of products on AVX2.
//!
//! In sums of products of two vectors each product is reduced, as doubles have no room for an unreduced one; that is still faster than adding
//! two-word products one by one. Where factors repeat, products are cut in two words instead, and nothing is reduced before the end.

use std::arch::x86_64::*;
use std::ops::Range;

use super::{Floats, load, store};
use crate::Modulus;

/// Reduced products, at most `11q/16` each, that are added before the sum is reduced.
const TERMS: usize = 8;

/// `out = sum_k a[k] b[k] mod q`, onto what is there if `ADD`: eight words, a line of the cache, at a time.
///
/// # Safety
/// All slices are of the same length, a multiple of 8, and hold reduced values; `a` and `b` have equally many; the machine has AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(crate) unsafe fn dot<const ADD: bool>(modulus: &Modulus, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
    for i in (0..out.len()).step_by(8) {
        // SAFETY: eight words from `i` on are inside every slice.
        unsafe {
            let k = Floats::new(modulus);
            let places = [i, i + 4];
            let mut sums =
                places.map(|i| if ADD { load(k, out.as_ptr().add(i)) } else { _mm256_setzero_pd() });
            for (a, b) in a.chunks(TERMS).zip(b.chunks(TERMS)) {
                sums = sums.map(|sum| k.reduce(sum));
                for (a, b) in a.iter().zip(b) {
                    for (sum, i) in sums.iter_mut().zip(places) {
                        let product = k.mul_pair(load(k, a.as_ptr().add(i)), load(k, b.as_ptr().add(i)));
                        *sum = _mm256_add_pd(*sum, product);
                    }
                }
            }
            for (sum, i) in sums.into_iter().zip(places) {
                store(k, out.as_mut_ptr().add(i), k.lift(k.reduce(sum)));
            }
        }
    }
}

/// Cuts products `p` below `2^102` in two words: `p = 2^51 high + low` with `high` rounded, and so `low` of at most `2^50` in absolute value.
///
/// A double in `[2^103, 2^104)` is a multiple of `2^51`, so that `2^103 + p` rounds to `2^103 + 2^51 high`, and the last bits of that double are
/// those of `high`. What is left is exact, and beside `1.5 * 2^52` the last bits are those of `low` (as Emmart, Zheng and Weems do, ARITH 2018).
#[derive(Clone, Copy)]
struct Cut {
    /// `2^103`.
    high: __m256d,
    /// With `1.5 * 2^52`.
    both: __m256d,
}

/// Bits by which the higher word stands to the left of the lower one.
const WORD: u32 = 51;

impl Cut {
    const HIGH: f64 = (1_u128 << 103) as f64;
    const LOW: f64 = (3_u64 << 51) as f64;

    // SAFETY of both: the caller runs on a machine with the instruction set; arithmetic on registers has no other requirement.
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: see above.
        unsafe { Self { high: _mm256_set1_pd(Self::HIGH), both: _mm256_set1_pd(Self::HIGH + Self::LOW) } }
    }

    /// The words of `a b`, each above the bits of what it stands beside.
    #[inline(always)]
    unsafe fn product(self, a: __m256d, b: __m256d) -> [__m256i; 2] {
        // SAFETY: see above.
        unsafe {
            let high = _mm256_fmadd_pd(a, b, self.high);
            let low = _mm256_fmadd_pd(a, b, _mm256_sub_pd(self.both, high));
            [_mm256_castpd_si256(high), _mm256_castpd_si256(low)]
        }
    }

    /// A sum of so many products, given those of their words.
    fn sum(terms: u64, high: u64, low: u64) -> u128 {
        let without = |sum: u64, beside: f64| sum.wrapping_sub(terms.wrapping_mul(beside.to_bits()));
        let (high, low) = (without(high, Self::HIGH), without(low, Self::LOW) as i64);
        (u128::from(high) << WORD).wrapping_add_signed(low.into())
    }
}

/// `out = sum_k a[k] w[k] mod q` at these places, onto what is there if `ADD`, for words `a` below `2^52`. The sums stay in registers.
///
/// # Safety
/// All slices are of the same length; the places are inside, a multiple of 8 of them; there are as many constants as vectors, reduced and at most
/// `2^12`, so that 64 bits hold sums of their products' words; the machine has AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(crate) unsafe fn combine<const ADD: bool>(
    modulus: &Modulus,
    out: &mut [u64],
    a: &[&[u64]],
    w: &[u64],
    places: Range<usize>,
) {
    for i in places.step_by(8) {
        // SAFETY: eight words from `i` on are inside every slice.
        unsafe { combine_at::<ADD>(modulus, out, a, w, i) };
    }
}

/// [`combine`] at two vectors from `i` on, onto what is there if `ADD`.
///
/// # Safety
/// As [`combine`]; two vectors from there on are inside every slice.
#[inline(always)]
unsafe fn combine_at<const ADD: bool>(modulus: &Modulus, out: &mut [u64], a: &[&[u64]], w: &[u64], i: usize) {
    // SAFETY: the caller's promise; a vector's four words are an array.
    unsafe {
        let (k, cut) = (Floats::new(modulus), Cut::new());
        let mut sums = [[_mm256_setzero_si256(); 2]; 2];
        for (a, w) in a.iter().zip(w) {
            let (a, w) = (a.as_ptr().add(i), k.to_doubles(_mm256_set1_epi64x(*w as i64)));
            for (part, [high, low]) in sums.iter_mut().enumerate() {
                let [own_high, own_low] = cut.product(load(k, a.add(4 * part)), w);
                *high = _mm256_add_epi64(*high, own_high);
                *low = _mm256_add_epi64(*low, own_low);
            }
        }
        for ([high, low], words) in sums.into_iter().zip(out[i..].chunks_exact_mut(4)) {
            let [high, low] = [high, low].map(|sum| std::mem::transmute::<__m256i, [u64; 4]>(sum));
            for (lane, word) in words.iter_mut().enumerate() {
                let there = if ADD { u128::from(*word) } else { 0 };
                *word = modulus.reduce_u128(Cut::sum(a.len() as u64, high[lane], low[lane]) + there);
            }
        }
    }
}
