//! The negacyclic transform on AVX-512 IFMA.
//!
//! All levels but the last four are those of [`passes`]; the last four work on blocks of 16 values in two registers,
//! with a shuffle before each level and one after the last, which restores the standard order.

use std::arch::x86_64::*;

use super::super::passes::{self, Kernel};
use super::{Factor, Ifma, load, quotient, store};
use crate::Modulus;
use crate::modulus::Shoup;

/// The roots of one direction, `w` and `floor(w * 2^52 / q)` apart.
#[derive(Debug)]
pub(crate) struct Roots {
    w: Vec<u64>,
    quotient: Vec<u64>,
    /// `n^-1`, and it times the root of the last inverse level.
    scale: [u64; 2],
}

/// The shortest transform: four blocks of 16 values.
pub(crate) const MIN_DEGREE: usize = 64;

/// Levels done inside registers.
const LOCAL_LEVELS: u32 = 4;

/// The order in which the last level meets its roots: see [`forward_local`].
const LAST_ORDER: [usize; 8] = [0, 1, 4, 5, 2, 3, 6, 7];

impl Roots {
    /// Lays out `roots`, in bit-reversed order, for the kernel.
    pub(crate) fn new(modulus: &Modulus, roots: &[Shoup], scale: Shoup, last: Shoup) -> Self {
        let mut w: Vec<u64> = roots.iter().map(|root| root.w).collect();
        let half = w.len() / 2;
        for (block, source) in w[half..].chunks_exact_mut(8).zip(roots[half..].chunks_exact(8)) {
            for (slot, lane) in block.iter_mut().zip(LAST_ORDER) {
                *slot = source[lane].w;
            }
        }
        let quotient = w.iter().map(|w| quotient(*w, modulus.value())).collect();
        Self { w, quotient, scale: [scale.w, last.w] }
    }
}

/// [`crate::Ntt::forward`].
///
/// # Safety
/// The machine has AVX-512 F, DQ and IFMA; `values` has the length the roots are for, at least [`MIN_DEGREE`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn forward(modulus: &Modulus, roots: &Roots, values: &mut [u64]) {
    let n = values.len();
    debug_assert!(n == roots.w.len() && n >= MIN_DEGREE);
    let pointer = values.as_mut_ptr();
    // SAFETY: the instruction set and the length are the caller's promise.
    unsafe {
        let tables = Tables::new(modulus, roots);
        passes::forward(tables, pointer, n, n.trailing_zeros() - LOCAL_LEVELS);
        for quad in (0..n / 16).step_by(4) {
            forward_local(tables, pointer, n / 16, quad);
        }
    }
}

/// [`crate::Ntt::inverse`].
///
/// # Safety
/// As for [`forward`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) unsafe fn inverse(modulus: &Modulus, roots: &Roots, values: &mut [u64]) {
    let n = values.len();
    debug_assert!(n == roots.w.len() && n >= MIN_DEGREE);
    let pointer = values.as_mut_ptr();
    // SAFETY: the instruction set and the length are the caller's promise.
    unsafe {
        let tables = Tables::new(modulus, roots);
        for quad in (0..n / 16).step_by(4) {
            inverse_local(tables, pointer, n / 16, quad);
        }
        passes::inverse(tables, pointer, n, n.trailing_zeros() - LOCAL_LEVELS);
    }
}

/// The constants of the modulus with the roots of one direction.
#[derive(Clone, Copy)]
struct Tables {
    ifma: Ifma,
    w: *const u64,
    quotient: *const u64,
    /// `n^-1`, and it times the root of the last inverse level.
    scale: [Factor; 2],
}

impl Tables {
    #[inline(always)]
    unsafe fn new(modulus: &Modulus, roots: &Roots) -> Self {
        // SAFETY: the instruction set is the caller's promise.
        unsafe {
            let ifma = Ifma::new(modulus);
            let scale = [Factor::new(roots.scale[0], modulus), Factor::new(roots.scale[1], modulus)];
            Self { ifma, w: roots.w.as_ptr(), quotient: roots.quotient.as_ptr(), scale }
        }
    }

    /// Eight roots from `index` on.
    #[inline(always)]
    unsafe fn eight(self, index: usize) -> Factor {
        // SAFETY: the caller stays inside the tables.
        unsafe { Factor { w: load(self.w.add(index)), quotient: load(self.quotient.add(index)) } }
    }

    /// Lane `i` gets root `index + lanes[i]`, `lanes` below 4.
    #[inline(always)]
    unsafe fn spread(self, index: usize, lanes: __m512i) -> Factor {
        // SAFETY: four words from `index` on are inside the tables, whose last half is not spread.
        unsafe {
            let pick = |table: *const u64| {
                let four = _mm256_loadu_si256(table.add(index).cast());
                _mm512_permutexvar_epi64(lanes, _mm512_castsi256_si512(four))
            };
            Factor { w: pick(self.w), quotient: pick(self.quotient) }
        }
    }
}

impl Kernel for Tables {
    type Vector = __m512i;
    type Factor = Factor;
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn load(self, from: *const u64) -> __m512i {
        // SAFETY: forwarded.
        unsafe { load(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u64, vector: __m512i) {
        // SAFETY: forwarded.
        unsafe { store(to, vector) }
    }

    #[inline(always)]
    unsafe fn root(self, index: usize) -> Factor {
        // SAFETY: the caller stays inside the tables.
        unsafe {
            let at = |table: *const u64| _mm512_set1_epi64(*table.add(index) as i64);
            Factor { w: at(self.w), quotient: at(self.quotient) }
        }
    }

    // In: x, y < 4q. Out: x + w y < 4q and x - w y + 2q = 2x + 2q - (x + w y) < 4q, with x reduced below 2q first.
    #[inline(always)]
    unsafe fn butterfly<const REDUCE: bool>(
        self,
        x: &mut [__m512i; 4],
        y: &mut [__m512i; 4],
        w: [Factor; 4],
    ) {
        let k = self.ifma;
        // SAFETY: arithmetic on registers.
        unsafe {
            let (mut quotient, mut high, mut twice) = ([k.zero; 4], [k.zero; 4], [k.zero; 4]);
            for i in 0..4 {
                quotient[i] = _mm512_madd52hi_epu64(k.zero, y[i], w[i].quotient);
            }
            if REDUCE {
                for i in 0..4 {
                    high[i] = _mm512_madd52hi_epu64(k.zero, x[i], k.ratio);
                }
                for i in 0..4 {
                    x[i] = _mm512_madd52lo_epu64(x[i], high[i], k.minus_q);
                }
            }
            for i in 0..4 {
                twice[i] = _mm512_madd52lo_epu64(k.twice_q, x[i], k.two);
            }
            for i in 0..4 {
                x[i] = _mm512_madd52lo_epu64(x[i], y[i], w[i].w);
            }
            for i in 0..4 {
                x[i] = _mm512_madd52lo_epu64(x[i], quotient[i], k.minus_q);
            }
            for i in 0..4 {
                y[i] = _mm512_sub_epi64(twice[i], x[i]);
            }
        }
    }

    // In: x, y < 2q. Out: x + y reduced below 2q and (x - y + 2q) w < 2q.
    #[inline(always)]
    unsafe fn inverse_butterfly(self, x: &mut [__m512i; 4], y: &mut [__m512i; 4], w: [Factor; 4]) {
        let k = self.ifma;
        // SAFETY: arithmetic on registers.
        unsafe {
            let (mut difference, mut quotient, mut high) = ([k.zero; 4], [k.zero; 4], [k.zero; 4]);
            for i in 0..4 {
                difference[i] = _mm512_sub_epi64(_mm512_add_epi64(x[i], k.twice_q), y[i]);
            }
            for i in 0..4 {
                x[i] = _mm512_add_epi64(x[i], y[i]);
            }
            for i in 0..4 {
                quotient[i] = _mm512_madd52hi_epu64(k.zero, difference[i], w[i].quotient);
            }
            for i in 0..4 {
                high[i] = _mm512_madd52hi_epu64(k.zero, x[i], k.ratio);
            }
            for i in 0..4 {
                y[i] = _mm512_madd52lo_epu64(k.zero, difference[i], w[i].w);
            }
            for i in 0..4 {
                x[i] = _mm512_madd52lo_epu64(x[i], high[i], k.minus_q);
            }
            for i in 0..4 {
                y[i] = _mm512_madd52lo_epu64(y[i], quotient[i], k.minus_q);
            }
        }
    }

    // In: x, y < 2q. Out: [0, q).
    #[inline(always)]
    unsafe fn last_butterfly(self, x: &mut [__m512i; 4], y: &mut [__m512i; 4]) {
        let k = self.ifma;
        // SAFETY: arithmetic on registers.
        unsafe {
            for i in 0..4 {
                let difference = _mm512_sub_epi64(_mm512_add_epi64(x[i], k.twice_q), y[i]);
                let sum = _mm512_add_epi64(x[i], y[i]);
                x[i] = k.finish(k.mul_add(k.zero, sum, self.scale[0]));
                y[i] = k.finish(k.mul_add(k.zero, difference, self.scale[1]));
            }
        }
    }
}

/// The last four forward levels of blocks `quad..quad + 4` out of `blocks` blocks of 16, then the full reduction.
///
/// With `a` and `b` the halves of a block, the registers hold `a | b`, then the quarters `a0-3 b0-3 | a4-7 b4-7`, the pairs
/// `a01 b01 a45 b45 | a23 b23 a67 b67`, and at last `a0 a2 b0 b2 a4 a6 b4 b6` beside the odd ones.
#[inline(always)]
unsafe fn forward_local(k: Tables, values: *mut u64, blocks: usize, quad: usize) {
    // SAFETY: four blocks of 16 values, and roots up to 16 * blocks, are inside the slices.
    unsafe {
        let base = values.add(16 * quad);
        let at = |i: usize| load(base.add(8 * i));
        let (mut x, mut y) = ([at(0), at(2), at(4), at(6)], [at(1), at(3), at(5), at(7)]);
        let i = blocks + quad;
        k.butterfly::<true>(&mut x, &mut y, [k.root(i), k.root(i + 1), k.root(i + 2), k.root(i + 3)]);
        for i in 0..4 {
            let pair = (x[i], y[i]);
            x[i] = _mm512_shuffle_i64x2::<0x44>(pair.0, pair.1);
            y[i] = _mm512_shuffle_i64x2::<0xee>(pair.0, pair.1);
        }
        let (lanes, i) = (_mm512_setr_epi64(0, 0, 0, 0, 1, 1, 1, 1), 2 * (blocks + quad));
        let w = [k.spread(i, lanes), k.spread(i + 2, lanes), k.spread(i + 4, lanes), k.spread(i + 6, lanes)];
        k.butterfly::<true>(&mut x, &mut y, w);
        for i in 0..4 {
            let pair = (x[i], y[i]);
            x[i] = _mm512_shuffle_i64x2::<0x88>(pair.0, pair.1);
            y[i] = _mm512_shuffle_i64x2::<0xdd>(pair.0, pair.1);
        }
        let (lanes, i) = (_mm512_setr_epi64(0, 0, 2, 2, 1, 1, 3, 3), 4 * (blocks + quad));
        let w = [k.spread(i, lanes), k.spread(i + 4, lanes), k.spread(i + 8, lanes), k.spread(i + 12, lanes)];
        k.butterfly::<true>(&mut x, &mut y, w);
        for i in 0..4 {
            let pair = (x[i], y[i]);
            x[i] = _mm512_unpacklo_epi64(pair.0, pair.1);
            y[i] = _mm512_unpackhi_epi64(pair.0, pair.1);
        }
        let i = 8 * (blocks + quad);
        let w = [k.eight(i), k.eight(i + 8), k.eight(i + 16), k.eight(i + 24)];
        k.butterfly::<true>(&mut x, &mut y, w);
        let low = _mm512_setr_epi64(0, 8, 1, 9, 4, 12, 5, 13);
        let high = _mm512_setr_epi64(2, 10, 3, 11, 6, 14, 7, 15);
        for i in 0..4 {
            let pair = (k.ifma.finish(k.ifma.reduce(x[i])), k.ifma.finish(k.ifma.reduce(y[i])));
            store(base.add(16 * i), _mm512_permutex2var_epi64(pair.0, low, pair.1));
            store(base.add(16 * i + 8), _mm512_permutex2var_epi64(pair.0, high, pair.1));
        }
    }
}

/// The first four inverse levels of blocks `quad..quad + 4` out of `blocks`: [`forward_local`] backwards.
#[inline(always)]
unsafe fn inverse_local(k: Tables, values: *mut u64, blocks: usize, quad: usize) {
    // SAFETY: as in `forward_local`.
    unsafe {
        let base = values.add(16 * quad);
        let at = |i: usize| load(base.add(8 * i));
        let (mut x, mut y) = ([at(0), at(2), at(4), at(6)], [at(1), at(3), at(5), at(7)]);
        let even = _mm512_setr_epi64(0, 2, 8, 10, 4, 6, 12, 14);
        let odd = _mm512_setr_epi64(1, 3, 9, 11, 5, 7, 13, 15);
        for i in 0..4 {
            let pair = (x[i], y[i]);
            x[i] = _mm512_permutex2var_epi64(pair.0, even, pair.1);
            y[i] = _mm512_permutex2var_epi64(pair.0, odd, pair.1);
        }
        let i = 8 * (blocks + quad);
        let w = [k.eight(i), k.eight(i + 8), k.eight(i + 16), k.eight(i + 24)];
        k.inverse_butterfly(&mut x, &mut y, w);
        for i in 0..4 {
            let pair = (x[i], y[i]);
            x[i] = _mm512_unpacklo_epi64(pair.0, pair.1);
            y[i] = _mm512_unpackhi_epi64(pair.0, pair.1);
        }
        let (lanes, i) = (_mm512_setr_epi64(0, 0, 2, 2, 1, 1, 3, 3), 4 * (blocks + quad));
        let w = [k.spread(i, lanes), k.spread(i + 4, lanes), k.spread(i + 8, lanes), k.spread(i + 12, lanes)];
        k.inverse_butterfly(&mut x, &mut y, w);
        let low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
        let high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
        for i in 0..4 {
            let pair = (x[i], y[i]);
            x[i] = _mm512_permutex2var_epi64(pair.0, low, pair.1);
            y[i] = _mm512_permutex2var_epi64(pair.0, high, pair.1);
        }
        let (lanes, i) = (_mm512_setr_epi64(0, 0, 0, 0, 1, 1, 1, 1), 2 * (blocks + quad));
        let w = [k.spread(i, lanes), k.spread(i + 2, lanes), k.spread(i + 4, lanes), k.spread(i + 6, lanes)];
        k.inverse_butterfly(&mut x, &mut y, w);
        for i in 0..4 {
            let pair = (x[i], y[i]);
            x[i] = _mm512_shuffle_i64x2::<0x44>(pair.0, pair.1);
            y[i] = _mm512_shuffle_i64x2::<0xee>(pair.0, pair.1);
        }
        let i = blocks + quad;
        k.inverse_butterfly(&mut x, &mut y, [k.root(i), k.root(i + 1), k.root(i + 2), k.root(i + 3)]);
        for i in 0..4 {
            store(base.add(16 * i), x[i]);
            store(base.add(16 * i + 8), y[i]);
        }
    }
}
