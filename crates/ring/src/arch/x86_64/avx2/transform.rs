//! The negacyclic transform on AVX2: [`passes`] on doubles.
//!
//! Between passes memory holds doubles. A pass reduces them to at most `q/2`
//! first, but takes fresh residues below `q` as they are. A forward level adds at most `3q/4` to a value, so three end
//! below `4q`. An inverse level doubles sums and differences: three end at `4q`, sums of fresh residues, which no level
//! multiplies further, at `8q < 2^53`.

use std::arch::x86_64::*;

use super::{Factor, Floats, load, parts, store};
use crate::Modulus;
use crate::arch::passes::{self, Four, Kernel};
use crate::arch::{self, portable};
use crate::modulus::Shoup;

/// The roots of one direction.
#[derive(Debug)]
struct Roots {
    /// `w` and `w / q` of the levels before the quads, in bit-reversed order.
    upper: Vec<[f64; 2]>,
    /// The roots of the last three levels.
    quads: Vec<Quad>,
    /// `n^-1`, and it times the root of the last inverse level.
    scale: [u64; 2],
}

/// What four blocks of eight values need in the last three levels: roots `w`, then `w / q`.
#[derive(Debug)]
struct Quad {
    wholes: [[f64; 4]; 2],
    halves: [[f64; 8]; 2],
    quarters: [[f64; 16]; 2],
}

/// The shortest transform: one quad.
const MIN_DEGREE: usize = 32;

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
        let blocks = roots.len() / 8;
        let quads = (0..blocks).step_by(4).map(|quad| Quad::new(modulus, roots, blocks + quad)).collect();
        let upper = roots[..blocks].iter().map(|root| parts(root.w, modulus)).collect();
        Self { upper, quads, scale: [scale.w, last.w] }
    }
}

impl Quad {
    /// The roots of the blocks whose first level uses `roots[first..first + 4]`.
    fn new(modulus: &Modulus, roots: &[Shoup], first: usize) -> Self {
        Self {
            wholes: pair(&roots[first..], modulus),
            halves: pair(&roots[2 * first..], modulus),
            quarters: pair(&roots[4 * first..], modulus),
        }
    }
}

/// The first `N` roots, and their quotients.
fn pair<const N: usize>(roots: &[Shoup], modulus: &Modulus) -> [[f64; N]; 2] {
    std::array::from_fn(|part| std::array::from_fn(|i| parts(roots[i].w, modulus)[part]))
}

/// [`crate::Ntt::forward`].
///
/// # Safety
/// The machine has AVX2 and FMA.
///
/// # Panics
/// If `values` has not the length the roots are for.
#[target_feature(enable = "avx2,fma")]
unsafe fn forward(modulus: &Modulus, roots: &Roots, values: &mut [u64]) {
    assert_eq!(values.len(), MIN_DEGREE * roots.quads.len(), "transform length");
    // SAFETY: the instruction set is the caller's promise, and the length was checked.
    unsafe { passes::forward(Tables::new(modulus, roots), &roots.quads, values.as_mut_ptr()) };
}

/// [`crate::Ntt::inverse`].
///
/// # Safety
/// The machine has AVX2 and FMA.
///
/// # Panics
/// If `values` has not the length the roots are for.
#[target_feature(enable = "avx2,fma")]
unsafe fn inverse(modulus: &Modulus, roots: &Roots, values: &mut [u64]) {
    assert_eq!(values.len(), MIN_DEGREE * roots.quads.len(), "transform length");
    // SAFETY: the instruction set is the caller's promise, and the length was checked.
    unsafe { passes::inverse(Tables::new(modulus, roots), &roots.quads, values.as_mut_ptr()) };
}

/// The constants of the modulus with the roots of one direction.
#[derive(Clone, Copy)]
struct Tables {
    floats: Floats,
    upper: *const [f64; 2],
    scale: [Factor; 2],
}

impl Tables {
    #[inline(always)]
    unsafe fn new(modulus: &Modulus, roots: &Roots) -> Self {
        // SAFETY: the instruction set is the caller's promise.
        unsafe {
            let scale = [Factor::new(roots.scale[0], modulus), Factor::new(roots.scale[1], modulus)];
            Self { floats: Floats::new(modulus), upper: roots.upper.as_ptr(), scale }
        }
    }
}

impl Kernel for Tables {
    type Vector = __m256d;
    type Factor = Factor;
    type Quad = Quad;
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn load<const FRESH: bool>(self, from: *const u64) -> __m256d {
        // SAFETY: forwarded.
        unsafe { if FRESH { load(self.floats, from) } else { _mm256_loadu_pd(from.cast()) } }
    }

    #[inline(always)]
    unsafe fn store<const DONE: bool>(self, to: *mut u64, vector: __m256d) {
        // SAFETY: forwarded.
        unsafe { if DONE { store(self.floats, to, vector) } else { _mm256_storeu_pd(to.cast(), vector) } }
    }

    #[inline(always)]
    unsafe fn root(self, index: usize) -> Factor {
        // SAFETY: the caller stays inside the table.
        unsafe {
            let [w, quotient] = *self.upper.add(index);
            Factor { w: _mm256_set1_pd(w), quotient: _mm256_set1_pd(quotient) }
        }
    }

    #[inline(always)]
    unsafe fn quad_roots(quad: &Quad, level: u32) -> [Factor; 4] {
        // SAFETY: the instruction set is the caller's promise.
        unsafe {
            match level {
                0 => wholes(&quad.wholes),
                1 => halves(&quad.halves),
                _ => quarters(&quad.quarters),
            }
        }
    }

    #[inline(always)]
    unsafe fn settle<const INVERSE: bool>(self, x: &mut Four<Self>, y: &mut Four<Self>) {
        for i in 0..4 {
            // SAFETY: arithmetic on registers.
            unsafe {
                x[i] = self.floats.reduce(x[i]);
                y[i] = self.floats.reduce(y[i]);
            }
        }
    }

    #[inline(always)]
    unsafe fn butterfly<const FRESH: bool>(self, x: &mut Four<Self>, y: &mut Four<Self>, w: [Factor; 4]) {
        for i in 0..4 {
            // SAFETY: arithmetic on registers.
            unsafe {
                let product = self.floats.mul(y[i], w[i]);
                y[i] = _mm256_sub_pd(x[i], product);
                x[i] = _mm256_add_pd(x[i], product);
            }
        }
    }

    #[inline(always)]
    unsafe fn inverse_butterfly(self, x: &mut Four<Self>, y: &mut Four<Self>, w: [Factor; 4]) {
        for i in 0..4 {
            // SAFETY: arithmetic on registers.
            unsafe {
                let difference = _mm256_sub_pd(x[i], y[i]);
                x[i] = _mm256_add_pd(x[i], y[i]);
                y[i] = self.floats.mul(difference, w[i]);
            }
        }
    }

    #[inline(always)]
    unsafe fn last_butterfly(self, x: &mut Four<Self>, y: &mut Four<Self>) {
        for i in 0..4 {
            // SAFETY: arithmetic on registers.
            unsafe {
                let (sum, difference) = (_mm256_add_pd(x[i], y[i]), _mm256_sub_pd(x[i], y[i]));
                x[i] = self.floats.lift(self.floats.mul(sum, self.scale[0]));
                y[i] = self.floats.lift(self.floats.mul(difference, self.scale[1]));
            }
        }
    }

    #[inline(always)]
    unsafe fn finish(self, x: &mut Four<Self>, y: &mut Four<Self>) {
        for i in 0..4 {
            // SAFETY: arithmetic on registers.
            unsafe {
                x[i] = self.floats.lift(self.floats.reduce(x[i]));
                y[i] = self.floats.lift(self.floats.reduce(y[i]));
            }
        }
    }

    #[inline(always)]
    unsafe fn interleave(self, x: &mut Four<Self>, y: &mut Four<Self>) {
        for i in 0..4 {
            // SAFETY: arithmetic on registers.
            unsafe {
                let (even, odd) = (_mm256_unpacklo_pd(x[i], y[i]), _mm256_unpackhi_pd(x[i], y[i]));
                x[i] = _mm256_permute2f128_pd::<0x20>(even, odd);
                y[i] = _mm256_permute2f128_pd::<0x31>(even, odd);
            }
        }
    }

    #[inline(always)]
    unsafe fn separate(self, x: &mut Four<Self>, y: &mut Four<Self>) {
        for i in 0..4 {
            // SAFETY: arithmetic on registers.
            unsafe {
                let even = _mm256_permute2f128_pd::<0x20>(x[i], y[i]);
                let odd = _mm256_permute2f128_pd::<0x31>(x[i], y[i]);
                x[i] = _mm256_unpacklo_pd(even, odd);
                y[i] = _mm256_unpackhi_pd(even, odd);
            }
        }
    }
}

/// One root for all lanes of each block.
#[inline(always)]
unsafe fn wholes([w, quotient]: &[[f64; 4]; 2]) -> [Factor; 4] {
    // SAFETY: arithmetic on registers.
    unsafe {
        let at = |i: usize| Factor { w: _mm256_set1_pd(w[i]), quotient: _mm256_set1_pd(quotient[i]) };
        [at(0), at(1), at(2), at(3)]
    }
}

/// Two roots for each block, in turn.
#[inline(always)]
unsafe fn halves([w, quotient]: &[[f64; 8]; 2]) -> [Factor; 4] {
    // SAFETY: two words from an even index on are inside the arrays.
    unsafe {
        let two = |words: &[f64; 8], i: usize| _mm256_broadcast_pd(&_mm_loadu_pd(words.as_ptr().add(2 * i)));
        let at = |i: usize| Factor { w: two(w, i), quotient: two(quotient, i) };
        [at(0), at(1), at(2), at(3)]
    }
}

/// Four roots for each block.
#[inline(always)]
unsafe fn quarters([w, quotient]: &[[f64; 16]; 2]) -> [Factor; 4] {
    // SAFETY: four words from a multiple of four on are inside the arrays.
    unsafe {
        let four = |words: &[f64; 16], i: usize| _mm256_loadu_pd(words.as_ptr().add(4 * i));
        let at = |i: usize| Factor { w: four(w, i), quotient: four(quotient, i) };
        [at(0), at(1), at(2), at(3)]
    }
}
