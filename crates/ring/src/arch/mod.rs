//! The kernels, one folder per instruction set, and the one place that chooses among them.
//!
//! A [`Modulus`] carries the backend chosen for it when it was made; here each operation is sent to that backend. All
//! backends give the same results, bit by bit.
#![allow(unsafe_code)]
// Calls of functions that need an instruction set.
// Intrinsics compile to one instruction only inside a function with the instruction set, so helpers must be inlined there.
#![allow(clippy::inline_always, clippy::wildcard_imports)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod passes;
mod portable;

use std::ops::Range;

use crate::buffer::Buffer;
use crate::modulus::Shoup;
use crate::{Ending, EvalPermutation, Modulus};

/// An instruction set the kernels are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// Plain Rust; any modulus.
    Portable,
    /// AVX2 with fused multiply-add; moduli below `2^50`.
    Avx2,
    /// AVX-512 with 52-bit multiply-add; moduli below `2^50`.
    Avx512,
}

impl Backend {
    /// Every backend, slowest first.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// The fastest backend of this machine that can serve `q`.
    pub(crate) fn select(q: u64) -> Self {
        Self::ALL.into_iter().rev().find(|backend| backend.serves(q)).unwrap_or(Self::Portable)
    }

    /// Whether this machine has the backend and it can serve `q`.
    pub(crate) fn serves(self, q: u64) -> bool {
        match self {
            Self::Portable => true,
            Self::Avx2 => q < 1 << 50 && has_avx2(),
            Self::Avx512 => q < 1 << 50 && has_avx512(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512ifma")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx512() -> bool {
    false
}

/// The roots of one direction of a transform, laid out for the backend of the modulus.
#[derive(Debug)]
pub(crate) enum Roots {
    /// In bit-reversed order, with `n^-1` and it times the root of the last inverse level.
    Portable { roots: Vec<Shoup>, scale: Shoup, last: Shoup },
    /// For vectors of four doubles.
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::transform::Roots),
    /// For vectors of eight.
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::transform::Roots),
}

impl Roots {
    /// Takes the powers in bit-reversed order of the root, or of its inverse with the factors `scale` and `last`.
    pub(crate) fn new(modulus: &Modulus, roots: Vec<Shoup>, scale: Shoup, last: Shoup) -> Self {
        match modulus.backend() {
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2 if roots.len() >= avx2::transform::MIN_DEGREE => {
                Self::Avx2(avx2::transform::Roots::new(modulus, &roots, scale, last))
            }
            #[cfg(target_arch = "x86_64")]
            Backend::Avx512 if roots.len() >= avx512::transform::MIN_DEGREE => {
                Self::Avx512(avx512::transform::Roots::new(modulus, &roots, scale, last))
            }
            _ => Self::Portable { roots, scale, last },
        }
    }

    /// The forward transform of `values`, which have the length of the roots.
    pub(crate) fn forward(&self, modulus: &Modulus, values: &mut [u64]) {
        match self {
            Self::Portable { roots, .. } => portable::forward(modulus, roots, values),
            // SAFETY: roots of this kind are made only where the backend serves.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(roots) => unsafe { avx2::transform::forward(modulus, roots, values) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(roots) => unsafe { avx512::transform::forward(modulus, roots, values) },
        }
    }

    /// The inverse transform of `values`, which have the length of the roots.
    pub(crate) fn inverse(&self, modulus: &Modulus, values: &mut [u64]) {
        match self {
            Self::Portable { roots, scale, last } => portable::inverse(modulus, roots, *scale, *last, values),
            // SAFETY: roots of this kind are made only where the backend serves.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(roots) => unsafe { avx2::transform::inverse(modulus, roots, values) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(roots) => unsafe { avx512::transform::inverse(modulus, roots, values) },
        }
    }
}

/// Declares an operation on slices of equal length: the vector kernel does what it can, the portable one the rest.
macro_rules! element_wise {
    ($(#[$doc:meta])* $name:ident($a:ident, $b:ident $(, $extra:ident: $type:ty)*)) => {
        $(#[$doc])*
        pub(crate) fn $name(modulus: &Modulus, $a: &mut [u64], $b: &[u64] $(, $extra: $type)*) {
            assert_eq!($a.len(), $b.len(), "slice lengths");
            let done = match modulus.backend() {
                // SAFETY: a modulus has this backend only where it serves; the lengths are equal.
                #[cfg(target_arch = "x86_64")]
                Backend::Avx2 => unsafe { avx2::slices::$name(modulus, $a, $b $(, $extra)*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Backend::Avx512 => unsafe { avx512::slices::$name(modulus, $a, $b $(, $extra)*) },
                _ => 0,
            };
            portable::$name(modulus, &mut $a[done..], &$b[done..] $(, $extra)*);
        }
    };
}

element_wise!(
    /// `a += b`.
    add_assign(a, b)
);
element_wise!(
    /// `a -= b`.
    sub_assign(a, b)
);
element_wise!(
    /// `a *= b`.
    mul_assign(a, b)
);
element_wise!(
    /// `a = (a - b) w`.
    sub_mul(a, b, w: Shoup)
);
element_wise!(
    /// `out = r mod q` with `r` the centred representative of `a mod from`.
    lift_centered(out, a, from: &Modulus)
);

/// `a *= w`.
pub(crate) fn mul_scalar(modulus: &Modulus, a: &mut [u64], w: Shoup) {
    let done = match modulus.backend() {
        // SAFETY: a modulus has this backend only where it serves.
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => unsafe { avx2::slices::mul_scalar(modulus, a, w) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => unsafe { avx512::slices::mul_scalar(modulus, a, w) },
        _ => 0,
    };
    portable::mul_scalar(modulus, &mut a[done..], w);
}

/// `out = a mod q` for any words.
pub(crate) fn reduce(modulus: &Modulus, out: &mut [u64], a: &[u64]) {
    assert_eq!(out.len(), a.len(), "slice lengths");
    let done = match modulus.backend() {
        // SAFETY: a modulus has this backend only where it serves; the lengths are equal.
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => unsafe { avx512::slices::reduce(modulus, out, a) },
        _ => 0,
    };
    portable::reduce(modulus, &mut out[done..], &a[done..]);
}

/// `out = a` permuted; both have the length of the permutation.
pub(crate) fn permute(out: &mut [u64], a: &[u64], permutation: &EvalPermutation) {
    assert!(out.len() == permutation.degree() && a.len() == permutation.degree(), "polynomial length");
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        // SAFETY: the machine has the instruction set; the lengths were checked.
        return unsafe { avx512::sums::permute(out, a, permutation) };
    }
    portable::permute(out, a, permutation);
}

/// How many products of reduced factors a pair of words of [`mul_add`] holds.
pub(crate) fn sum_capacity(modulus: &Modulus) -> u64 {
    match modulus.backend() {
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => avx512::sums::CAPACITY,
        _ => portable::capacity(modulus),
    }
}

/// Adds products to sums kept in two words, whose meaning is the backend's.
///
/// All slices have the same length, a multiple of 8, and each sum has room for one more.
pub(crate) fn mul_add(modulus: &Modulus, (low, high): (&mut [u64], &mut [u64]), a: &[u64], b: &[u64]) {
    let n = low.len();
    assert!(n == high.len() && n == a.len() && n == b.len() && n.is_multiple_of(8), "slice lengths");
    match modulus.backend() {
        // SAFETY: a modulus has this backend only where it serves; the lengths were checked.
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => unsafe { avx512::sums::mul_add(low, high, a, b) },
        _ => portable::mul_add(low, high, a, b),
    }
}

/// Reduces the sums of [`mul_add`] to `out`; all of the same length, a multiple of 8.
pub(crate) fn reduce_sum(modulus: &Modulus, out: &mut [u64], low: &[u64], high: &[u64]) {
    let n = out.len();
    assert!(n == low.len() && n == high.len() && n.is_multiple_of(8), "slice lengths");
    match modulus.backend() {
        // SAFETY: a modulus has this backend only where it serves; the lengths were checked.
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => unsafe { avx512::sums::reduce(modulus, out, low, high) },
        _ => portable::reduce_sum(modulus, out, low, high),
    }
}

/// `out = sum_k a[k] b[k] mod q`, onto what is there if `ADD`; fewer than [`sum_capacity`] terms.
pub(crate) fn dot<const ADD: bool>(modulus: &Modulus, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
    let n = out.len();
    assert!(a.iter().chain(b).all(|slice| slice.len() == n) && n.is_multiple_of(8), "slice lengths");
    match modulus.backend() {
        // SAFETY: a modulus has this backend only where it serves; the lengths were checked, and are multiples of a vector.
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => unsafe { avx2::sums::dot::<ADD>(modulus, out, a, b) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => unsafe { avx512::sums::dot::<ADD>(modulus, out, a, b) },
        _ => portable::dot::<ADD>(modulus, out, a, b),
    }
}

/// [`Modulus::add_dot_repeated`].
pub(crate) fn add_dot_repeated(modulus: &Modulus, out: &mut [u64], a: &[&[u64]], b: &[u64], run: usize) {
    let (n, stride) = (out.len(), a.len());
    assert!(a.iter().all(|slice| slice.len() == n) && run.is_multiple_of(8), "slice lengths");
    assert!(n.is_multiple_of(run) && b.len() == stride * (n / run), "numbers of repeated factors");
    // What is there is no larger than a product.
    let most = (sum_capacity(modulus) as usize).min(REPEATED).saturating_sub(1).max(1);
    for (part, a) in a.chunks(most).enumerate() {
        for (number, start) in (0..n).step_by(run).enumerate() {
            let w = &b[number * stride + part * most..][..a.len()];
            add_multiples::<true>(modulus, out, a, w, start..start + run);
        }
    }
}

/// Terms of a sum of multiples that every backend has room for, if its sums of products do.
const REPEATED: usize = 1 << 12;

/// [`Modulus::combine`]; at most some thousand terms.
pub(crate) fn combine(modulus: &Modulus, out: &mut [u64], a: &[&[u64]], w: &[u64]) {
    let n = out.len();
    assert!(a.iter().all(|slice| slice.len() == n) && n.is_multiple_of(8), "slice lengths");
    add_multiples::<false>(modulus, out, a, w, 0..n);
}

/// `out = sum_k a[k] w[k] mod q` at places of a vector or several, onto what is there if `ADD`. All slices are of one length, which is
/// the caller's promise, and there are as many constants as vectors, which every backend has room for.
fn add_multiples<const ADD: bool>(
    modulus: &Modulus,
    out: &mut [u64],
    a: &[&[u64]],
    w: &[u64],
    places: Range<usize>,
) {
    match modulus.backend() {
        // SAFETY: a modulus has this backend only where it serves; the callers checked lengths, and that places are multiples of a vector.
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => unsafe { avx2::sums::combine::<ADD>(modulus, out, a, w, places) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => unsafe { avx512::sums::combine::<ADD>(modulus, out, a, w, places) },
        _ => portable::combine::<ADD>(modulus, out, a, w, places),
    }
}

/// `out = (sum_k floor(a[k] w[k] / 2^52) + 2^(shift-1)) / 2^shift`, rounded down, for words below `2^52`, with the kernels of `backend`.
pub(crate) fn quotients(backend: Backend, out: &mut [u64], a: &[&[u64]], w: &[u64], shift: u32) {
    let n = out.len();
    assert!(a.iter().all(|slice| slice.len() == n) && n.is_multiple_of(8), "slice lengths");
    match backend {
        // SAFETY: a modulus of the caller has this backend, only where it serves; the lengths were checked, and are multiples of a vector.
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => unsafe { avx512::sums::quotients(out, a, w, shift) },
        _ => portable::quotients(out, a, w, shift),
    }
}

/// [`Modulus::dot_permuted`]; fewer than [`sum_capacity`] terms.
pub(crate) fn dot_permuted(
    modulus: &Modulus,
    out: &mut [u64],
    a: &[&[u64]],
    b: &[&[u64]],
    ending: &Ending<'_>,
) {
    let n = ending.permutation.degree();
    let others = [ending.added.map(|(slice, _)| slice), ending.subtracted.map(|(slice, _)| slice)];
    let mut inputs = a.iter().chain(b).copied().chain(others.into_iter().flatten());
    assert!(out.len() == n && inputs.all(|slice| slice.len() == n), "polynomial length");
    match modulus.backend() {
        // SAFETY: a modulus has this backend only where it serves; the lengths were checked, and are multiples of a vector.
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => unsafe { avx512::sums::dot_permuted(modulus, out, a, b, ending) },
        _ => step_by_step(modulus, out, a, b, ending),
    }
}

/// [`dot_permuted`] by the other operations.
fn step_by_step(modulus: &Modulus, out: &mut [u64], a: &[&[u64]], b: &[&[u64]], ending: &Ending<'_>) {
    let mut sum = Buffer::zeroed(out.len());
    dot::<false>(modulus, &mut sum, a, b);
    if let Some((vector, factor)) = ending.added {
        let mut scaled = Buffer::from(vector);
        mul_scalar(modulus, &mut scaled, modulus.shoup(factor));
        add_assign(modulus, &mut sum, &scaled);
    }
    if let Some((vector, factor)) = ending.subtracted {
        sub_mul(modulus, &mut sum, vector, factor);
    }
    permute(out, &sum, ending.permutation);
}
