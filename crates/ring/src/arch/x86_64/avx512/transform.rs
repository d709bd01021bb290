//! The negacyclic transform on AVX-512 IFMA.
//!
//! All levels but the last four are those of [`passes`]; the last four work on blocks of 16 values in two registers.

use std::arch::x86_64::*;

use super::{BITS, Factor, Ifma, load, quotient, splat, store};
use crate::Modulus;
use crate::arch::passes::{self, Four, Kernel};
use crate::arch::{self, portable};
use crate::modulus::Shoup;

/// The roots of one direction.
#[derive(Debug)]
struct Roots {
    /// `w` and `floor(w * 2^52 / q)` of the levels that [`passes`] does, in bit-reversed order.
    upper: Vec<[u64; 2]>,
    /// The roots of the last four levels, in the order in which they are used.
    quads: Vec<Quad>,
    /// `n^-1`, and it times the root of the last inverse level.
    scale: [u64; 2],
    room: u8,
}

/// What four blocks of 16 values need in the last four levels: roots `w`, then `floor(w * 2^52 / q)`.
#[derive(Debug)]
#[repr(C, align(64))]
struct Quad {
    eighths: [[u64; 32]; 2],
    quarters: [[u64; 16]; 2],
    halves: [[u64; 8]; 2],
    wholes: [[u64; 4]; 2],
}

/// The shortest transform: one quad of four blocks of 16 values.
const MIN_DEGREE: usize = 64;

/// Lays out roots for the kernels, or keeps them if the transform is too short.
pub(super) fn roots(modulus: &Modulus, roots: Vec<Shoup>, scale: Shoup, last: Shoup) -> Box<dyn arch::Roots> {
    if roots.len() < MIN_DEGREE {
        return portable::roots(modulus, roots, scale, last);
    }
    Box::new(Roots::new(modulus, &roots, scale, last))
}

impl arch::Roots for Roots {
    fn forward(&self, modulus: &Modulus, values: &mut [u64]) {
        // SAFETY: roots of this kind are made by a table that this machine has.
        unsafe { forward(modulus, self, values) }
    }

    fn inverse(&self, modulus: &Modulus, values: &mut [u64]) {
        // SAFETY: as above.
        unsafe { inverse(modulus, self, values) }
    }
}

impl Roots {
    /// Lays out `roots`, in bit-reversed order, for the kernel.
    fn new(modulus: &Modulus, roots: &[Shoup], scale: Shoup, last: Shoup) -> Self {
        let blocks = roots.len() / 16;
        let upper = roots[..blocks].iter().map(|root| [root.w, quotient(root.w, modulus.value())]).collect();
        let quads = (0..blocks).step_by(4).map(|quad| Quad::new(modulus, roots, blocks + quad)).collect();
        Self { upper, quads, scale: [scale.w, last.w], room: room_of(modulus, roots.len()) }
    }
}

impl Quad {
    /// The roots of the blocks whose first level uses `roots[first..first + 4]`.
    fn new(modulus: &Modulus, roots: &[Shoup], first: usize) -> Self {
        let quotient = |w| quotient(w, modulus.value());
        Self {
            eighths: pair(&roots[8 * first..], quotient),
            quarters: pair(&roots[4 * first..], quotient),
            halves: pair(&roots[2 * first..], quotient),
            wholes: pair(&roots[first..], quotient),
        }
    }
}

/// The first `N` roots, and their quotients.
fn pair<const N: usize>(roots: &[Shoup], quotient: impl Fn(u64) -> u64) -> [[u64; N]; 2] {
    let w: [u64; N] = std::array::from_fn(|i| roots[i].w);
    [w, w.map(quotient)]
}

/// [`crate::Ntt::forward`].
///
/// # Safety
/// The machine has AVX-512 F, DQ and IFMA.
///
/// # Panics
/// If `values` has not the length the roots are for.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
unsafe fn forward(modulus: &Modulus, roots: &Roots, values: &mut [u64]) {
    assert_eq!(values.len(), MIN_DEGREE * roots.quads.len(), "transform length");
    // SAFETY: the instruction set is the caller's promise, and the length was checked.
    unsafe {
        let (quads, values) = (&roots.quads, values.as_mut_ptr());
        match roots.room {
            room::BUTTERFLY => {
                passes::forward(Tables::<{ room::BUTTERFLY }>::new(modulus, roots), quads, values);
            }
            room::PASS => {
                passes::forward(Tables::<{ room::PASS }>::new(modulus, roots), quads, values);
            }
            _ => {
                passes::forward(Tables::<{ room::TRANSFORM }>::new(modulus, roots), quads, values);
            }
        }
    }
}

/// [`crate::Ntt::inverse`].
///
/// # Safety
/// The machine has AVX-512 F, DQ and IFMA.
///
/// # Panics
/// If `values` has not the length the roots are for.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
unsafe fn inverse(modulus: &Modulus, roots: &Roots, values: &mut [u64]) {
    assert_eq!(values.len(), MIN_DEGREE * roots.quads.len(), "transform length");
    // SAFETY: the instruction set is the caller's promise, and the length was checked.
    unsafe {
        let (quads, values) = (&roots.quads, values.as_mut_ptr());
        match roots.room {
            room::BUTTERFLY => {
                passes::inverse(Tables::<{ room::BUTTERFLY }>::new(modulus, roots), quads, values);
            }
            room::PASS => {
                passes::inverse(Tables::<{ room::PASS }>::new(modulus, roots), quads, values);
            }
            _ => {
                passes::inverse(Tables::<{ room::TRANSFORM }>::new(modulus, roots), quads, values);
            }
        }
    }
}

/// How far values may grow before they are reduced: as long as they stay below `2^52`, which small primes leave room for.
mod room {
    /// For any prime: in every butterfly.
    pub(super) const BUTTERFLY: u8 = 0;
    /// Before every pass of at most four levels; forward not at all.
    pub(super) const PASS: u8 = 1;
    /// Not before the end.
    pub(super) const TRANSFORM: u8 = 2;
}

/// The room that transforms of length `n` have.
fn room_of(modulus: &Modulus, n: usize) -> u8 {
    let (q, n) = (u128::from(modulus.value()), n as u128);
    // Forward, a level adds 2q to the bound; inverse, it doubles it, 16-fold in a pass.
    if q * n <= 1 << BITS {
        room::TRANSFORM
    } else if q * u128::from(2 * n.ilog2() + 1).max(16) <= 1 << BITS {
        room::PASS
    } else {
        room::BUTTERFLY
    }
}

/// The constants of the modulus with the roots of one direction.
#[derive(Clone, Copy)]
struct Tables<const ROOM: u8> {
    ifma: Ifma,
    upper: *const [u64; 2],
    /// `n^-1`, and it times the root of the last inverse level.
    scale: [Factor; 2],
    /// A multiple of `q` that no value exceeds before an inverse butterfly.
    bound: __m512i,
}

impl<const ROOM: u8> Tables<ROOM> {
    #[inline(always)]
    unsafe fn new(modulus: &Modulus, roots: &Roots) -> Self {
        // SAFETY: the instruction set is the caller's promise.
        unsafe {
            let ifma = Ifma::new(modulus);
            let scale = [Factor::new(roots.scale[0], modulus), Factor::new(roots.scale[1], modulus)];
            let bound = match ROOM {
                room::BUTTERFLY => 2,
                room::PASS => 8,
                _ => (MIN_DEGREE * roots.quads.len() / 2) as u64,
            };
            Self { ifma, upper: roots.upper.as_ptr(), scale, bound: splat(bound * modulus.value()) }
        }
    }
}

impl<const ROOM: u8> Kernel for Tables<ROOM> {
    type Vector = __m512i;
    type Factor = Factor;
    type Quad = Quad;
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn load<const FRESH: bool>(self, from: *const u64) -> __m512i {
        // SAFETY: forwarded.
        unsafe { load(from) }
    }

    #[inline(always)]
    unsafe fn store<const DONE: bool>(self, to: *mut u64, vector: __m512i) {
        // SAFETY: forwarded.
        unsafe { store(to, vector) }
    }

    #[inline(always)]
    unsafe fn root(self, index: usize) -> Factor {
        // SAFETY: the caller stays inside the tables.
        unsafe {
            let [w, quotient] = *self.upper.add(index);
            Factor { w: splat(w), quotient: splat(quotient) }
        }
    }

    #[inline(always)]
    unsafe fn quad_roots(quad: &Quad, level: u32) -> [Factor; 4] {
        // SAFETY: the instruction set is the caller's promise.
        unsafe {
            match level {
                0 => wholes(&quad.wholes),
                1 => halves(&quad.halves),
                2 => quarters(&quad.quarters),
                _ => eighths(&quad.eighths),
            }
        }
    }

    // Only passes of the inverse transform can need it.
    #[inline(always)]
    unsafe fn settle<const INVERSE: bool>(self, x: &mut Four<Self>, y: &mut Four<Self>) {
        if !(INVERSE && ROOM == room::PASS) {
            return;
        }
        // SAFETY: arithmetic on registers.
        unsafe {
            for i in 0..4 {
                x[i] = self.ifma.reduce(x[i]);
                y[i] = self.ifma.reduce(y[i]);
            }
        }
    }

    // Out: x + w y and x - w y + 2q = 2x + 2q - (x + w y), with w y < 2q. Without room x, y < 4q, and x is reduced below 2q first.
    #[inline(always)]
    unsafe fn butterfly<const FRESH: bool>(self, x: &mut [__m512i; 4], y: &mut [__m512i; 4], w: [Factor; 4]) {
        let k = self.ifma;
        // SAFETY: arithmetic on registers.
        unsafe {
            let reduce = !FRESH && ROOM == room::BUTTERFLY;
            let (mut high, mut quotient, mut twice) = ([k.zero; 4], [k.zero; 4], [k.zero; 4]);
            if reduce {
                for i in 0..4 {
                    high[i] = _mm512_madd52hi_epu64(k.zero, x[i], k.ratio);
                }
            }
            // One quotient serves both the reduction of x and that of w y.
            for i in 0..4 {
                quotient[i] = _mm512_madd52hi_epu64(high[i], y[i], w[i].quotient);
            }
            for i in 0..4 {
                twice[i] = _mm512_add_epi64(_mm512_add_epi64(x[i], x[i]), k.twice_q);
            }
            for i in 0..4 {
                x[i] = _mm512_madd52lo_epu64(x[i], y[i], w[i].w);
            }
            if reduce {
                for i in 0..4 {
                    twice[i] = _mm512_madd52lo_epu64(twice[i], high[i], k.minus_twice_q);
                }
            }
            for i in 0..4 {
                x[i] = _mm512_madd52lo_epu64(x[i], quotient[i], k.minus_q);
            }
            for i in 0..4 {
                y[i] = _mm512_sub_epi64(twice[i], x[i]);
            }
        }
    }

    // In: x, y below the bound. Out: x + y, reduced below 2q if there is no room for twice the bound, and
    // (x - y + bound) w < 2q.
    #[inline(always)]
    unsafe fn inverse_butterfly(self, x: &mut Four<Self>, y: &mut Four<Self>, w: [Factor; 4]) {
        let k = self.ifma;
        // SAFETY: arithmetic on registers.
        unsafe {
            let (mut difference, mut quotient, mut high) = ([k.zero; 4], [k.zero; 4], [k.zero; 4]);
            for i in 0..4 {
                difference[i] = _mm512_sub_epi64(_mm512_add_epi64(x[i], self.bound), y[i]);
            }
            for i in 0..4 {
                x[i] = _mm512_add_epi64(x[i], y[i]);
            }
            for i in 0..4 {
                quotient[i] = _mm512_madd52hi_epu64(k.zero, difference[i], w[i].quotient);
            }
            if ROOM == room::BUTTERFLY {
                for i in 0..4 {
                    high[i] = _mm512_madd52hi_epu64(k.zero, x[i], k.ratio);
                }
            }
            for i in 0..4 {
                y[i] = _mm512_madd52lo_epu64(k.zero, difference[i], w[i].w);
            }
            if ROOM == room::BUTTERFLY {
                for i in 0..4 {
                    x[i] = _mm512_madd52lo_epu64(x[i], high[i], k.minus_q);
                }
            }
            for i in 0..4 {
                y[i] = _mm512_madd52lo_epu64(y[i], quotient[i], k.minus_q);
            }
        }
    }

    // In: x, y below the bound. Out: [0, q).
    #[inline(always)]
    unsafe fn last_butterfly(self, x: &mut Four<Self>, y: &mut Four<Self>) {
        let k = self.ifma;
        // SAFETY: arithmetic on registers.
        unsafe {
            for i in 0..4 {
                let difference = _mm512_sub_epi64(_mm512_add_epi64(x[i], self.bound), y[i]);
                let sum = _mm512_add_epi64(x[i], y[i]);
                x[i] = k.finish(k.mul_add(k.zero, sum, self.scale[0]));
                y[i] = k.finish(k.mul_add(k.zero, difference, self.scale[1]));
            }
        }
    }

    #[inline(always)]
    unsafe fn finish(self, x: &mut Four<Self>, y: &mut Four<Self>) {
        // SAFETY: arithmetic on registers.
        unsafe {
            for i in 0..4 {
                x[i] = self.ifma.finish(self.ifma.reduce(x[i]));
                y[i] = self.ifma.finish(self.ifma.reduce(y[i]));
            }
        }
    }

    #[inline(always)]
    unsafe fn interleave(self, x: &mut Four<Self>, y: &mut Four<Self>) {
        // SAFETY: arithmetic on registers.
        unsafe {
            let low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
            let high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
            for i in 0..4 {
                let pair = (x[i], y[i]);
                x[i] = _mm512_permutex2var_epi64(pair.0, low, pair.1);
                y[i] = _mm512_permutex2var_epi64(pair.0, high, pair.1);
            }
        }
    }

    #[inline(always)]
    unsafe fn separate(self, x: &mut Four<Self>, y: &mut Four<Self>) {
        // SAFETY: arithmetic on registers.
        unsafe {
            let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
            let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
            for i in 0..4 {
                let pair = (x[i], y[i]);
                x[i] = _mm512_permutex2var_epi64(pair.0, even, pair.1);
                y[i] = _mm512_permutex2var_epi64(pair.0, odd, pair.1);
            }
        }
    }
}

/// One root for all lanes of each block.
#[inline(always)]
unsafe fn wholes([w, quotient]: &[[u64; 4]; 2]) -> [Factor; 4] {
    // SAFETY: arithmetic on registers.
    unsafe {
        let at = |i: usize| Factor { w: splat(w[i]), quotient: splat(quotient[i]) };
        [at(0), at(1), at(2), at(3)]
    }
}

/// Two roots for each block, in turn.
#[inline(always)]
unsafe fn halves([w, quotient]: &[[u64; 8]; 2]) -> [Factor; 4] {
    // SAFETY: two words from an even index on are inside the arrays.
    unsafe {
        let two = |words: &[u64; 8], i: usize| {
            _mm512_broadcast_i64x2(_mm_loadu_si128(words.as_ptr().add(2 * i).cast()))
        };
        let at = |i: usize| Factor { w: two(w, i), quotient: two(quotient, i) };
        [at(0), at(1), at(2), at(3)]
    }
}

/// Four roots for each block, in turn.
#[inline(always)]
unsafe fn quarters([w, quotient]: &[[u64; 16]; 2]) -> [Factor; 4] {
    // SAFETY: four words from a multiple of four on are inside the arrays.
    unsafe {
        let four = |words: &[u64; 16], i: usize| {
            _mm512_broadcast_i64x4(_mm256_loadu_si256(words.as_ptr().add(4 * i).cast()))
        };
        let at = |i: usize| Factor { w: four(w, i), quotient: four(quotient, i) };
        [at(0), at(1), at(2), at(3)]
    }
}

/// Eight roots for each block.
#[inline(always)]
unsafe fn eighths([w, quotient]: &[[u64; 32]; 2]) -> [Factor; 4] {
    // SAFETY: eight words from a multiple of eight on are inside the arrays.
    unsafe {
        let eight = |words: &[u64; 32], i: usize| load(words.as_ptr().add(8 * i));
        let at = |i: usize| Factor { w: eight(w, i), quotient: eight(quotient, i) };
        [at(0), at(1), at(2), at(3)]
    }
}
