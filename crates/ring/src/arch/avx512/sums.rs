//! Sums of products on AVX-512 IFMA: the low and the high halves of the products are added apart, unreduced.

use std::arch::x86_64::*;

use super::{BITS, Factor, Ifma, load, store};
use crate::{EvalPermutation, Modulus};

/// How many products of reduced factors the two halves hold: `2^12` low halves of 52 bits fill a word.
pub(crate) const CAPACITY: u64 = 1 << 12;

/// Words ahead of which right factors are asked for. They come from memory, each from its own place, and there are more of them than
/// the processor follows by itself.
const AHEAD: usize = 64;

/// `low + 2^52 high += a b` on whole vectors, `a` permuted if a permutation is given.
///
/// # Safety
/// All slices are of the same length, a multiple of 8 and that of the permutation if there is one; the sums have room;
/// the machine has AVX-512 F, DQ and IFMA.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn mul_add(
    low: &mut [u64],
    high: &mut [u64],
    a: &[u64],
    permutation: Option<&EvalPermutation>,
    b: &[u64],
) {
    let n = low.len();
    let (low, high) = (low.as_mut_ptr(), high.as_mut_ptr());
    for i in (0..n).step_by(8) {
        // SAFETY: eight words from `i` on are inside every slice, and sources of a permutation are inside `a`.
        unsafe {
            let x = match permutation {
                Some(permutation) => permuted(a, permutation, i),
                None => load(a.as_ptr().add(i)),
            };
            let y = load(b.as_ptr().add(i));
            store(low.add(i), _mm512_madd52lo_epu64(load(low.add(i)), x, y));
            store(high.add(i), _mm512_madd52hi_epu64(load(high.add(i)), x, y));
        }
    }
}

/// `out = low + 2^52 high mod q`.
///
/// # Safety
/// The slices are of the same length, a multiple of 8; the machine has AVX-512 F, DQ and IFMA.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn reduce(modulus: &Modulus, out: &mut [u64], low: &[u64], high: &[u64]) {
    // SAFETY: eight words from `i` on are inside every slice.
    unsafe {
        let carries = Carries::new(modulus);
        for i in (0..out.len()).step_by(8) {
            let sum = carries.reduce(load(low.as_ptr().add(i)), load(high.as_ptr().add(i)));
            store(out.as_mut_ptr().add(i), sum);
        }
    }
}

/// `out = sum_k a[k] b[k] mod q`, the sums staying in registers; each `a[k]` permuted if a permutation is given.
///
/// # Safety
/// All slices are of the same length, a multiple of 8 and that of the permutation if there is one; `a` and `b` have equally
/// many, at most [`CAPACITY`]; the machine has AVX-512 F, DQ and IFMA.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn dot(
    modulus: &Modulus,
    out: &mut [u64],
    a: &[&[u64]],
    permutation: Option<&EvalPermutation>,
    b: &[&[u64]],
) {
    let n = out.len();
    // SAFETY: groups of four vectors, or one, are inside every slice.
    unsafe {
        let carries = Carries::new(modulus);
        let quads = n / 32 * 32;
        for i in (0..quads).step_by(32) {
            dot_at::<4>(carries, out, a, permutation, b, i);
        }
        for i in (quads..n).step_by(8) {
            dot_at::<1>(carries, out, a, permutation, b, i);
        }
    }
}

/// [`dot`] at `WIDTH` vectors from `i` on.
#[inline(always)]
unsafe fn dot_at<const WIDTH: usize>(
    carries: Carries,
    out: &mut [u64],
    a: &[&[u64]],
    permutation: Option<&EvalPermutation>,
    b: &[&[u64]],
    i: usize,
) {
    // SAFETY: forwarded from `dot`.
    unsafe {
        let zero = carries.ifma.zero;
        let (mut low, mut high) = ([zero; WIDTH], [zero; WIDTH]);
        let mut sources = [(0, zero); WIDTH];
        if let Some(permutation) = permutation {
            for (part, source) in sources.iter_mut().enumerate() {
                *source = locate(permutation, i + 8 * part);
            }
        }
        for (a, b) in a.iter().zip(b) {
            for part in 0..WIDTH {
                let ahead = b.as_ptr().wrapping_add(i + AHEAD + 8 * part);
                // A hint, which reads nothing: it may lie beyond the end.
                _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
            }
            for part in 0..WIDTH {
                let y = load(b.as_ptr().add(i + 8 * part));
                let x = if permutation.is_some() {
                    let (from, lanes) = sources[part];
                    _mm512_permutexvar_epi64(lanes, load(a.as_ptr().add(from)))
                } else {
                    load(a.as_ptr().add(i + 8 * part))
                };
                low[part] = _mm512_madd52lo_epu64(low[part], x, y);
                high[part] = _mm512_madd52hi_epu64(high[part], x, y);
            }
        }
        for part in 0..WIDTH {
            store(out.as_mut_ptr().add(i + 8 * part), carries.reduce(low[part], high[part]));
        }
    }
}

/// `out = a` permuted.
///
/// # Safety
/// Both slices have the length of the permutation; the machine has AVX-512 F, DQ and IFMA.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn permute(out: &mut [u64], a: &[u64], permutation: &EvalPermutation) {
    for i in (0..out.len()).step_by(8) {
        // SAFETY: eight words from `i` on are inside `out`, and sources of a permutation are inside `a`.
        unsafe { store(out.as_mut_ptr().add(i), permuted(a, permutation, i)) };
    }
}

/// The block that slots `i..i + 8` are read from, and the lanes.
#[inline(always)]
unsafe fn locate(permutation: &EvalPermutation, i: usize) -> (usize, __m512i) {
    // SAFETY: the permutation has a block for each eight slots and eight patterns.
    unsafe {
        let packed = *permutation.blocks().get_unchecked(i / 8) as usize;
        (packed & !7, load(permutation.patterns().get_unchecked(packed & 7).as_ptr()))
    }
}

#[inline(always)]
unsafe fn permuted(a: &[u64], permutation: &EvalPermutation, i: usize) -> __m512i {
    // SAFETY: a permutation maps blocks of `a` to blocks of `a`.
    unsafe {
        let (from, lanes) = locate(permutation, i);
        _mm512_permutexvar_epi64(lanes, load(a.as_ptr().add(from)))
    }
}

/// What turns the halves of a sum into a residue.
#[derive(Clone, Copy)]
struct Carries {
    ifma: Ifma,
    /// `2^52 mod q` and `2^104 mod q`.
    first: Factor,
    second: Factor,
}

impl Carries {
    #[inline(always)]
    unsafe fn new(modulus: &Modulus) -> Self {
        let first = modulus.reduce(1 << BITS);
        // SAFETY: the instruction set is the caller's promise.
        unsafe {
            let second = Factor::new(modulus.mul(first, first), modulus);
            Self { ifma: Ifma::new(modulus), first: Factor::new(first, modulus), second }
        }
    }

    /// `low + 2^52 high mod q` for any `low`, and `high` with room for a carry of 12 bits.
    #[inline(always)]
    unsafe fn reduce(self, low: __m512i, high: __m512i) -> __m512i {
        let k = self.ifma;
        // SAFETY: arithmetic on registers.
        unsafe {
            let high = _mm512_add_epi64(high, _mm512_srli_epi64::<BITS>(low));
            let top = _mm512_srli_epi64::<BITS>(high);
            // Each of the two products is below 2q; their sum with the lowest digit would not fit 52 bits.
            let digits = k.reduce(k.mul_add(k.reduce(low), high, self.first));
            k.finish(k.reduce(k.mul_add(digits, top, self.second)))
        }
    }
}
