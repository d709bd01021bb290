//! Sums of products on AVX-512 IFMA: the low and the high halves of the products are added apart, unreduced.

use std::arch::x86_64::*;
use std::ops::Range;

use super::{BITS, Factor, Ifma, load, splat, store};
use crate::{Ending, EvalPermutation, Modulus};

/// How many products of reduced factors the two halves hold: `2^12` low halves of 52 bits fill a word.
pub(crate) const CAPACITY: u64 = 1 << 12;

/// Words ahead of which right factors are asked for. They come from memory, each from its own place, and there are more of them than
/// the processor follows by itself.
const AHEAD: usize = 256;

/// `low + 2^52 high += a b` on whole vectors.
///
/// # Safety
/// All slices are of the same length, a multiple of 8; the sums have room; the machine has AVX-512 F, DQ and IFMA.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn mul_add(low: &mut [u64], high: &mut [u64], a: &[u64], b: &[u64]) {
    let n = low.len();
    let (low, high) = (low.as_mut_ptr(), high.as_mut_ptr());
    for i in (0..n).step_by(8) {
        // SAFETY: eight words from `i` on are inside every slice.
        unsafe {
            let (x, y) = (load(a.as_ptr().add(i)), load(b.as_ptr().add(i)));
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

/// `out = sum_k a[k] b[k] mod q`, onto what is there if `ADD`, the sums staying in registers.
///
/// # Safety
/// All slices are of the same length, a multiple of 8; `a` and `b` have equally many, fewer than [`CAPACITY`]; the machine has AVX-512
/// F, DQ and IFMA.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn dot<const ADD: bool>(modulus: &Modulus, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
    let n = out.len();
    // SAFETY: groups of four vectors, or one, are inside every slice.
    unsafe {
        let carries = Carries::new(modulus);
        let quads = n / 32 * 32;
        for i in (0..quads).step_by(32) {
            let mut sums = Sums::<4>::new(&carries.ifma);
            if ADD {
                sums.low = std::array::from_fn(|part| load(out.as_ptr().add(i + 8 * part)));
            }
            sums.add_products(a, b, i);
            for part in 0..4 {
                store(out.as_mut_ptr().add(i + 8 * part), sums.reduce(&carries, part));
            }
        }
        for i in (quads..n).step_by(8) {
            let mut sums = Sums::<1>::new(&carries.ifma);
            if ADD {
                sums.low = [load(out.as_ptr().add(i))];
            }
            sums.add_products(a, b, i);
            store(out.as_mut_ptr().add(i), sums.reduce(&carries, 0));
        }
    }
}

/// `out = sum_k a[k] w[k] mod q` at these places, onto what is there if `ADD`, for words `a` below `2^52`. The sums stay in registers.
///
/// # Safety
/// All slices are of the same length; the places are inside, a multiple of 8 of them; there are as many constants as vectors, fewer than [`CAPACITY`]; the
/// machine has AVX-512 F, DQ and IFMA.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn combine<const ADD: bool>(
    modulus: &Modulus,
    out: &mut [u64],
    a: &[&[u64]],
    w: &[u64],
    places: Range<usize>,
) {
    // SAFETY: groups of four vectors, or one, are inside the places, and so inside every slice.
    unsafe {
        let carries = Carries::new(modulus);
        let quads = places.start + places.len() / 32 * 32;
        for i in (places.start..quads).step_by(32) {
            combine_at::<ADD, 4>(&carries, out, a, w, i);
        }
        for i in (quads..places.end).step_by(8) {
            combine_at::<ADD, 1>(&carries, out, a, w, i);
        }
    }
}

/// [`combine`] at `WIDTH` vectors from `i` on, onto what is there if `ADD`.
#[inline(always)]
unsafe fn combine_at<const ADD: bool, const WIDTH: usize>(
    carries: &Carries,
    out: &mut [u64],
    a: &[&[u64]],
    w: &[u64],
    i: usize,
) {
    // SAFETY: forwarded from `combine`.
    unsafe {
        let mut sums = Sums::<WIDTH>::new(&carries.ifma);
        if ADD {
            sums.low = std::array::from_fn(|part| load(out.as_ptr().add(i + 8 * part)));
        }
        for (a, w) in a.iter().zip(w) {
            let (a, w) = (a.as_ptr().add(i), splat(*w));
            sums.add_product(|part| load(a.add(8 * part)), |_| w);
        }
        for part in 0..WIDTH {
            store(out.as_mut_ptr().add(i + 8 * part), sums.reduce(carries, part));
        }
    }
}

/// `out = (sum_k floor(a[k] w[k] / 2^52) + 2^(shift-1)) / 2^shift`, rounded down, for words below `2^52`.
///
/// # Safety
/// All slices are of the same length, a multiple of 8; there are as many constants; the machine has AVX-512 F, DQ and IFMA.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn quotients(out: &mut [u64], a: &[&[u64]], w: &[u64], shift: u32) {
    for i in (0..out.len()).step_by(8) {
        // SAFETY: eight words from `i` on are inside every slice.
        unsafe {
            let mut sum = splat(1 << (shift - 1));
            for (a, w) in a.iter().zip(w) {
                sum = _mm512_madd52hi_epu64(sum, load(a.as_ptr().add(i)), splat(*w));
            }
            store(out.as_mut_ptr().add(i), _mm512_srlv_epi64(sum, splat(u64::from(shift))));
        }
    }
}

/// [`Modulus::dot_permuted`], the sums staying in registers: what is read is read in order, and each vector of results is written where
/// it belongs.
///
/// # Safety
/// All slices are of the permutation's length; `a` and `b` have equally many, fewer than [`CAPACITY`]; the machine has AVX-512 F, DQ
/// and IFMA.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn dot_permuted(
    modulus: &Modulus,
    out: &mut [u64],
    a: &[&[u64]],
    b: &[&[u64]],
    ending: &Ending<'_>,
) {
    let n = out.len();
    // SAFETY: groups of four vectors, or one, are inside every slice, and so are the permutation's targets.
    unsafe {
        let last = Last::new(modulus, ending);
        let quads = n / 32 * 32;
        for i in (0..quads).step_by(32) {
            dot_permuted_at::<4>(&last, out, a, b, i);
        }
        for i in (quads..n).step_by(8) {
            dot_permuted_at::<1>(&last, out, a, b, i);
        }
    }
}

/// [`dot_permuted`] at `WIDTH` vectors from `i` on.
#[inline(always)]
unsafe fn dot_permuted_at<const WIDTH: usize>(
    last: &Last<'_>,
    out: &mut [u64],
    a: &[&[u64]],
    b: &[&[u64]],
    i: usize,
) {
    let k = last.carries.ifma;
    // SAFETY: forwarded from `dot_permuted`.
    unsafe {
        let mut sums = Sums::<WIDTH>::new(&k);
        if let Some((vector, factor)) = last.added {
            sums.add_product(|part| load(vector.add(i + 8 * part)), |_| factor);
        }
        sums.add_products(a, b, i);
        for part in 0..WIDTH {
            let i = i + 8 * part;
            let result = match last.subtracted {
                Some((vector, factor)) => {
                    let sum = _mm512_add_epi64(sums.fold(&last.carries, part), k.q);
                    let difference = _mm512_sub_epi64(sum, load(vector.add(i)));
                    k.finish(k.mul_add(k.zero, difference, factor))
                }
                None => sums.reduce(&last.carries, part),
            };
            let (to, lanes) = last.permutation.target(i);
            store(out.as_mut_ptr().add(to), _mm512_permutexvar_epi64(load(lanes.as_ptr()), result));
        }
    }
}

/// An [`Ending`], prepared.
#[derive(Clone, Copy)]
struct Last<'a> {
    carries: Carries,
    added: Option<(*const u64, __m512i)>,
    subtracted: Option<(*const u64, Factor)>,
    permutation: &'a EvalPermutation,
}

impl<'a> Last<'a> {
    #[inline(always)]
    unsafe fn new(modulus: &Modulus, ending: &Ending<'a>) -> Self {
        // SAFETY: the instruction set is the caller's promise.
        unsafe {
            Self {
                carries: Carries::new(modulus),
                added: ending.added.map(|(vector, factor)| (vector.as_ptr(), splat(modulus.reduce(factor)))),
                subtracted: ending
                    .subtracted
                    .map(|(vector, factor)| (vector.as_ptr(), Factor::new(factor.w, modulus))),
                permutation: ending.permutation,
            }
        }
    }
}

/// The halves of `WIDTH` vectors of sums.
struct Sums<const WIDTH: usize> {
    low: [__m512i; WIDTH],
    high: [__m512i; WIDTH],
}

impl<const WIDTH: usize> Sums<WIDTH> {
    #[inline(always)]
    fn new(k: &Ifma) -> Self {
        Self { low: [k.zero; WIDTH], high: [k.zero; WIDTH] }
    }

    #[inline(always)]
    unsafe fn add_product(&mut self, x: impl Fn(usize) -> __m512i, y: impl Fn(usize) -> __m512i) {
        for part in 0..WIDTH {
            let (x, y) = (x(part), y(part));
            // SAFETY: arithmetic on registers.
            unsafe {
                self.low[part] = _mm512_madd52lo_epu64(self.low[part], x, y);
                self.high[part] = _mm512_madd52hi_epu64(self.high[part], x, y);
            }
        }
    }

    /// Adds the products at the vectors from `i` on, which are inside every slice.
    #[inline(always)]
    unsafe fn add_products(&mut self, a: &[&[u64]], b: &[&[u64]], i: usize) {
        for (a, b) in a.iter().zip(b) {
            let (a, b) = (a.as_ptr().wrapping_add(i), b.as_ptr().wrapping_add(i));
            // SAFETY: the caller's promise. A prefetch is a hint, which reads nothing: it may lie beyond the end.
            unsafe {
                for part in 0..WIDTH {
                    _mm_prefetch::<_MM_HINT_T0>(b.wrapping_add(AHEAD + 8 * part).cast());
                }
                self.add_product(|part| load(a.add(8 * part)), |part| load(b.add(8 * part)));
            }
        }
    }

    /// The sums as residues.
    #[inline(always)]
    unsafe fn reduce(&self, carries: &Carries, part: usize) -> __m512i {
        // SAFETY: arithmetic on registers.
        unsafe { carries.reduce(self.low[part], self.high[part]) }
    }

    /// The sums below `2q` in the low 52 bits.
    #[inline(always)]
    unsafe fn fold(&self, carries: &Carries, part: usize) -> __m512i {
        // SAFETY: arithmetic on registers.
        unsafe { carries.fold(self.low[part], self.high[part]) }
    }
}

/// `out = a` permuted.
///
/// # Safety
/// Both slices have the length of the permutation; the machine has AVX-512 F, DQ and IFMA.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn permute(out: &mut [u64], a: &[u64], permutation: &EvalPermutation) {
    for i in (0..a.len()).step_by(8) {
        // SAFETY: eight words from `i` on are inside `a`, and the permutation's targets are inside `out`.
        unsafe {
            let (to, lanes) = permutation.target(i);
            let moved = _mm512_permutexvar_epi64(load(lanes.as_ptr()), load(a.as_ptr().add(i)));
            store(out.as_mut_ptr().add(to), moved);
        }
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
        // SAFETY: arithmetic on registers.
        unsafe { self.ifma.finish(self.fold(low, high)) }
    }

    /// [`Self::reduce`] below `2q`, in the low 52 bits.
    #[inline(always)]
    unsafe fn fold(self, low: __m512i, high: __m512i) -> __m512i {
        let k = self.ifma;
        // SAFETY: arithmetic on registers.
        unsafe {
            let high = _mm512_add_epi64(high, _mm512_srli_epi64::<BITS>(low));
            let top = _mm512_srli_epi64::<BITS>(high);
            // Each of the two products is below 2q; their sum with the lowest digit would not fit 52 bits.
            let digits = k.reduce(k.mul_add(k.reduce(low), high, self.first));
            k.reduce(k.mul_add(digits, top, self.second))
        }
    }
}
